"""One endpoint of the API: a row of the table that serves requests and writes the OpenAPI."""

import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
from litestar.types import Method

JSON = "application/json"
FORM = "multipart/form-data"

Form = Callable[[list[tuple[str, str, bytes]]], Any]
"""Makes a body of the parts of a form: the name, the file's name and the content of each."""

Call = Callable[..., Coroutine[Any, Any, Any]]
"""A handler: takes the Api, then the path's parameters and the body, where there are any."""

Undo = Callable[[Any, Any], Awaitable[None]]
"""Takes the Api and takes back an answer that nobody is there to get."""

_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path."""

    method: Method
    path: str  # with {parameters}
    name: str
    summary: str
    call: Call
    parameters: tuple[str, ...]  # the names of the path's parameters
    pattern: re.Pattern[str]  # of a path with its parameters
    request: type[Any] | None  # the shape of the body
    decoder: msgspec.json.Decoder[Any] | None  # of that shape; made once, because making it is slow
    may_be_empty: bool  # a request may come without a body
    form: Form | None  # how a form becomes the body, where one is taken beside JSON
    answer: type[Any] | None
    media_type: str
    waits: bool  # a long poll: the body's wait_ms says how long, and at_once() does without
    undo: Undo | None
    creates: bool = False  # something new, which the answer shows

    @property
    def status(self) -> int:
        if self.answer is None:
            return 204
        return 201 if self.creates else 200


def endpoint(
    method: Method,
    path: str,
    *,
    media_type: str = JSON,
    waits: bool = False,
    undo: Undo | None = None,
    form: Form | None = None,
    creates: bool = False,
) -> Callable[[Call], Endpoint]:
    """Makes a handler an endpoint; its type hints say which shapes go in and out."""

    def of(call: Call) -> Endpoint:
        hints = get_type_hints(call)
        request, answer = hints.get("body"), hints["return"]
        decoder = msgspec.json.Decoder(request) if request else None
        may_be_empty = NoneType in get_args(request)
        if may_be_empty:
            [request] = [each for each in get_args(request) if each is not NoneType]
        return Endpoint(
            method=method,
            path=path,
            name=call.__name__,
            summary=(call.__doc__ or "").partition("\n")[0].rstrip("."),
            call=call,
            parameters=tuple(_PARAMETER.findall(path)),
            pattern=_pattern(path),
            request=request,
            decoder=decoder,
            may_be_empty=may_be_empty,
            form=form,
            answer=None if answer is type(None) else answer,
            media_type=media_type,
            waits=waits,
            undo=undo,
            creates=creates,
        )

    return of


def _pattern(path: str) -> re.Pattern[str]:
    """What a path looks like. Where it names one thing only, slashes may belong to the name."""
    texts = _PARAMETER.split(path)[::2]
    name = "(.*)" if len(texts) == 2 else "([^/]*)"
    return re.compile(name.join(map(re.escape, texts)))
