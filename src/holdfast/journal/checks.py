"""What every backend refuses, in the same words."""

import re
from collections.abc import Sequence

from holdfast.errors import InvalidArgument, NotFound
from holdfast.journal.api import Bounds, Start
from holdfast.limits import (
    APPEND_BYTES_MAX,
    ENTRY_BYTES_MAX,
    PARTITIONS_MAX,
    TOPIC_NAME_BYTES_MAX,
)

EPOCH_MAX = 0xFFFF_FFFF  # 32 bits in the header of a frame
_TOPIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)  # safe as a folder's name


def check_topic(topic: str, partitions: int) -> None:
    """Refuses a topic that could not be kept."""
    if not _TOPIC_NAME.fullmatch(topic) or len(topic) > TOPIC_NAME_BYTES_MAX:
        raise InvalidArgument(
            f"expected a topic name of letters, digits, '.', '_' and '-', beginning with a letter "
            f"or digit, at most {TOPIC_NAME_BYTES_MAX} long, but found {topic!r}",
            topic=topic,
        )
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise InvalidArgument(
            f"expected 1 to {PARTITIONS_MAX} partitions in topic {topic!r}, but found {partitions}",
            topic=topic,
            partitions=partitions,
        )


def check_same_partitions(topic: str, there: int, asked: int) -> None:
    """Refuses to change the number of partitions: it would change where keys live."""
    if there != asked:
        raise InvalidArgument(
            f"expected topic {topic!r} with {asked} partitions, but it exists with {there}",
            topic=topic,
            partitions=there,
        )


def unknown_topic(topic: str) -> NotFound:
    """The error for a topic that nobody created."""
    return NotFound(f"expected a topic that exists, but found {topic!r}", topic=topic)


def check_partition(topic: str, partition: int, partitions: int) -> None:
    """Refuses a partition that the topic does not have."""
    if not 1 <= partition <= partitions:
        raise NotFound(
            f"expected partition 1 to {partitions} of topic {topic!r}, but found {partition}",
            topic=topic,
            partition=partition,
        )


def check_entries(entries: Sequence[bytes]) -> list[int]:
    """Refuses an append of nothing or of too large an entry; the entries' lengths otherwise."""
    lengths = list(map(len, entries))
    if not lengths:
        raise InvalidArgument("expected at least one entry to append, but found none")
    if sum(lengths) > ENTRY_BYTES_MAX and max(lengths) > ENTRY_BYTES_MAX:
        raise InvalidArgument(
            f"expected entries of at most {ENTRY_BYTES_MAX} bytes, but found one of {max(lengths)}",
            entry_bytes=max(lengths),
        )
    return lengths


def check_append_bytes(append_bytes: int) -> None:
    """Refuses what cannot be written at once."""
    if append_bytes > APPEND_BYTES_MAX:
        raise InvalidArgument(
            f"expected at most {APPEND_BYTES_MAX} bytes in one append, but found {append_bytes}; "
            "append in several calls",
            append_bytes=append_bytes,
        )


def check_epoch(epoch: int) -> None:
    """Refuses an epoch that a frame has no room for."""
    if not 0 <= epoch <= EPOCH_MAX:
        raise InvalidArgument(f"expected an epoch from 0 to {EPOCH_MAX}, but found {epoch}")


def not_newer(epoch: int, newest: int) -> str:
    """Why a partition cannot be taken."""
    return f"expected an epoch above {newest}, in which the partition is written, but found {epoch}"


def check_offset(topic: str, partition: int, offset: int, bounds: Bounds) -> None:
    """Refuses an offset that cannot be read at, and says which ones can."""
    if not bounds.earliest <= offset <= bounds.next:
        raise NotFound(
            f"expected an offset from {bounds.earliest} to {bounds.next} in partition {partition} "
            f"of topic {topic!r}, but found {offset}",
            topic=topic,
            partition=partition,
            offset=offset,
            earliest=bounds.earliest,
            next=bounds.next,
        )


def start_offset(topic: str, partition: int, start: int | Start, bounds: Bounds) -> int:
    """The offset at which a stream begins; NotFound if nothing can be read there."""
    if start is Start.EARLIEST:
        return bounds.earliest
    if start is Start.NEXT:
        return bounds.next
    check_offset(topic, partition, start, bounds)
    return start
