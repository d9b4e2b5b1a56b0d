"""The namespaces of a node elsewhere: each operation is a request, made from its entry."""

import re
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from holdfast.gateway.operation import Namespace, Operation, Resend, operations_of
from holdfast.limits import REQUEST_ITEMS_MAX

if TYPE_CHECKING:
    from holdfast.client.remote import RemoteApi


@cache
def remote_namespace(declared: type[Namespace]) -> "Callable[[RemoteApi], Namespace]":
    """A namespace whose every operation is a request, as its entry in the table says."""
    methods = {name: _asking(entry) for name, entry in operations_of(declared)}
    return type(f"Remote{declared.__name__}", (_RemoteNamespace, declared), methods)


class _RemoteNamespace:
    def __init__(self, api: "RemoteApi") -> None:
        self.api = api


def _asking(entry: Operation) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The method that sends the request of an operation."""
    names = entry.arguments
    shape = entry.result
    field = entry.answer.__struct_fields__[0] if entry.answer else None

    async def ask(self: _RemoteNamespace, *given: Any, **named: Any) -> Any:
        if named or len(given) != len(names):
            bound = entry.signature.bind(self, *given, **named)
            bound.apply_defaults()
            given = bound.args[1:]
        arguments = dict(zip(names, given, strict=True))
        if entry.is_ranged:
            return await self.api.fetch(_path(entry, arguments), *given[-2:])
        body = _body(entry, arguments)
        wait_ms = body.wait_ms if entry.waits else entry.takes_ms(body) if entry.takes_ms else 0
        path = _path(entry, arguments) if entry.in_path else entry.path
        content = await self.api.send(entry, path, body, wait_ms, _resend(entry, given, self.api))
        if shape is None or shape is bytes:
            return None if shape is None else content
        answer = self.api.decoded(content, shape)
        return answer if field is None else getattr(answer, field)

    return ask


def _resend(entry: Operation, given: Sequence[Any], api: "RemoteApi") -> Resend:
    """Whether this request may be sent again.

    The node remembers each item of a request by an id. For many items that costs as much as the
    items: a single node is not asked to. Then they are repeated if each has a key of its own.
    """
    if entry.resends is not Resend.BY_ID or api.addresses.are_several:
        return entry.resends
    for items in given:
        if isinstance(items, list | tuple) and len(items) > REQUEST_ITEMS_MAX:
            has_keys = all(getattr(each, "key", None) for each in items)
            return Resend.FREELY if has_keys else Resend.NEVER
    return Resend.BY_ID


def _body(entry: Operation, arguments: dict[str, Any]) -> Any:
    if entry.body is None:
        return arguments[entry.in_body[0]] if entry.in_body else None
    if not entry.spreads:
        return entry.body(*arguments.values())
    return entry.body(**{name: _listed(arguments[name]) for name in entry.in_body})


def _listed(value: Any) -> Any:
    """A sequence of any kind as a list, which can be written as JSON."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _path(entry: Operation, arguments: dict[str, Any]) -> str:
    """The path with what it names in it."""

    def part(found: re.Match[str]) -> str:
        name, _, attribute = found[1].partition(".")
        value = getattr(arguments[name], attribute) if attribute else arguments[name]
        return quote(value.lower() if isinstance(value, StrEnum) else value, safe="")

    return _PART.sub(part, entry.path)


_PART = re.compile(r"{([\w.]+)}")
