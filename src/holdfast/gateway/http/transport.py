"""A transport that sends an answer's head and body in one packet instead of two."""

import asyncio
from typing import Any


class GatheringTransport:
    """A transport whose writes of one turn of the loop go out together.

    Each write is a system call and wakes the peer, which is most of what a small answer costs.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.writelines(pieces)
