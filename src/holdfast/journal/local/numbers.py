"""A number for each partition of a topic, kept in two slots that are written in turn.

Two files are of this form: the earliest offsets, and the newest epochs of what was discarded. They
are written in place and preallocated, not by rename: discarding is what frees a full disk, so it
must not need room. Both slots get the same numbers, one after the other: a write that is torn, or a
bit that flips, spoils one only.
"""

import struct
from collections.abc import Sequence

from crc32c import crc32c

from holdfast.errors import DataLoss
from holdfast.journal.local.disk import File

_HEAD = struct.Struct("<QI")  # generation, CRC32C of the generation and the numbers
_SLOT_ALIGNMENT_BYTES = 4096  # the slots share no sector, so that a torn write spoils one only
_GENERATION_MAX = 0xFFFF_FFFF  # the checksum covers so much of it; two for each time the log is cut


def file_bytes(partitions: int) -> int:
    """The size of the file for a number of partitions."""
    return 2 * _slot_bytes(partitions)


def _slot_bytes(partitions: int) -> int:
    size_bytes = _HEAD.size + 8 * partitions
    return size_bytes + -size_bytes % _SLOT_ALIGNMENT_BYTES


class PartitionNumbers:
    """The file of the numbers; `what` they are is for messages."""

    def __init__(
        self, file: File, partitions: int, path: str = "", what: str = "the earliest offsets"
    ) -> None:
        self._file = file
        self._path = path
        self._what = what
        self._slot_bytes = _slot_bytes(partitions)
        self._numbers = struct.Struct(f"<{partitions}Q")
        self._generation = 0
        self.is_whole = True  # both slots could be read, or were never written

    def load(self) -> list[int]:
        """The numbers of the newer intact slot, partition 1 first; zeros if none was written.

        DataLoss if what was written can be read in no slot.
        """
        newest = [0] * (self._numbers.size // 8)
        self._generation = 0
        is_written = False
        self.is_whole = True
        for slot in (0, 1):
            data = self._file.read(slot * self._slot_bytes, _HEAD.size + self._numbers.size)
            if not data.strip(b"\0"):
                continue
            is_written = True
            generation, crc = _HEAD.unpack_from(data.ljust(_HEAD.size, b"\0"))
            numbers = data[_HEAD.size :]
            if generation > _GENERATION_MAX or crc != _crc(generation, numbers):
                self.is_whole = False
            elif generation > self._generation and len(numbers) == self._numbers.size:
                self._generation = generation
                newest = list(self._numbers.unpack(numbers))
        if is_written and not self._generation:
            raise DataLoss(
                f"expected {self._what} of the log in {self._path}, but neither copy of"
                " them matches its checksum; restore the file from a copy",
                file=self._path,
                position=0,
            )
        return newest

    def store(self, numbers: Sequence[int]) -> None:
        """Makes numbers durable, partition 1 first."""
        data = self._numbers.pack(*numbers)
        for _ in range(2):
            self._generation += 1
            head = _HEAD.pack(self._generation, _crc(self._generation, data))
            self._file.write(self._generation % 2 * self._slot_bytes, head + data)
            self._file.sync()

    def close(self) -> None:
        self._file.close()


def _crc(generation: int, numbers: bytes) -> int:
    return crc32c(numbers, generation & 0xFFFFFFFF)
