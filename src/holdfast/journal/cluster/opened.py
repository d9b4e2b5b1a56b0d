"""The entry that begins a range: readers of the log are not given it, but it has an offset.

It is the first that a new owner appends. When a quorum has it, the owner knows that it can append.
"""

import msgspec

OPENED_TOPIC = "records"  # the one that all partitions are written in
_MAGIC = b"\xc1holdfast-opened\xc1"  # no msgpack begins with this byte, so no record does


def encode_opened(epoch: int, owner: str) -> bytes:
    """The entry."""
    return _MAGIC + msgspec.msgpack.encode((epoch, owner))


def is_opened(payload: bytes) -> bool:
    """Whether an entry is one that begins a range."""
    return payload.startswith(_MAGIC)
