"""Keys: 64-bit names that carry the partition they were made on.

    | 0 | partition: 12 bits | counter: 51 bits |

The top bit stays 0, so a key is positive in every system that has only signed integers.
"""

import zlib

from holdfast.errors import InvalidArgument
from holdfast.limits import KEY_COUNTER_BITS, PARTITIONS_MAX

KEY_COUNTER_MAX = (1 << KEY_COUNTER_BITS) - 1
NO_KEY = 0  # partitions count from 1, so no real key is 0


def key_of(partition: int, counter: int) -> int:
    """The key with this counter on this partition."""
    if not 1 <= partition <= PARTITIONS_MAX:
        raise InvalidArgument(
            f"Expected a partition from 1 to {PARTITIONS_MAX}, but found {partition}"
        )
    if not 0 <= counter <= KEY_COUNTER_MAX:
        raise InvalidArgument(f"Expected a counter from 0 to 2^51 - 1, but found {counter}")
    return partition << KEY_COUNTER_BITS | counter


def partition_of(key: int) -> int:
    """The partition that made a key."""
    return key >> KEY_COUNTER_BITS


def counter_of(key: int) -> int:
    """The counter inside a key."""
    return key & KEY_COUNTER_MAX


def partition_for(text: str, partitions: int) -> int:
    """The partition that a text belongs to: the same on every machine and for ever."""
    return zlib.crc32(text.encode()) % partitions + 1
