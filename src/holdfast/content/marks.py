"""Marks of blobs: where the log ended, and when, as somebody last looked at the blob.

They are kept in the blob store, in shards that are each written whole. A mark may be lost: its blob
is kept longer then. It may be raised, and never lowered.
"""

from typing import NamedTuple
from zlib import crc32

import msgspec

from holdfast.blobs import Blobs, put
from holdfast.content.blobs import MARKS
from holdfast.errors import DataLoss, NotFound
from holdfast.limits import CONTENT_MARK_SHARDS


class BlobMark(NamedTuple):
    """Up to where the log was written when a blob was there."""

    offset: int  # of the last package; -1 if there was none yet
    at_ms: int


Marks = dict[str, BlobMark]

_LAST = f"{MARKS}last"  # when a clean-up ended
_decode = msgspec.msgpack.Decoder(Marks).decode


def shard_of(name: str) -> int:
    """The shard that has the mark of a blob."""
    return crc32(name.encode()) % CONTENT_MARK_SHARDS


def read_marks(blobs: Blobs, shard: int) -> Marks:
    """The marks of a shard."""
    try:
        return _decode(b"".join(blobs.get(_name(shard))))
    except NotFound:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataLoss(
            f"The marks {_name(shard)} in {blobs.url} cannot be read: {error}; delete this blob,"
            " and what it marked is kept as if it were new",
            blob=_name(shard),
        ) from error


def write_marks(blobs: Blobs, shard: int, marks: Marks) -> None:
    """Replaces the marks of a shard."""
    if marks:
        put(blobs, _name(shard), (msgspec.msgpack.encode(marks),))
    else:
        blobs.delete(_name(shard))


def marked_shards(blobs: Blobs) -> list[int]:
    """The shards that have marks."""
    return [int(blob.name[len(MARKS) :], 16) for blob in blobs.list(MARKS) if blob.name != _LAST]


def read_cleaned_ms(blobs: Blobs) -> int | None:
    """When the last clean-up ended, by the clock of the node that did it."""
    try:
        return int(b"".join(blobs.get(_LAST)))
    except (NotFound, ValueError):
        return None


def write_cleaned_ms(blobs: Blobs, now_ms: int) -> None:
    """A clean-up has ended."""
    put(blobs, _LAST, (str(now_ms).encode(),))


def _name(shard: int) -> str:
    return f"{MARKS}{shard:02x}"
