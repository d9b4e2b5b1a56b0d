"""How the parts of a remote Api send their requests."""

from typing import Protocol, TypeVar
from urllib.parse import quote

import msgspec

_Shape = TypeVar("_Shape")


class Wire(Protocol):
    """How requests go out."""

    async def _get(self, path: str, shape: type[_Shape]) -> _Shape: ...

    async def _post(
        self, path: str, body: msgspec.Struct, shape: type[_Shape], wait_ms: int = 0
    ) -> _Shape: ...

    async def _send(
        self, method: str, path: str, body: msgspec.Struct | None = None, wait_ms: int = 0
    ) -> bytes: ...


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
