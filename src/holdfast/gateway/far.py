"""Ports that only one process of a node has, as the others call them.

A call from another process is the name of a method and its arguments in MessagePack; both sides
decode by the types that the port declares.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_type_hints

import msgspec

from holdfast.errors import InvalidArgument

Call = Callable[[bytes], Awaitable[bytes]]
"""Takes a call to the process that has the port, and gives the answer."""

P = TypeVar("P")

_encode = msgspec.msgpack.Encoder().encode
_called = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw]).decode


class _Method:
    """How the arguments and the answer of a method of the port are read."""

    def __init__(self, declared: Callable[..., Any]) -> None:
        hints = get_type_hints(declared)
        given = hints.pop("return")
        self.arguments = msgspec.msgpack.Decoder(tuple[*hints.values()]).decode
        self.answer = msgspec.msgpack.Decoder(None if given is NoneType else given).decode


@cache
def _methods(port: type[Any]) -> dict[str, _Method]:
    return {
        name: _Method(declared)
        for name, declared in vars(port).items()
        if callable(declared) and not name.startswith("_")
    }


def far(port: type[P], call: Call, prefix: str = "") -> P:
    """The port for a process that does not have it; `prefix` comes before its methods' names."""
    made: Any = _Far(port, call, prefix)
    return made


class _Far:
    """Asks the process that has the port."""

    def __init__(self, port: type[Any], call: Call, prefix: str) -> None:
        self._port = port
        self._call = call
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = _methods(self._port).get(name)
        if method is None:
            raise AttributeError(f"{self._port.__name__!r} has no attribute {name!r}")

        async def ask(*arguments: Any) -> Any:
            return method.answer(await self._call(_encode((self._prefix + name, arguments))))

        setattr(self, name, ask)
        return ask


Ports = Mapping[str, tuple[type[Any], object]]
"""By prefix, the ports that a process has, each as it is declared and what keeps it."""


async def answer_call(ports: Ports, call: bytes) -> bytes:
    """Answers a call from another process."""
    asked, arguments = _called(call)
    prefix, dot, name = asked.rpartition(".")
    port, keeps = ports.get(prefix + dot, (None, None))
    method = None if port is None else _methods(port).get(name)
    if method is None:
        raise InvalidArgument(f"Expected a call of this version, but found {asked!r}")
    return _encode(await getattr(keeps, name)(*method.arguments(arguments)))
