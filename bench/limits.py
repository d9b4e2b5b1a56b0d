"""What the disk itself can do: the limits that the journal is measured against.

The limit is pwrite and fdatasync on a zero-filled file: up to twice as fast as on a fallocated
file, because no sync has to write extents, and faster than on a growing one. O_DIRECT would gain
some more at some sizes; it is left out, since the figure is against a plain write.
"""

import os
import statistics
import time
from pathlib import Path

MIB = 1024 * 1024
FILE_BYTES = 256 * MIB


class RawFile:
    """A preallocated, zero-filled file that is overwritten from its start again and again."""

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES) -> None:
        self._path = folder / "raw"
        self._file_bytes = file_bytes
        self._offset = 0
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        zeros = bytes(MIB)
        for begin in range(0, file_bytes, MIB):
            os.pwrite(self._descriptor, zeros[: file_bytes - begin], begin)
        os.fsync(self._descriptor)

    def append(self, batch: bytes) -> None:
        """One write and one sync."""
        if self._offset + len(batch) > self._file_bytes:
            self._offset = 0
        view = memoryview(batch)
        while view:
            written = os.pwrite(self._descriptor, view, self._offset)
            self._offset += written
            view = view[written:]
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
        self._path.unlink()


def raw_append(file: RawFile, bytes_per_batch: int, batches: int) -> float:
    """Bytes a second of `batches` writes, each of `bytes_per_batch` and each synced."""
    batch = os.urandom(bytes_per_batch)
    begun = time.perf_counter()
    for _ in range(batches):
        file.append(batch)
    return bytes_per_batch * batches / (time.perf_counter() - begun)


def bare_fdatasync_p50(file: RawFile, size_bytes: int, count: int = 500) -> float:
    """Median seconds of one write of `size_bytes` with its sync."""
    batch = os.urandom(size_bytes)
    spans: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        file.append(batch)
        spans.append(time.perf_counter() - begun)
    return statistics.median(spans)
