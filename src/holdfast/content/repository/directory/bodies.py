"""The contents of files, each once, under names made of their hashes. Trees have links to them.

A file's mode and time belong to what a link leads to, so they are part of the name. Nothing that
has a name here is ever written again: a tree that stands may show it.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from holdfast.content.repository.api import DATA, EXECUTABLE, MODIFIED, Binary, Properties
from holdfast.content.repository.checks import chunks
from holdfast.files import sync_folder, write_all
from holdfast.limits import CONTENT_CHUNK_BYTES

Told = Callable[[str], AbstractContextManager[None]]  # turns errors of the disk into ours
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Read-only: a write into such a file would change it in both trees.
_MODE, _MODE_EXECUTABLE = 0o444, 0o555
_NO_LINK = (errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileBody(NamedTuple):
    """A binary as a file has it."""

    binary: Binary
    executable: bool = False
    modified_ns: int | None = None

    @property
    def name(self) -> bytes:
        """The name of its file: the hash, and what is not as usual."""
        times = "" if self.modified_ns is None else f"-{self.modified_ns}"
        return f"{self.binary.sha256.hex()}{'x' if self.executable else ''}{times}".encode()


def file_of(properties: Properties) -> FileBody | None:
    """What the file of a node is; None if the node is a folder."""
    binary, modified = properties.get(DATA), properties.get(MODIFIED)
    if not isinstance(binary, Binary):
        return None
    modified_ns = None
    if isinstance(modified, datetime) and modified.tzinfo is not None:
        modified_ns = (modified - _EPOCH) // timedelta(microseconds=1) * 1_000
    return FileBody(binary, properties.get(EXECUTABLE) is True, modified_ns)


def bodies_of(properties: Properties) -> Iterator[FileBody]:
    """All files that have to be there for a node."""
    for name, value in properties.items():
        if isinstance(value, Binary):
            file = file_of(properties) if name == DATA else None
            yield file or FileBody(value)


class Bodies:
    """The files of a store, shared by its two trees."""

    def __init__(self, private: Path, told: Told) -> None:
        self._told = told
        self._folder = private / "bodies"
        self._incoming = private / "incoming"

    def make(self) -> None:
        for folder in (self._folder, self._incoming):
            folder.mkdir(mode=0o700, exist_ok=True)

    def path(self, name: bytes) -> str:
        text = os.fsdecode(name)
        return os.path.join(self._folder, text[:2], text)  # noqa: PTH118 - half of the time

    def stamp(self, name: bytes) -> tuple[int, int] | None:
        """Size and time of a file, by which one is found out that somebody wrote into."""
        try:
            found = os.lstat(self.path(name))
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns

    def receive(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        """Writes a binary where it waits for the commit; nothing is left if it is not whole."""
        path, what = self.waiting(binary), "to store a binary"
        with self._told(what):
            path.unlink(missing_ok=True)
            file = os.open(path, _NEW, 0o600)
        try:
            for chunk in chunks(binary, pieces):  # whose errors are not the disk's
                with self._told(what):
                    write_all(file, chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(file)

    def waiting(self, binary: Binary) -> Path:
        return self._incoming / binary.sha256.hex()

    def keep(self, body: FileBody, source: Path | str) -> tuple[str, str]:
        """Makes a body from a copy of another file; what has to be synced then."""
        made = self._incoming / f"{body.name.decode()}.made"
        made.unlink(missing_ok=True)
        _copy(source, made, body)
        return self._place(body, made)

    def take(self, body: FileBody) -> tuple[str, str]:
        """Makes a body from the binary that waits; what has to be synced then."""
        return self._place(body, self.waiting(body.binary))

    def _place(self, body: FileBody, made: Path) -> tuple[str, str]:
        made.chmod(_MODE_EXECUTABLE if body.executable else _MODE)
        if body.modified_ns is not None:
            os.utime(made, ns=(body.modified_ns, body.modified_ns))
        path = self.path(body.name)
        try:
            made.rename(path)
        except FileNotFoundError:
            Path(path).parent.mkdir(mode=0o700)
            sync_folder(self._folder)  # 256 times in all
            made.rename(path)
        return path, path.rpartition("/")[0]

    def drop_waiting(self) -> None:
        """Removes what came for a change set that is over."""
        for path in self._incoming.iterdir():
            path.unlink()

    def drop(self, name: bytes) -> None:
        """Removes a body that neither tree needs."""
        Path(self.path(name)).unlink(missing_ok=True)

    def names(self) -> Iterator[bytes]:
        """All that are there, needed or not."""
        for folder in self._folder.iterdir():
            for path in folder.iterdir():
                yield os.fsencode(path.name)

    def link(self, name: bytes, target: str, folder: int) -> bool:
        """Gives a body a name in a folder; False if it had to be a copy, which is to be synced."""
        source = self.path(name)
        try:
            os.link(source, target, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            self._copy_into(source, target, folder)
            return False
        return True

    def _copy_into(self, source: str, target: str, folder: int) -> None:
        made = self._incoming / "copy"
        made.unlink(missing_ok=True)
        found = os.lstat(source)
        _copy(source, made, None)
        made.chmod(found.st_mode & 0o777)
        os.utime(made, ns=(found.st_mtime_ns, found.st_mtime_ns))
        os.rename(made, target, dst_dir_fd=folder)


def _copy(source: Path | str, target: Path, body: FileBody | None) -> None:
    """Copies a file in pieces; DataLoss if it is not what its hash says."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, _NEW, 0o600)
        try:
            pieces = iter(lambda: os.read(reading, CONTENT_CHUNK_BYTES), b"")
            for piece in pieces if body is None else chunks(body.binary, pieces):
                write_all(writing, piece)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
