"""The lock of a journal's folder: one writer, and a second one is told who it is."""

import fcntl
import os
from pathlib import Path

import msgspec

from holdfast.errors import Unavailable

_HOLDER_BYTES_MAX = 4096


class FileLock:
    """A lock that the operating system drops when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)  # nobody holds it: do not name the last one
            os.close(self._descriptor)
            self._descriptor = None


def lock_file(path: str, holder: bytes) -> FileLock:
    """Takes the lock and writes the holder into it; Unavailable with the other holder if taken."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder, 0)
    except BlockingIOError:
        other = os.pread(descriptor, _HOLDER_BYTES_MAX, 0).decode(errors="replace")
        os.close(descriptor)
        raise held_by(path, other) from None
    except BaseException:
        os.close(descriptor)
        raise
    return FileLock(descriptor)


def held_by(path: str, holder: str) -> Unavailable:
    """The error for a second writer."""
    return Unavailable(
        f"The folder {Path(path).parent} is in use by {_named(holder)}; stop that process,"
        " or open the journal read-only",
        path=path,
        holder=holder,
    )


def _named(holder: str) -> str:
    """The process that wrote this into the lock; it may have written only a part of it yet."""
    try:
        of = msgspec.json.decode(holder.encode())
        return f"process {of['pid']} on {of['host']} ({of['command']})"
    except (msgspec.DecodeError, KeyError, TypeError):
        return "another process"
