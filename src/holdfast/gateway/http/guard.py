"""What every request passes before it is routed: the check of where it comes from."""

from typing import Any

import msgspec
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway.http.origins import Origins
from holdfast.gateway.http.problems import PROBLEM_JSON, problem_of
from holdfast.metrics import HttpMetrics

_PREFLIGHT_SECONDS = b"600"  # for how long a browser need not ask again

_encode = msgspec.json.Encoder().encode


class Guard:
    """An ASGI app that hands on to another what may pass."""

    def __init__(self, app: ASGIApp, origins: Origins, metrics: HttpMetrics) -> None:
        self._app = app
        self._origins = origins
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            method, version = scope["method"], scope["http_version"]  # pyright: ignore[reportGeneralTypeIssues]
            page = self._origins.check(method, version, scope["headers"])
        except HTTPException as error:
            self._metrics.refuse("origin")
            return await _refuse(error, scope, send)
        if page is None:
            return await self._app(scope, receive, send)
        if scope["method"] == "OPTIONS":  # pyright: ignore[reportGeneralTypeIssues]
            return await _allow(page, scope, send)
        await self._app(scope, receive, _for_page(page, send))


async def _refuse(error: HTTPException, scope: Scope, send: Send) -> None:
    method: str = scope["method"]  # pyright: ignore[reportGeneralTypeIssues]
    problem, _ = problem_of(error, method, scope["path"])
    body = _encode(problem)
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", PROBLEM_JSON.encode())]
    await _send(send, problem.status, headers, body)


async def _allow(page: bytes, scope: Scope, send: Send) -> None:
    """Tells a browser that a page may send the request that it is about to send."""
    asked = dict(scope["headers"])
    headers = [
        *_naming(page),
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", asked.get(b"access-control-request-headers", b"")),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    ]
    await _send(send, 204, headers, b"")


def _for_page(page: bytes, send: Send) -> Send:
    """Lets a page read the answer, and nobody mistake it for an answer to another page."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_naming(page)]}
        await send(message)

    return sending


def _naming(page: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", page), (b"vary", b"origin")]


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})  # pyright: ignore[reportArgumentType]
    await send({"type": "http.response.body", "body": body, "more_body": False})
