"""Uploads of blobs: their pieces are gathered in files until they are whole.

The files are in the node's folder, so a piece may come to any of its processes, and an upload goes
on after a restart. A whole one is copied into the blob store, and is there at once or not at all.
Calls block.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from holdfast.blobs import Blob, Blobs
from holdfast.clock import Clock
from holdfast.content.blobs import BINARIES
from holdfast.errors import (
    DataLoss,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from holdfast.files import DISK_FULL, make_folder, write_all
from holdfast.limits import (
    BLOB_PIECE_BYTES,
    CONTENT_BLOB_BYTES_MAX,
    CONTENT_UPLOAD_KEPT_MS,
    CONTENT_UPLOADS_MAX,
    DISK_FULL_RETRY_MS,
)

_PARTS, _NOTES = ".part", ".json"
_ID_BYTES: Final = 16
_BUSY_RETRY_MS: Final = 60_000


class StagedUpload(msgspec.Struct, frozen=True):
    """What is known of an upload before it is whole."""

    owner: str  # who began it: nobody else goes on with it
    blob: str


class UploadStaging:
    """The uploads that are not finished."""

    def __init__(self, folder: Path, blobs: Blobs, clock: Clock) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock

    def begin(self, owner: str, blob: str) -> str:
        """Begins an upload; what names it."""
        with self._told(blob):
            make_folder(self._folder)
            if self._count() >= CONTENT_UPLOADS_MAX:
                raise ResourceExhausted(
                    f"Expected at most {CONTENT_UPLOADS_MAX} unfinished uploads, but there are as"
                    " many; finish one of them, or try again later",
                    retry_after_ms=_BUSY_RETRY_MS,
                )
            upload_id = secrets.token_hex(_ID_BYTES)
            self._path(upload_id, _PARTS).touch(mode=0o600, exist_ok=False)
            note = msgspec.json.encode(StagedUpload(owner, blob))
            self._path(upload_id, _NOTES).write_bytes(note)
        return upload_id

    def offset(self, owner: str, upload_id: str) -> int:
        """How many bytes of an upload are there."""
        self._found(owner, upload_id)
        return self._path(upload_id, _PARTS).stat().st_size

    def write(self, owner: str, upload_id: str, offset: int, piece: bytes) -> int:
        """Puts a piece at an offset, in place of what is there from it on; where it ends."""
        staged = self._found(owner, upload_id)
        end = offset + len(piece)
        if end > CONTENT_BLOB_BYTES_MAX:
            raise InvalidArgument(
                f"Expected a blob of at most {CONTENT_BLOB_BYTES_MAX} bytes, but {staged.blob}"
                " has more"
            )
        with self._told(staged.blob), self._opened(upload_id) as file:
            size_bytes = os.fstat(file).st_size
            if offset > size_bytes:
                raise InvalidState(
                    f"Expected the next piece of upload {upload_id} from byte {size_bytes} on, but"
                    f" found one from byte {offset} on",
                    offset=size_bytes,
                )
            os.ftruncate(file, offset)
            os.lseek(file, offset, os.SEEK_SET)
            write_all(file, piece)
        return end

    def finish(self, owner: str, upload_id: str, size_bytes: int) -> Blob:
        """Makes an upload the blob that it is for; one that is there already stays as it is."""
        staged = self._found(owner, upload_id)
        with self._told(staged.blob), self._opened(upload_id) as file:
            found_bytes = os.fstat(file).st_size
            if found_bytes != size_bytes:
                raise InvalidState(
                    f"Expected {size_bytes} bytes of {staged.blob}, but {found_bytes} were sent",
                    offset=found_bytes,
                )
            stored = self._blobs.head(staged.blob)
            if stored is None:
                self._store(file, staged.blob)
            self.drop(owner, upload_id)
        return stored or Blob(staged.blob, size_bytes)

    def drop(self, owner: str, upload_id: str) -> None:
        """Forgets an upload."""
        staged = self._found(owner, upload_id)
        with self._told(staged.blob):
            self._remove(upload_id)

    # --- inside -------------------------------------------------------------------------------

    def _store(self, file: int, blob: str) -> None:
        digest = hashlib.sha256()
        with self._blobs.upload(blob) as upload:
            os.lseek(file, 0, os.SEEK_SET)
            while piece := os.read(file, BLOB_PIECE_BYTES):
                digest.update(piece)
                upload.write(piece)
            named = blob.removeprefix(BINARIES)
            if named != blob and named != digest.hexdigest():
                raise DataLoss(
                    f"Expected bytes with the SHA-256 {named} for {blob}, but those that were sent"
                    f" have {digest.hexdigest()}; send them again",
                    blob=blob,
                )

    def _found(self, owner: str, upload_id: str) -> StagedUpload:
        """An upload of somebody; that of somebody else is as if it were not there."""
        is_id = len(upload_id) == 2 * _ID_BYTES and upload_id.isalnum() and upload_id.isascii()
        try:
            note = self._path(upload_id, _NOTES).read_bytes() if is_id else b""
            staged = msgspec.json.decode(note, type=StagedUpload) if note else None
        except (FileNotFoundError, msgspec.DecodeError):
            staged = None
        if staged is None or staged.owner != owner:
            raise NotFound(
                f"There is no unfinished upload {upload_id[:64]!r}; begin again",
                upload_id=upload_id[:64],
            )
        return staged

    def _path(self, upload_id: str, kind: str) -> Path:
        return self._folder / f"{upload_id}{kind}"

    @contextlib.contextmanager
    def _opened(self, upload_id: str) -> Iterator[int]:
        """The file of an upload, which nobody else changes meanwhile."""
        file = os.open(self._path(upload_id, _PARTS), os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _count(self) -> int:
        """How many there are, without those that nobody went on with for long."""
        long_ago = self._clock.now_ms() - CONTENT_UPLOAD_KEPT_MS
        count = 0
        for path in self._folder.glob(f"*{_PARTS}"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime * 1_000 < long_ago:
                    self._remove(path.stem)
                else:
                    count += 1
        return count

    def _remove(self, upload_id: str) -> None:
        for kind in (_NOTES, _PARTS):
            self._path(upload_id, kind).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _told(self, blob: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            text = f"Failed to upload {blob} to {self._folder}: {reason}"
            if error.errno in DISK_FULL:
                raise ResourceExhausted(
                    f"{text}; make room on the disk", retry_after_ms=DISK_FULL_RETRY_MS
                ) from error
            raise Unavailable(f"{text}; check the folder and its disk") from error
