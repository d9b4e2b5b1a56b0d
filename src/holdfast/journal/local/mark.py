"""The durable mark: how far a topic's log is known to be durable.

The writer notes it after every sync, without a sync of its own: what survives a crash of the
process is exact, what survives one of the machine may be older, never newer. So bad bytes below it
are damage, and readers in other processes read up to it.
"""

import struct
from typing import NamedTuple

from crc32c import crc32c

from holdfast.journal.local.disk import File

_MARK = struct.Struct("<QQ")
_CRC = struct.Struct("<I")
MARK_BYTES = _MARK.size + _CRC.size


class Place(NamedTuple):
    """A position in a topic's log; places are ordered as the log is."""

    sequence: int
    position: int


NOWHERE = Place(0, 0)
ANYWHERE = Place(1 << 62, 0)  # the mark is damaged: the log is read to its end


def encode_mark(sequence: int, position: int) -> bytes:
    """A mark as its bytes."""
    data = _MARK.pack(sequence, position)
    return data + _CRC.pack(crc32c(data))


class DurableMark:
    """The mark in its file."""

    def __init__(self, file: File) -> None:
        self._file = file

    def load(self) -> Place | None:
        """The mark; None if it is damaged or just being written."""
        data = self._file.read(0, MARK_BYTES)
        if data == bytes(MARK_BYTES):
            return NOWHERE
        if len(data) < MARK_BYTES or _CRC.unpack_from(data, _MARK.size)[0] != crc32c(data[:16]):
            return None
        return Place._make(_MARK.unpack_from(data))

    def store(self, encoded: bytes) -> None:
        """Moves the mark; the caller has synced everything below."""
        self._file.write(0, encoded)

    def sync(self) -> None:
        """Makes the mark itself durable, as on a clean end."""
        self._file.sync()

    def close(self) -> None:
        self._file.close()
