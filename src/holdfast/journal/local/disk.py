"""What the journal asks of a disk, and the real one. Nothing else in the journal touches files."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Protocol

from holdfast.journal.local.lock import lock_file
from holdfast.journal.local.write_out import begin_write_out, can_begin_write_out
from holdfast.limits import MIB

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # errors that pass when there is room

# Linux keeps a file in memory in pieces as large as it was written in. After a fill with 64 KiB at
# a time, a small commit takes 3% less time, and one of 4 MiB takes 18% more.
_FILL_BYTES = 1 * MIB
_FILL_SYNC_BYTES = (
    8 * MIB
)  # a background fill that flushed 64 MiB at once would hold up the commits

# A device takes 10 to 15 us to write a few pages. A sync that comes before that puts the thread to
# sleep, and to wake it takes longer than what it slept: with a pause of 5 us, write and sync took
# 115 us, with one of 15 to 20 us 95, in one call 105.
_AWAKE_SECONDS = 16e-6
# To write and to begin the write-out takes 20 us. If it takes so long, a thread that computes had
# the interpreter's lock, which each call gives away for 5 ms then, or the device has much to do.
_BEGIN_SECONDS_MAX = 4e-3
_IN_ONE_CALL_SECONDS = 5.0  # until that is tried again


Meanwhile = Callable[[], None]
"""Work that is done while a disk is busy; it raises nothing."""


class File(Protocol):
    """An open file."""

    def read(self, position: int, size_bytes: int) -> bytes:
        """Up to `size_bytes`, fewer only at the end of the file."""
        ...

    def write(self, position: int, data: bytes | memoryview) -> None:
        """All of the data; an error may leave a beginning of it."""
        ...

    def write_durably(
        self, position: int, data: bytes | memoryview, meanwhile: Meanwhile | None = None
    ) -> None:
        """Like `write` and `sync`, in one call where the system has one.

        `meanwhile` is called between the two while the device writes, if the system can do that.
        """
        ...

    def sync(self) -> None:
        """Returns when everything written is durable."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cuts the file."""
        ...

    def size_bytes(self) -> int:
        """How long the file is."""
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...


class Lock(Protocol):
    """A lock that is held until it is released or its process ends."""

    def release(self) -> None:
        """Lets the next one have it."""
        ...


class Disk(Protocol):
    """A file system, as far as the journal needs one; paths are strings with slashes."""

    def create(self, path: str, size_bytes: int) -> File:
        """A new file, filled with zeros that are durable; its name is so after `sync_folder`."""
        ...

    def open(self, path: str, *, writable: bool = False) -> File:
        """A file that is there; FileNotFoundError if it is not."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Puts a file in the place of another, at once."""
        ...

    def remove(self, path: str) -> None:
        """Removes a file; one that is not there is no error."""
        ...

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        ...

    def make_folder(self, path: str) -> None:
        """Makes sure that a folder exists, durably."""
        ...

    def sync_folder(self, path: str) -> None:
        """Returns when created, renamed and removed names of a folder are durable."""
        ...

    def free_bytes(self, path: str) -> int:
        """How much more fits."""
        ...

    def lock(self, path: str, holder: bytes) -> Lock:
        """Takes a lock and notes its holder; Unavailable naming the holder if it is taken."""
        ...

    def background(self) -> Executor:
        """Runs what may happen beside the appends, one after the other."""
        ...

    def committing(self) -> Executor | None:
        """Writes and syncs large commits beside the loop; None where the loop is to do it."""
        ...


class RealFile:
    """A file of the operating system."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._in_one_call_until = 0.0

    def read(self, position: int, size_bytes: int) -> bytes:
        data = os.pread(self._descriptor, size_bytes, position)
        while 0 < len(data) < size_bytes:
            more = os.pread(self._descriptor, size_bytes - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, position: int, data: bytes | memoryview) -> None:
        written = os.pwrite(self._descriptor, data, position)
        while written < len(data):  # a signal or the end of the room: the rest tells which
            with memoryview(data)[written:] as rest:
                written += os.pwrite(self._descriptor, rest, position + written)

    def write_durably(
        self, position: int, data: bytes | memoryview, meanwhile: Meanwhile | None = None
    ) -> None:
        if meanwhile is not None and can_begin_write_out:
            begun = perf_counter()
            if begun > self._in_one_call_until:
                return self._write_beside(begun, position, data, meanwhile)
        # One call instead of two lets go of the interpreter's lock once, not twice.
        written = os.pwritev(self._descriptor, [data], position, os.RWF_DSYNC)
        while written < len(data):
            with memoryview(data)[written:] as rest:
                written += os.pwritev(self._descriptor, [rest], position + written, os.RWF_DSYNC)
        return None

    def _write_beside(
        self, begun: float, position: int, data: bytes | memoryview, meanwhile: Meanwhile
    ) -> None:
        """Writes durably, with other work while the device writes; `begun` just now."""
        self.write(position, data)
        is_possible = begin_write_out(self._descriptor, position, len(data))
        written = perf_counter()
        if not is_possible:
            self._in_one_call_until = inf
        elif written - begun > _BEGIN_SECONDS_MAX:
            self._in_one_call_until = written + _IN_ONE_CALL_SECONDS
        meanwhile()
        while perf_counter() < written + _AWAKE_SECONDS:
            pass
        self.sync()

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._descriptor, size_bytes)

    def size_bytes(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class RealDisk:
    """The file system of the machine."""

    def create(self, path: str, size_bytes: int) -> RealFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = RealFile(os.open(path, flags, 0o600))
        try:
            # Written zeros, not fallocate: a sync on written blocks has no metadata to update,
            # which halves its time.
            fill(file, 0, size_bytes)
        except OSError:
            file.close()
            self.remove(path)
            raise
        return file

    def open(self, path: str, *, writable: bool = False) -> RealFile:
        return RealFile(os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC))

    def rename(self, source: str, target: str) -> None:
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(path.name for path in Path(folder).iterdir())
        except FileNotFoundError:
            return []

    def make_folder(self, path: str) -> None:
        folder = Path(path)
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.sync_folder(str(folder.parent))

    def sync_folder(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def lock(self, path: str, holder: bytes) -> Lock:
        return lock_file(path, holder)

    def background(self) -> Executor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-journal")

    def committing(self) -> Executor | None:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-commit")


def fill(file: File, start: int, end: int) -> None:
    """Writes durable zeros from start to end."""
    piece = bytes(_FILL_BYTES)
    unsynced_bytes = 0
    for position in range(start, end, _FILL_BYTES):
        size_bytes = min(_FILL_BYTES, end - position)
        file.write(position, piece[:size_bytes])
        unsynced_bytes += size_bytes
        if unsynced_bytes >= _FILL_SYNC_BYTES:
            file.sync()
            unsynced_bytes = 0
    file.sync()


def read_whole(disk: Disk, path: str) -> bytes | None:
    """The contents of a small file; None if it is not there."""
    try:
        file = disk.open(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return file.read(0, file.size_bytes())
    finally:
        file.close()


def replace_whole(disk: Disk, folder: str, name: str, data: bytes) -> None:
    """Writes a small file so that a crash leaves the old one or the new one, never a part."""
    temporary = f"{folder}/{name}.new"
    file = disk.create(temporary, 0)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, f"{folder}/{name}")
    disk.sync_folder(folder)
