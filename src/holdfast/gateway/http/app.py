"""The app that serves the API."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from litestar import Litestar, route
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Method, Receive, Scope, Send
from litestar.utils.path import normalize_path

from holdfast.gateway import checks
from holdfast.gateway.access.asking import asking, requesting
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.api import Api
from holdfast.gateway.as_of import noted_as_of
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.http.exchange import (
    Disconnected,
    body_of,
    check_sender,
    parameters_of,
    send_answer,
)
from holdfast.gateway.http.openapi import openapi_document
from holdfast.gateway.http.origins import Origins
from holdfast.gateway.http.polls import LongPolls
from holdfast.gateway.http.problems import answer_problem, send_problem
from holdfast.gateway.http.ranges import RangedAnswer
from holdfast.limits import APPEND_BYTES_MAX
from holdfast.metrics import HttpMetrics

BODY_BYTES_MAX = APPEND_BYTES_MAX  # more could not be appended anyway
_PREFLIGHT_SECONDS = b"600"  # for how long a browser need not ask again

REQUEST_ID = b"holdfast-request-id"
_SHUT = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

_encode = msgspec.json.Encoder().encode


def create_app(
    api: Api,
    origins: Origins,
    metrics: HttpMetrics,
    *,
    polls: LongPolls | None = None,
    body_bytes_max: int = BODY_BYTES_MAX,
    console: "WebConsole | None" = None,
) -> ASGIApp:
    """The API over HTTP, and the console's pages beside it.

    Who runs the app may end its long polls by the `polls` given to it.
    """
    serve = _Service(api, polls or LongPolls(), body_bytes_max)
    by_path: defaultdict[str, dict[Method, Endpoint]] = defaultdict(dict)
    for each in (*ENDPOINTS, *_openapi_endpoints()):
        by_path[each.path][each.method] = each
    handlers = {path: _handler(serve, by_method) for path, by_method in by_path.items()}
    # What has no parameters needs no router, which costs 10 us of a request's 40, and 0.4 ms of a
    # node's start for each path.
    plain = {path: handler for path, handler in handlers.items() if "{" not in path}
    routed = Litestar(
        [
            _route(path, list(by_path[path]), handlers[path])
            for path in handlers
            if path not in plain
        ],
        exception_handlers={Exception: answer_problem},
        openapi_config=None,  # it would not see our handlers; the document comes from the table
        logging_config=None,
        debug=False,
        pdb_on_exception=False,
    )
    return _Guard(routed, plain, origins, metrics, console)


class WebConsole(Protocol):
    """Pages for people, which somebody else makes: the gateway checks who may send requests."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def end(self) -> None:
        """The server closes: what is still being sent ends."""


