"""One answer on the wire: compressed where the browser takes it, with what keeps it safe there."""

import asyncio
import base64
import binascii
import gzip
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any

from holdfast.console.page import PageReply, PageStream
from holdfast.console.static_files import StaticFile
from holdfast.console.visitor import PageHead

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]
Headers = Iterable[tuple[str, str]]

NOTICE_COOKIE = "holdfast-notice"
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
_SAFE: tuple[tuple[str, str], ...] = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)
_PAGE = (("cache-control", "no-store"), ("vary", "accept-encoding, cookie, hx-request"))
_FOR_EVER = (("cache-control", "public, max-age=31536000, immutable"), ("vary", "accept-encoding"))
_COMPRESSED_BYTES_MIN = 1_024  # less fits in one packet anyway
_NOTICE_SECONDS = 60  # until the page that shows it is surely there
_NOTICE_CHARS_MAX = 500


def cookie(name: str, value: str, head: PageHead, seconds: int | None = None) -> tuple[str, str]:
    """A header that sets a cookie of the console which no script can read."""
    parts = [f"{name}={value}", "Path=/console", "HttpOnly", "SameSite=Lax"]
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    if head.is_secure:
        parts.append("Secure")
    return "set-cookie", "; ".join(parts)


def notice_in(head: PageHead) -> str | None:
    """What the request before had to tell."""
    try:
        text = base64.urlsafe_b64decode(head.cookies.get(NOTICE_COOKIE, "").encode("ascii"))
        return text.decode()[:_NOTICE_CHARS_MAX] or None
    except (binascii.Error, ValueError):
        return None


async def send_reply(reply: PageReply, head: PageHead, send: Send, more: Headers = ()) -> None:
    """Sends a page."""
    headers = [*reply.headers, *more]
    if reply.notice:
        told = base64.urlsafe_b64encode(reply.notice[:_NOTICE_CHARS_MAX].encode()).decode()
        headers.append(cookie(NOTICE_COOKIE, told, head, _NOTICE_SECONDS))
    body = reply.body
    if body:
        headers.append(("content-type", reply.media_type))
        if len(body) >= _COMPRESSED_BYTES_MIN and _takes_gzip(head):
            # in a thread a large page would wait longer for its turn than it takes
            body = gzip.compress(body, 1, mtime=0)
            headers.append(("content-encoding", "gzip"))
    await _send(send, head, reply.status, [*headers, *_PAGE], body)


async def send_static(file: StaticFile, head: PageHead, send: Send) -> None:
    """Sends a file that never changes."""
    headers = [("content-type", file.media_type), *_FOR_EVER]
    body = file.content
    if _takes_gzip(head):
        headers.append(("content-encoding", "gzip"))
        body = file.compressed
    await _send(send, head, 200, headers, body)


async def send_stream(stream: PageStream, receive: Receive, send: Send) -> None:
    """Sends events until they end or the visitor goes."""
    headers = [("content-type", "text/event-stream"), *_SAFE, *_PAGE]
    await send({"type": "http.response.start", "status": 200, "headers": _encoded(headers)})
    sending = asyncio.current_task()
    assert sending is not None, "a request is served by a task"
    watch = asyncio.ensure_future(_disconnection(receive))
    watch.add_done_callback(lambda done: None if done.cancelled() else sending.cancel())
    try:
        async with aclosing(stream.events) as events:  # pyright: ignore[reportArgumentType]
            async for each in events:
                await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except asyncio.CancelledError:
        if not watch.done():  # not the visitor: the server stops
            raise
    finally:
        watch.cancel()


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, head: PageHead, status: int, headers: Headers, body: bytes) -> None:
    sized = [*headers, *_SAFE, ("content-length", str(len(body)))]
    await send({"type": "http.response.start", "status": status, "headers": _encoded(sized)})
    body = b"" if head.method == "HEAD" else body
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


def _takes_gzip(head: PageHead) -> bool:
    return "gzip" in head.headers.get("accept-encoding", "")
