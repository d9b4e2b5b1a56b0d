"""One endpoint: a row of the table that serves requests and writes the OpenAPI.

Most rows come from the entries of operations. Others are functions over the Api: the endpoints of
the Orchestration Cluster REST API, and a few that our own client has no use for.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from holdfast.gateway.access.needs import Need
from holdfast.gateway.operation import (
    JSON,
    Declared,
    Method,
    Namespace,
    Operation,
    entry_of,
    operations_of,
)

FORM = "multipart/form-data"

Form = Callable[[list[tuple[str, str, bytes]]], Any]
"""Makes a body of the parts of a form: the name, the file's name and the content of each."""

Call = Callable[..., Coroutine[Any, Any, Any]]
"""A handler: takes the Api, then the path's parameters and the body, where there are any."""

Bind = Callable[[Any], Call]
"""Gives the handler for an Api, which then takes the rest."""

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
    need: Need  # what somebody must be permitted, to be let in at all
    bind: Bind
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
    status: int  # of the answer to a request that was served
    is_ranged: bool = False  # a GET of something large, of which a request may want a part


def endpoint(
    method: Method,
    path: str,
    needs: Need,
    *,
    name: str | None = None,
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
            name=name or call.__name__,
            summary=_first_line(call.__doc__),
            need=needs,
            bind=partial(partial, call),
            parameters=tuple(_PARAMETER.findall(path)),
            pattern=_pattern(path),
            request=request,
            decoder=decoder,
            may_be_empty=may_be_empty,
            form=form,
            answer=None if answer is NoneType else answer,
            media_type=media_type,
            waits=waits,
            undo=undo,
            status=_status(answer, creates),
        )

    return of


def serves(declared: Declared, *, form: Form | None = None) -> Callable[[Call], Endpoint]:
    """Makes a handler the endpoint of an operation, whose entry says where and for whom.

    For an operation that takes or tells more over HTTP than in Python.
    """
    entry = entry_of(declared)
    assert entry.need is not None, f"{entry.name} has endpoints of its own"
    return endpoint(
        entry.method, entry.path, entry.need, name=entry.name, media_type=entry.media_type,
        form=form, creates=entry.creates,
    )  # fmt: skip


def endpoints_of(space: str, namespace: type[Namespace]) -> Iterator[Endpoint]:
    """The endpoints of a namespace, which the Api has under a name."""
    for method, entry in operations_of(namespace):
        if entry.need is None:
            continue
        request = entry.request
        yield Endpoint(
            method=entry.method,
            path=entry.path,
            name=entry.name,
            summary=_first_line(entry.declared.__doc__),
            need=entry.need,
            bind=_bind(space, method, entry),
            parameters=entry.in_path,
            pattern=_pattern(entry.path),
            request=request,
            decoder=msgspec.json.Decoder(request) if request and request is not bytes else None,
            may_be_empty=False,
            form=None,
            answer=bytes if entry.is_ranged else entry.result,
            media_type=entry.media_type,
            waits=entry.waits,
            undo=_undo(space, entry),
            status=_status(entry.hints["return"], entry.creates),
            is_ranged=entry.is_ranged,
        )


def _bind(space: str, method: str, entry: Operation) -> Bind:
    """The operation itself, or what puts its arguments and its answer into shapes."""
    found = attrgetter(f"{space}.{method}")
    fields, answer = entry.in_body if entry.spreads else (), entry.answer
    if not fields and answer is None:
        return found

    async def call(api: Any, *arguments: Any) -> Any:
        if fields:
            *in_path, body = arguments
            arguments = (*in_path, *[getattr(body, each) for each in fields])
        given = await found(api)(*arguments)
        return given if answer is None else answer(given)

    return partial(partial, call)


def _undo(space: str, entry: Operation) -> Undo | None:
    undo = entry.undo
    if undo is None:
        return None
    field = entry.answer.__struct_fields__[0] if entry.answer else None

    async def take_back(api: Any, answer: Any) -> None:
        await undo(getattr(api, space), getattr(answer, field) if field else answer)

    return take_back


def _status(answer: type[Any], creates: bool) -> int:
    if answer is NoneType:
        return 204
    return 201 if creates else 200


def _first_line(doc: str | None) -> str:
    return (doc or "").partition("\n")[0].rstrip(".")


def _pattern(path: str) -> re.Pattern[str]:
    """What a path looks like. Where it names one thing only, slashes may belong to the name."""
    texts = _PARAMETER.split(path)[::2]
    name = "(.*)" if len(texts) == 2 else "([^/]*)"
    return re.compile(name.join(map(re.escape, texts)))