class _Service:
    """Serves one request of an endpoint."""

    def __init__(self, api: Api, polls: LongPolls, body_bytes_max: int) -> None:
        self._api = api
        self._polls = polls
        self._body_bytes_max = body_bytes_max

    async def __call__(self, end: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        check_sender(end, headers)
        if self._api.access is None:
            return await self._answer_once(end, headers, scope, receive, send)
        authorization, client = headers.get(b"authorization"), scope["client"]
        address = client[0] if client else ""
        with asking(await self._api.access.admit(end.need, authorization, address)):
            await self._answer_once(end, headers, scope, receive, send)

    async def _answer_once(
        self, end: Endpoint, headers: dict[bytes, bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Does it once, if the request says by which id it will come again."""
        request_id = headers.get(REQUEST_ID)
        if request_id is None:
            return await self._answer(end, headers, scope, receive, send)
        with requesting(checks.name(request_id.decode("latin-1"), REQUEST_ID.decode())):
            await self._answer(end, headers, scope, receive, send)

    async def _answer(
        self, end: Endpoint, headers: dict[bytes, bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        arguments: list[Any] = []
        try:
            if end.parameters:
                arguments += parameters_of(end, scope)
            if end.is_ranged:
                answer = RangedAnswer(end.bind(self._api), arguments, headers)
                return await answer.send(send, with_content=scope["method"] != "HEAD")  # pyright: ignore[reportGeneralTypeIssues]
            if end.decoder is not None or end.request is bytes:
                arguments.append(await body_of(end, headers, receive, self._body_bytes_max))
            if end.waits and arguments[-1].wait_ms > 0:
                answer = await self._poll(end, arguments, receive)
            else:
                answer = await end.bind(self._api)(*arguments)
        except Disconnected:
            return None
        if answer is None:
            return await send_answer(send, end.status, end.media_type, b"")
        content = answer if type(answer) is bytes else _encode(answer)
        await send_answer(send, end.status, end.media_type, content, noted_as_of())

    async def _poll(self, end: Endpoint, arguments: list[Any], receive: Receive) -> Any:
        """Waits as long as the body says, unless the client goes or the server closes."""
        if not self._polls.ended:
            outcome = await self._polls.wait(end.bind(self._api)(*arguments), receive)
            if outcome.disconnected:
                if end.undo is not None and outcome.has_answer:
                    await end.undo(self._api, outcome.answer())
                raise Disconnected
            if not (outcome.cancelled and self._polls.ended):
                return outcome.answer()
        return await end.bind(self._api)(*arguments[:-1], arguments[-1].at_once())


def _handler(serve: _Service, by_method: dict[Method, Endpoint]) -> ASGIApp:
    allowed = {"allow": ", ".join(by_method)}
    get = by_method.get("GET")
    if get is not None and get.is_ranged:
        by_method = {**by_method, "HEAD": get}

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]  # pyright: ignore[reportGeneralTypeIssues]
        found = by_method.get(method)
        if found is None:
            raise MethodNotAllowedException(headers=allowed)
        await serve(found, scope, receive, send)

    return handle


def _route(path: str, methods: list[Method], handle: ASGIApp) -> HTTPRouteHandler:
    # Litestar's ASGI routes take no parameters, so this goes through one of its HTTP routes, which
    # costs 60 us more; the paths with parameters are those that are about one thing at a time
    async def hand_over() -> ASGIApp:
        return handle

    methods = [*methods, "HEAD"] if "GET" in methods else methods
    return route(_litestar_path(path), http_method=methods, status_code=200)(hand_over)


def _litestar_path(path: str) -> str:
    # a schedule's id is the user's and may hold slashes, and so may the name of a blob
    return (
        path.replace("{schedule_id}", "{schedule_id:path}")
        .replace("{blob}", "{blob:path}")
        .replace("}", ":str}")
        .replace(":path:str}", ":path}")
    )


@functools.cache
def _document() -> bytes:
    return _encode(openapi_document(ENDPOINTS))


def _openapi_endpoints() -> list[Endpoint]:
    async def get_openapi(api: Api) -> bytes:
        return await asyncio.to_thread(_document)  # the first one takes tens of milliseconds

    paths = ("/openapi", "/openapi/openapi.json")
    return [endpoint("GET", path, Everyone.KNOWN)(get_openapi) for path in paths]


# --- what every request passes first ------------------------------------------------------------


class _Guard:
    """An ASGI app that hands on what may pass: to the handler of a path, or to a router."""

    def __init__(
        self,
        router: ASGIApp,
        plain: Mapping[str, ASGIApp],
        origins: Origins,
        metrics: HttpMetrics,
        console: "WebConsole | None" = None,
    ) -> None:
        self._router = router
        self._console = console
        self._plain = plain
        self._origins = origins
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            method, version = scope["method"], scope["http_version"]  # pyright: ignore[reportGeneralTypeIssues]
            page = self._origins.check(method, version, scope["headers"])
        except HTTPException as error:
            self._metrics.refuse("origin")
            return await send_problem(error, scope, _shut(send))
        if page is not None:
            if method == "OPTIONS":
                return await _allow(page, scope, send)
            send = _for_page(page, send)
        path = scope["path"]
        handle = self._plain.get(path)
        if handle is None and ("//" in path or path.endswith("/")):  # as the router has it
            handle = self._plain.get(normalize_path(path))
        if handle is None and self._console is not None and _is_page(path):
            return await self._console(scope, receive, send)
        if handle is None:
            return await self._router(scope, receive, send)
        try:
            await handle(scope, receive, send)
        except Exception as error:
            await send_problem(error, scope, send)


def _is_page(path: str) -> bool:
    return path == "/" or path == "/console" or path.startswith("/console/")


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


def _shut(send: Send) -> Send:
    """An answer for a page that has no business here: it is shown, framed and kept by nobody."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_SHUT]}
        await send(message)

    return sending


def _for_page(page: bytes, send: Send) -> Send:
    """Lets a page read the answer, and nobody mistake it for an answer to another page."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_naming(page)]}
        await send(message)

    return sending


def _naming(page: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", page), (b"vary", b"origin")]
