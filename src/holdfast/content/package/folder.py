"""A folder on disk as what packages are built from."""

import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.content.package.sources import SourceNode, no_node
from holdfast.content.paths import ROOT, checked_path, key_of
from holdfast.content.repository.api import DATA, EXECUTABLE, MODIFIED, Binary
from holdfast.errors import InvalidArgument, InvalidState
from holdfast.limits import CONTENT_BINARY_BYTES_MIN, CONTENT_DEPTH_MAX, MIB

_PIECE_BYTES = 1 * MIB
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # waits for no pipe's writer
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OUTERMOST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Parts = tuple[str, ...]  # the names of a file below the folder, as they are on disk


class _Seen(NamedTuple):
    """What tells that a file is still the one that was read."""

    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


class FolderSource:
    """A folder: its files are nodes with the binary `data`, its folders are nodes without.

    Links are not followed: what they point to may be anywhere, and is not what was asked for. They
    are refused, since a publication that lacks a file is worse than none; with `skip_links` they
    are left out and listed in `skipped`. So are pipes, sockets and devices. The folder itself may
    be a link. Names are published in Unicode's normal form C.
    """

    def __init__(self, folder: Path, *, skip_links: bool = False) -> None:
        self.folder = folder
        self.skipped: list[Path] = []
        self._skip_links = skip_links

    def nodes(self, path: str, *, deep: bool) -> Iterator[SourceNode]:
        names = [name for name in path.split("/") if name]
        with self._opened(None, (), _OUTERMOST) as folder:
            yield from self._found(folder, names, path, (), deep)

    def _found(
        self, folder: int, names: list[str], path: str, parts: _Parts, deep: bool
    ) -> Iterator[SourceNode]:
        if not names:
            yield SourceNode(ROOT, {}, {})
            if deep:
                yield from self._below(folder, "", ())
            return
        name = _name_on_disk(folder, names[0])
        if name is None:
            raise no_node(path, str(self.folder))
        parts = (*parts, name)
        if len(names) == 1:
            yield from self._node(folder, path, parts, deep)
            return
        with self._opened(folder, parts, _FOLDER) as inner:
            yield from self._found(inner, names[1:], path, parts, deep)

    def _node(self, folder: int, path: str, parts: _Parts, deep: bool) -> Iterator[SourceNode]:
        with self._told(parts):
            mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            with self._opened(folder, parts, _FILE) as file:
                node = self._file(file, path, parts)
            yield node
        elif stat.S_ISDIR(mode):
            yield SourceNode(path, {}, {})
            if deep:
                with self._opened(folder, parts, _FOLDER) as inner:
                    yield from self._below(inner, path, parts)
        elif self._skip_links:
            self.skipped.append(self.folder.joinpath(*parts))
        else:
            kind = "a link, and links are not followed" if stat.S_ISLNK(mode) else "no file"
            raise InvalidArgument(
                f"{self._shown(parts)} is {kind}; put what it stands for in its place, take it"
                " away, or have links skipped (--skip-links, skip_links=True)",
                path=path,
            )

    def _below(self, folder: int, path: str, parts: _Parts) -> Iterator[SourceNode]:
        if len(parts) >= CONTENT_DEPTH_MAX:
            raise InvalidArgument(
                f"{self._shown(parts)} is too deep: expected up to {CONTENT_DEPTH_MAX} folders in"
                " each other; publish the inner ones from a source of their own",
                path=path,
            )
        names: dict[str, str] = {}
        with self._told(parts):
            found = os.listdir(folder)
        for name in found:
            normal = _normal(name)
            try:
                checked_path(f"{path}/{normal}")
            except InvalidArgument as error:
                raise self._misnamed((*parts, name), error.message) from None
            if names.setdefault(normal, name) != name:
                raise self._misnamed((*parts, name), f"it is the same as {names[normal]!r}")
        for normal in sorted(names, key=key_of):
            yield from self._node(folder, f"{path}/{normal}", (*parts, names[normal]), deep=True)

    def _file(self, file: int, path: str, parts: _Parts) -> SourceNode:
        """A file as it is now: with its content if it is small, with its hash if it is not."""
        status = os.fstat(file)
        seen = _seen(status)
        with self._told(parts):
            content = _read(file, CONTENT_BINARY_BYTES_MIN)
            digest, size_bytes = sha256(content), len(content)
            if size_bytes == CONTENT_BINARY_BYTES_MIN:
                content = None
                while piece := os.read(file, _PIECE_BYTES):
                    digest.update(piece)
                    size_bytes += len(piece)
        if not stat.S_ISREG(status.st_mode) or _seen(os.fstat(file)) != seen:
            raise self.changed(parts)
        if size_bytes != seen.size_bytes:
            raise self.changed(parts)
        properties: dict[str, Any] = {}
        if status.st_mode & stat.S_IXUSR:
            properties[EXECUTABLE] = True
        with suppress(OverflowError):  # a time that no calendar has
            properties[MODIFIED] = _EPOCH + timedelta(microseconds=status.st_mtime_ns // 1_000)
        binary = Binary(digest.digest(), size_bytes)
        return SourceNode(path, properties, {DATA: FolderFile(self, parts, binary, content, seen)})

    def open_again(self, parts: _Parts, seen: _Seen) -> int:
        """A file that was read before; InvalidState if it is another one by now."""
        with self._told(()):
            folder = os.open(self.folder, _OUTERMOST)
        try:
            with self._told(parts):
                for name in parts[:-1]:
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                file = os.open(parts[-1], _FILE, dir_fd=folder)
        finally:
            os.close(folder)
        if _seen(os.fstat(file)) != seen:
            os.close(file)
            raise self.changed(parts)
        return file

    def changed(self, parts: _Parts) -> InvalidState:
        """The error for a file that somebody writes while it is published."""
        return InvalidState(
            f"{self._shown(parts)} changed while it was read; publish it again when it does not"
            " change, or write files under temporary names and rename them",
            file=self._shown(parts),
        )

    def _misnamed(self, parts: _Parts, reason: str) -> InvalidArgument:
        return InvalidArgument(
            f"{self._shown(parts)} cannot be published under its name: {reason}; rename it",
            file=self._shown(parts),
        )

    @contextmanager
    def _opened(self, folder: int | None, parts: _Parts, flags: int) -> Iterator[int]:
        """A file or folder in a folder, or the outermost one; never what a link points to."""
        with self._told(parts):
            opened = os.open(self.folder if folder is None else parts[-1], flags, dir_fd=folder)
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _told(self, parts: _Parts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidState(
                f"{self._shown(parts)} cannot be read: {error.strerror}; check that it is there,"
                " that it is no link, and that it may be read",
                file=self._shown(parts),
            ) from error

    def _shown(self, parts: _Parts) -> str:
        return ascii(str(self.folder.joinpath(*parts)))[1:-1]


class FolderFile:
    """A file: held if it is small, and read again from disk if it is not."""

    __slots__ = ("_content", "_parts", "_seen", "_source", "binary")

    def __init__(
        self,
        source: FolderSource,
        parts: _Parts,
        binary: Binary,
        content: bytes | None,
        seen: _Seen,
    ) -> None:
        self.binary = binary
        self._source = source
        self._parts = parts
        self._content = content
        self._seen = seen

    def pieces(self) -> Iterator[bytes]:
        """Its bytes; InvalidState if it is written meanwhile."""
        if self._content is not None:
            yield self._content
            return
        digest = sha256()
        file = self._source.open_again(self._parts, self._seen)
        try:
            while piece := os.read(file, _PIECE_BYTES):
                digest.update(piece)
                yield piece
            is_same = _seen(os.fstat(file)) == self._seen
        finally:
            os.close(file)
        if not is_same or digest.digest() != self.binary.sha256:
            raise self._source.changed(self._parts)


def _seen(status: os.stat_result) -> _Seen:
    return _Seen(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _read(file: int, size_bytes: int) -> bytes:
    """Up to so many bytes, or all there are: a file may be handed out in parts."""
    pieces = [os.read(file, size_bytes)]
    while pieces[-1] and (left := size_bytes - sum(map(len, pieces))):
        pieces.append(os.read(file, left))
    return b"".join(pieces)


def _normal(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _name_on_disk(folder: int, name: str) -> str | None:
    """The name of a file as the disk has it, which may be in another normal form."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        found = () if name.isascii() else os.listdir(folder)
        return next((each for each in found if _normal(each) == name), None)
    return name
