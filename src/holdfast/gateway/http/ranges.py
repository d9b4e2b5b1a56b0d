"""Something large over HTTP: in pieces that fit the memory, all of it or the part in `Range`."""

import re
from typing import Any, NamedTuple

from litestar.types import Send

from holdfast.gateway.endpoint import Call
from holdfast.gateway.operation import BYTES, OutOfRange, Piece
from holdfast.limits import CONTENT_PIECE_BYTES_MAX, WHOLE_MAX

_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")


class _Wanted(NamedTuple):
    start: int
    end: int  # behind the last byte


class RangedAnswer:
    """One answer, which asks for the next piece when the client has taken the last one."""

    def __init__(self, read: Call, arguments: list[Any], headers: dict[bytes, bytes]) -> None:
        self._read = read
        self._arguments = arguments
        self._range = headers.get(b"range")

    async def send(self, send: Send, *, with_content: bool) -> None:
        """Sends the head, and then piece by piece; without content only the head."""
        wanted = await self._wanted()
        start, end = wanted or (0, WHOLE_MAX)
        first = await self._piece(start, end if with_content else start)
        end = min(end, first.size_bytes)
        if wanted is not None and start >= end:
            raise OutOfRange(
                f"Expected a range of {first.size_bytes} bytes, but found one from byte {start} on",
                size_bytes=first.size_bytes,
            )
        headers = [
            (b"content-type", BYTES.encode()),
            (b"content-length", b"%d" % (end - start)),
            (b"accept-ranges", b"bytes"),
        ]
        if wanted is not None:
            span = b"bytes %d-%d/%d" % (start, end - 1, first.size_bytes)
            headers.append((b"content-range", span))
        status = 200 if wanted is None else 206
        await send({"type": "http.response.start", "status": status, "headers": headers})  # pyright: ignore[reportArgumentType]
        if with_content:
            await self._send_pieces(send, first, start, end)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_pieces(self, send: Send, piece: Piece, start: int, end: int) -> None:
        while piece.content:
            # Waits while the client does not read what it was sent before.
            await send({"type": "http.response.body", "body": piece.content, "more_body": True})
            start += len(piece.content)
            if start >= end:
                return
            piece = await self._piece(start, end)

    async def _piece(self, start: int, end: int) -> Piece:
        return await self._read(*self._arguments, start, min(end - start, CONTENT_PIECE_BYTES_MAX))

    async def _wanted(self) -> _Wanted | None:
        """The range that is asked for; None for all, as for several ranges or what is none."""
        found = _RANGE.fullmatch(self._range or b"")
        if found is None or found[0] == b"bytes=-":
            return None
        if not found[1]:  # the last so many bytes
            size_bytes = (await self._piece(0, 0)).size_bytes
            return _Wanted(max(size_bytes - int(found[2]), 0), size_bytes)
        start, end = int(found[1]), int(found[2]) + 1 if found[2] else WHOLE_MAX
        return _Wanted(start, end) if start < end else None
