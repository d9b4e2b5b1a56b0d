"""Blobs in memory, for the simulation."""

from collections.abc import Iterator
from types import TracebackType

from holdfast.blobs.api import (
    Blob,
    behind_the_end,
    checked_name,
    checked_prefix,
    checked_range,
    no_blob,
)
from holdfast.errors import HoldfastError
from holdfast.limits import BLOB_PIECE_BYTES


class MemoryBlobs:
    """A blob store that fails when it is told to."""

    def __init__(self) -> None:
        self.url = "memory:"
        self.content: dict[str, bytes] = {}
        self.failure: HoldfastError | None = None  # raised by every call while it is set

    def upload(self, name: str) -> "_MemoryUpload":
        return _MemoryUpload(self, checked_name(name))

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        self.check()
        checked_range(start, end)
        content = self.content.get(checked_name(name))
        if content is None:
            raise no_blob(name, self.url)
        if start > len(content):
            raise behind_the_end(name, self.url, start)
        return self._pieces(content[start:end])

    def _pieces(self, content: bytes) -> Iterator[bytes]:
        for at in range(0, len(content), BLOB_PIECE_BYTES):
            self.check()
            yield content[at : at + BLOB_PIECE_BYTES]

    def head(self, name: str) -> Blob | None:
        self.check()
        content = self.content.get(checked_name(name))
        return None if content is None else Blob(name, len(content))

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.check()
        checked_prefix(prefix)
        found = [name for name in self.content if name.startswith(prefix)]
        return iter([Blob(name, len(self.content[name])) for name in sorted(found)])

    def delete(self, name: str) -> None:
        self.check()
        self.content.pop(checked_name(name), None)

    def check(self) -> None:
        """Fails, if it is told to."""
        if self.failure is not None:
            raise self.failure


class _MemoryUpload:
    def __init__(self, blobs: MemoryBlobs, name: str) -> None:
        self._blobs = blobs
        self._name = name
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self._blobs.check()
        self._pieces.append(bytes(piece))

    def __enter__(self) -> "_MemoryUpload":
        self._blobs.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._blobs.check()
            self._blobs.content[self._name] = b"".join(self._pieces)
