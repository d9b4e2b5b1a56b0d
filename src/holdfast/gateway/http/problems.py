"""Errors as RFC 9457 problem JSON."""

from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.types import Scope, Send

from holdfast.errors import Code, HoldfastError
from holdfast.gateway.access.guesses import TooManyGuesses
from holdfast.gateway.operation import OutOfRange
from holdfast.gateway.shapes import Problem
from holdfast.logs import log

PROBLEM_JSON = "application/problem+json"

STATUS_OF_CODE: dict[Code, int] = {
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHORIZED: 401,
    Code.FORBIDDEN: 403,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.INVALID_STATE: 409,
    Code.ABORTED: 409,
    Code.RESOURCE_EXHAUSTED: 503,
    Code.UNAVAILABLE: 503,
    Code.MOVED: 503,
    Code.UNKNOWN: 503,
    Code.DEADLINE_EXCEEDED: 504,
    Code.DATA_LOSS: 500,
    Code.TASK_FAILED: 500,
    Code.INTERNAL: 500,
}

STATUS_OF_KIND: dict[type[HoldfastError], int] = {
    TooManyGuesses: HTTPStatus.TOO_MANY_REQUESTS,
    OutOfRange: HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
}
"""Errors that HTTP has a better word for than for others of their code."""

_UNAVAILABLE_SECONDS = 1  # until what is not there may have come: tables, a partition's leader

_encode = msgspec.json.Encoder().encode


def answer_problem(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The answer to a request that could not be served. A bug is logged, and told only as such."""
    problem, headers = _noted(error, request.scope)
    return Response(
        _encode(problem), status_code=problem.status, headers=headers, media_type=PROBLEM_JSON
    )


async def send_problem(error: Exception, scope: Scope, send: Send) -> None:
    """The same where no router is between."""
    problem, named = _noted(error, scope)
    body = _encode(problem)
    named |= {"content-type": PROBLEM_JSON, "content-length": str(len(body))}
    headers = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})  # pyright: ignore[reportArgumentType]
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _noted(error: Exception, scope: Scope) -> tuple[Problem, dict[str, str]]:
    method: str = scope["method"]  # pyright: ignore[reportGeneralTypeIssues]
    problem, headers = problem_of(error, method, scope["path"])
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request failed", method=method, path=problem.instance, exc_info=error)
    return problem, headers


def problem_of(error: Exception, method: str, path: str) -> tuple[Problem, dict[str, str]]:
    """An error as a problem, and the headers that go with it."""
    if isinstance(error, HoldfastError):
        return _of_holdfast(error, path)
    if isinstance(error, HTTPException):
        return _of_http(error, method, path)
    return _problem(500, Code.INTERNAL, "The node has a bug; see its log", path), {}


def refusal(status: int, code: Code, detail: str) -> bytes:
    """A whole answer, head and body, to a client whose request was not understood or not read."""
    body = _encode(_problem(status, code, detail, ""))
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"content-type: {PROBLEM_JSON}",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    if code is Code.RESOURCE_EXHAUSTED:
        lines.append(f"retry-after: {_UNAVAILABLE_SECONDS}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _of_holdfast(error: HoldfastError, path: str) -> tuple[Problem, dict[str, str]]:
    fields = {
        name: value
        for name, value in error.fields.items()
        if isinstance(value, str | int | float | None)  # not what is only of use inside the node
    }
    retry_after_ms = fields.pop("retry_after_ms", None)
    headers: dict[str, str] = {}
    if retry_after_ms is not None or error.code is Code.RESOURCE_EXHAUSTED:
        retry_after_ms = int(retry_after_ms or 0)
        headers["retry-after"] = str(max(1, -(-retry_after_ms // 1_000)))  # whole seconds, up
    elif error.code is Code.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="holdfast"'
    elif STATUS_OF_CODE[error.code] == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = str(_UNAVAILABLE_SECONDS)
    status = STATUS_OF_KIND.get(type(error), STATUS_OF_CODE[error.code])
    problem = _problem(status, error.code, error.message, path, retry_after_ms, fields)
    return problem, headers


def _of_http(error: HTTPException, method: str, path: str) -> tuple[Problem, dict[str, str]]:
    status, code, detail = error.status_code, Code.INVALID_ARGUMENT, error.detail
    if status == HTTPStatus.NOT_FOUND:
        code, detail = Code.NOT_FOUND, f"Expected a path of the API, but found {path}; see /openapi"
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"Expected another method on {path}, but found {method}"
    elif status in (HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST):
        code = Code.FORBIDDEN
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        code = Code.INTERNAL
    return _problem(status, code, detail, path), dict(error.headers or {})


def _problem(
    status: int,
    code: Code,
    detail: str,
    path: str,
    retry_after_ms: int | None = None,
    fields: dict[str, Any] | None = None,
) -> Problem:
    return Problem(
        type=f"urn:holdfast:{code.lower().replace('_', '-')}",
        title=code.capitalize().replace("_", " "),
        status=status,
        detail=detail,
        code=code,
        instance=path,
        retry_after_ms=retry_after_ms,
        fields=fields or {},
    )
