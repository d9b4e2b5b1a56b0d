"""Blobs of a node over its Api: read and uploaded in pieces, each of which may be sent again."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from holdfast.blobs import Blob
from holdfast.blobs.api import behind_the_end, checked_name, checked_range, no_blob
from holdfast.client.patience import patiently
from holdfast.errors import (
    DeadlineExceeded,
    HoldfastError,
    InvalidState,
    NotFound,
    Unavailable,
    Unknown,
)
from holdfast.gateway.api import Api
from holdfast.gateway.content.shapes import BlobView, NewUpload, UploadEnd, UploadView
from holdfast.gateway.operation import Piece
from holdfast.limits import CONTENT_PIECE_BYTES_MAX

T = TypeVar("T")

_PATIENCE_S = 60.0  # a node that restarts is back by then
_PASSING: tuple[type[HoldfastError], ...] = (Unavailable, Unknown, DeadlineExceeded)


class NodeBlobs:
    """The blobs of a node, for threads beside the loop that its Api belongs to."""

    def __init__(
        self,
        api: Api,
        loop: asyncio.AbstractEventLoop,
        publisher: str,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """What is uploaded is for packages of the publisher, or from a subscriber of it."""
        self.url = getattr(api, "url", "the node")
        self.publisher = publisher
        self._api = api
        self._loop = loop
        self._patience_s = patience_s

    def upload(self, name: str) -> "_NodeUpload":
        return _NodeUpload(self, self._api, checked_name(name))

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        checked_range(start, end)
        blob = self.head(name)
        if blob is None:
            raise no_blob(name, self.url)
        if start > blob.size_bytes:
            raise behind_the_end(name, self.url, start)
        return self._pieces(name, start, blob.size_bytes if end is None else min(end, blob[1]))

    def _pieces(self, name: str, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            content = self._read(name, start, min(end - start, CONTENT_PIECE_BYTES_MAX)).content
            if not content:
                raise behind_the_end(name, self.url, start)  # it was replaced meanwhile
            start += len(content)
            yield content

    def head(self, name: str) -> Blob | None:
        try:
            return Blob(name, self._read(checked_name(name), 0, 0).size_bytes)
        except NotFound:
            return None

    def _read(self, name: str, start: int, bytes_max: int) -> Piece:
        return self.call(lambda: self._api.content.read_blob(name, start, bytes_max))

    def list(self, prefix: str = "") -> Iterator[Blob]:
        raise self._not_here("lists")

    def delete(self, name: str) -> None:
        raise self._not_here("deletes")

    def _not_here(self, does: str) -> InvalidState:
        return InvalidState(
            f"Expected the blob store itself, but this is a node at {self.url}, which alone {does}"
            " blobs; use holdfast content cleanup"
        )

    def call(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the node answers; asked again for a while if it is away."""

        async def asking() -> T:
            return await patiently(ask, _PASSING, self._patience_s)

        return self.call_once(asking())

    def call_once(self, asking: Coroutine[Any, Any, T]) -> T:
        """What the node answers now."""
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result()


class _NodeUpload:
    """A blob on its way to a node: one piece of it is in memory."""

    def __init__(self, blobs: NodeBlobs, api: Api, name: str) -> None:
        self._blobs = blobs
        self._api = api
        self._name = name
        self._id = ""
        self._offset = 0
        self._piece = bytearray()

    def __enter__(self) -> "_NodeUpload":
        new = NewUpload(self._blobs.publisher, self._name)
        self._id = self._blobs.call(lambda: self._api.content.begin_upload(new)).upload_id
        return self

    def write(self, piece: bytes) -> None:
        with memoryview(piece) as left:
            at = 0
            while at < len(left):
                taken = left[at : at + CONTENT_PIECE_BYTES_MAX - len(self._piece)]
                self._piece += taken
                at += len(taken)
                if len(self._piece) == CONTENT_PIECE_BYTES_MAX:
                    self._send()

    def _send(self) -> None:
        """Sends the piece; the same offset again replaces what came of an attempt before."""
        offset, piece = str(self._offset), bytes(self._piece)

        def send() -> Coroutine[Any, Any, UploadView]:
            return self._api.content.write_upload(self._id, offset, piece)

        self._offset = self._blobs.call(send).offset
        self._piece.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._drop()
            return
        if self._piece:
            self._send()
        end = UploadEnd(self._offset)

        async def finish() -> BlobView:
            try:
                return await self._api.content.finish_upload(self._id, end)
            except NotFound:  # an attempt before this one may have been the last
                size_bytes = (await self._api.content.read_blob(self._name, 0, 0)).size_bytes
                return BlobView(self._name, size_bytes)

        self._blobs.call(finish)

    def _drop(self) -> None:
        """What is left if the node is away is forgotten after a day."""
        with suppress(HoldfastError):
            self._blobs.call_once(self._api.content.drop_upload(self._id))
