"""Blobs as files of a folder: synced, and moved into place when they are whole."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from holdfast.blobs.api import (
    Blob,
    behind_the_end,
    checked_name,
    checked_prefix,
    checked_range,
    no_blob,
)
from holdfast.errors import HoldfastError, ResourceExhausted, Unavailable
from holdfast.files import DISK_FULL, make_folder, sync_folder, write_all
from holdfast.limits import BLOB_PIECE_BYTES, DISK_FULL_RETRY_MS

_PART = ".holdfast-part"  # ends the name of a file that is not whole yet; a dot begins it


class FolderBlobs:
    """Blobs in the files of a folder, which several processes may share."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.url = str(folder)
        self._folder = folder
        if create:
            with self._told("to open the store"):
                make_folder(folder)

    def upload(self, name: str) -> "_FolderUpload":
        return _FolderUpload(self, self._folder / checked_name(name), name)

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        checked_range(start, end)
        with self._told(f"to read the blob {name}"):
            path = self._folder / checked_name(name)
            if not path.is_file():
                raise no_blob(name, self.url)
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            size_bytes = os.fstat(file).st_size
        if start > size_bytes:
            os.close(file)
            raise behind_the_end(name, self.url, start)
        return self._pieces(file, name, start, size_bytes if end is None else min(end, size_bytes))

    def _pieces(self, file: int, name: str, start: int, end: int) -> Iterator[bytes]:
        try:
            while start < end:
                with self._told(f"to read the blob {name}"):
                    piece = os.pread(file, min(BLOB_PIECE_BYTES, end - start), start)
                if not piece:
                    return
                start += len(piece)
                yield piece
        finally:
            os.close(file)

    def head(self, name: str) -> Blob | None:
        path = self._folder / checked_name(name)
        with self._told(f"to look for the blob {name}"):
            return Blob(name, path.stat().st_size) if path.is_file() else None

    def list(self, prefix: str = "") -> Iterator[Blob]:
        within = checked_prefix(prefix).rpartition("/")[0]
        found: list[Blob] = []
        with self._told(f"to list the blobs {prefix}*"):
            for folder, _, names in os.walk(self._folder / within):
                for each in names:
                    path = Path(folder, each)
                    name = path.relative_to(self._folder).as_posix()
                    if not each.startswith(".") and name.startswith(prefix):
                        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                            found.append(Blob(name, path.stat().st_size))
        return iter(sorted(found))

    def delete(self, name: str) -> None:
        path = self._folder / checked_name(name)
        with self._told(f"to delete the blob {name}"):
            if path.is_file():
                path.unlink(missing_ok=True)
                sync_folder(path.parent)

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.failed(what, error) from error

    def failed(self, what: str, error: OSError) -> HoldfastError:
        """What the disk said, as an error that says what to do."""
        reason = (error.strerror or str(error)).lower()
        text = f"Failed {what} in {self.url}: {reason}"
        if error.errno in DISK_FULL:
            return ResourceExhausted(
                f"{text}; make room on the disk", store=self.url, retry_after_ms=DISK_FULL_RETRY_MS
            )
        return Unavailable(f"{text}; check the folder and its disk", store=self.url)


class _FolderUpload:
    """A file beside its name until it is whole and durable."""

    def __init__(self, blobs: FolderBlobs, path: Path, name: str) -> None:
        self._blobs = blobs
        self._path = path
        self._part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_PART}")
        self._what = f"to write the blob {name}"
        self._file = -1

    def __enter__(self) -> "_FolderUpload":
        try:
            make_folder(self._path.parent)
            self._clean_up()
            self._file = os.open(
                self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._file, fcntl.LOCK_EX)  # for as long as somebody works on it
        except OSError as error:
            self._give_up()
            raise self._blobs.failed(self._what, error) from error
        return self

    def _clean_up(self) -> None:
        """Removes what processes left that ended in the middle of an upload: nobody locks it."""
        for path in self._path.parent.glob(f".*{_PART}"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()

    def write(self, piece: bytes) -> None:
        try:
            write_all(self._file, piece)
        except OSError as error:
            raise self._blobs.failed(self._what, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                os.fsync(self._file)
                # A later read gets what the disk has, where the system allows it.
                os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
                self._part.rename(self._path)
                sync_folder(self._path.parent)
        except OSError as failure:
            raise self._blobs.failed(self._what, failure) from failure
        finally:
            self._give_up()

    def _give_up(self) -> None:
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)  # it has another name by now if it is whole
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
