"""What every request passes first: the check of where it comes from, and the way to its handler."""

from collections.abc import Mapping
from typing import Any

from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway.http.origins import Origins
from holdfast.gateway.http.problems import send_problem
from holdfast.metrics import HttpMetrics

_PREFLIGHT_SECONDS = b"600"  # for how long a browser need not ask again


class Guard:
    """An ASGI app that hands on what may pass: to the handler of a path, or to a router."""

    def __init__(
        self,
        router: ASGIApp,
        plain: Mapping[str, ASGIApp],
        origins: Origins,
        metrics: HttpMetrics,
    ) -> None:
        self._router = router
        self._plain = plain
        self._origins = origins
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            method, version = scope["method"], scope["http_version"]  # pyright: ignore[reportGeneralTypeIssues]
            page = self._origins.check(method, version, scope["headers"])
        except HTTPException as error:
            self._metrics.refuse("origin")
            return await send_problem(error, scope, send)
        if page is not None:
            if method == "OPTIONS":
                return await _allow(page, scope, send)
            send = _for_page(page, send)
        handle = self._plain.get(scope["path"])
        if handle is None:
            return await self._router(scope, receive, send)
        try:
            await handle(scope, receive, send)
        except Exception as error:
            await send_problem(error, scope, send)


async def _allow(page: bytes, scope: Scope, send: Send) -> None:
    """Tells a browser that a page may send the request that it is about to send."""
    asked = dict(scope["headers"])
    headers = [
        *_naming(page),
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", asked.get(b"access-control-request-headers", b"")),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})  # pyright: ignore[reportArgumentType]
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _for_page(page: bytes, send: Send) -> Send:
    """Lets a page read the answer, and nobody mistake it for an answer to another page."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_naming(page)]}
        await send(message)

    return sending


def _naming(page: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", page), (b"vary", b"origin")]
