"""The blobs of content distribution, for clients that have no way to the store itself."""

import asyncio
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import ParamSpec, TypeVar

from holdfast.blobs import Blob, Blobs
from holdfast.blobs.api import checked_name, no_blob
from holdfast.clock import Clock
from holdfast.content.blobs import BINARIES, PACKAGES, SNAPSHOTS, call
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.asking import asker_now
from holdfast.gateway.content.staging import UploadStaging
from holdfast.gateway.operation import OutOfRange, Piece

P = ParamSpec("P")
T = TypeVar("T")

SERVED = (BINARIES, PACKAGES, SNAPSHOTS)


class ContentBlobs:
    """Reads blobs in pieces, and takes uploads in pieces. Every process of a node has the same."""

    def __init__(self, open_store: Callable[[], Blobs], uploads: Path | None, clock: Clock) -> None:
        """Neither the store nor the folder for uploads is there before it is used."""
        self._open_store = open_store
        self._uploads = uploads  # None: among temporary files
        self._clock = clock

    @cached_property
    def store(self) -> Blobs:
        """Where the blobs are."""
        return self._open_store()

    @cached_property
    def _staging(self) -> UploadStaging:
        folder = self._uploads or Path(tempfile.mkdtemp(prefix="holdfast-uploads-"))
        return UploadStaging(folder, self.store, self._clock)

    async def read(self, blob: str, start: int, bytes_max: int) -> Piece:
        """A part of a blob."""
        return await call(self.store, self._read, checked_blob(blob), start, bytes_max)

    def _read(self, name: str, start: int, bytes_max: int) -> Piece:
        found = self.store.head(name)
        if found is None:
            raise no_blob(name, self.store.url)
        size_bytes = found.size_bytes
        if bytes_max == 0:
            return Piece(b"", size_bytes)
        if start > size_bytes:
            raise OutOfRange(
                f"Expected a part of {name}, which has {size_bytes} bytes, but found one from byte"
                f" {start} on",
                size_bytes=size_bytes,
            )
        end = min(start + bytes_max, size_bytes)
        return Piece(b"".join(self.store.get(name, start, end)), size_bytes)

    async def begin(self, blob: str) -> str:
        """Begins an upload."""
        return await asyncio.to_thread(self._staging.begin, _owner(), checked_blob(blob))

    async def offset(self, upload_id: str) -> int:
        """How far an upload is."""
        return await asyncio.to_thread(self._staging.offset, _owner(), upload_id)

    async def write(self, upload_id: str, offset: int, piece: bytes) -> int:
        """Adds a piece."""
        return await asyncio.to_thread(self._staging.write, _owner(), upload_id, offset, piece)

    async def finish(self, upload_id: str, size_bytes: int) -> Blob:
        """Makes an upload a blob."""
        return await asyncio.to_thread(self._staging.finish, _owner(), upload_id, size_bytes)

    async def drop(self, upload_id: str) -> None:
        """Gives up an upload."""
        await asyncio.to_thread(self._staging.drop, _owner(), upload_id)


def checked_blob(name: str) -> str:
    """The name of a blob that belongs to content distribution: the store may have others."""
    if not checked_name(name).startswith(SERVED):
        raise InvalidArgument(
            f"Expected a blob whose name begins with {', '.join(SERVED)}, but found {name[:100]!r}"
        )
    return name


def _owner() -> str:
    asker = asker_now()
    return "" if asker is None else f"{asker.type}:{asker.sub}"
