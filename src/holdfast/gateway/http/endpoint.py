"""One endpoint of the API: a row of the table that serves requests and writes the OpenAPI."""

import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec
from litestar.types import Method

from holdfast.gateway.api import Api

JSON = "application/json"

Call = Callable[..., Coroutine[Any, Any, Any]]
"""A handler: takes the Api, then the path's parameter and the body, where there is one."""

Undo = Callable[[Api, Any], Awaitable[None]]
"""Takes back an answer that nobody is there to get."""

_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path."""

    method: Method
    path: str  # with at most one {parameter}
    name: str
    summary: str
    call: Call
    parameter: str | None  # the name of the path's parameter
    request: type[Any] | None  # the shape of the body
    decoder: msgspec.json.Decoder[Any] | None  # of that shape; made once, because making it is slow
    answer: type[Any] | None
    media_type: str
    waits: bool  # a long poll: the body says how long by its wait_ms
    undo: Undo | None

    @property
    def status(self) -> int:
        return 204 if self.answer is None else 200


def endpoint(
    method: Method,
    path: str,
    *,
    media_type: str = JSON,
    waits: bool = False,
    undo: Undo | None = None,
) -> Callable[[Call], Endpoint]:
    """Makes a handler an endpoint; its type hints say which shapes go in and out."""

    def of(call: Call) -> Endpoint:
        hints = get_type_hints(call)
        parameter = _PARAMETER.search(path)
        request, answer = hints.get("body"), hints["return"]
        return Endpoint(
            method=method,
            path=path,
            name=call.__name__,
            summary=(call.__doc__ or "").partition("\n")[0].rstrip("."),
            call=call,
            parameter=parameter[1] if parameter else None,
            request=request,
            decoder=msgspec.json.Decoder(request) if request else None,
            answer=None if answer is type(None) else answer,
            media_type=media_type,
            waits=waits,
            undo=undo,
        )

    return of
