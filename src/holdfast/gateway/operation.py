"""One table of what can be asked of a node: an entry for each operation, and everything from it.

A namespace such as `api.batches` is a class whose methods are declared with `@operation`. The entry
says the method and path, what is needed, and by its type hints and docstring the shapes and the
summary. Beside it there is one function: the service's method that overrides it. The endpoint and
the OpenAPI (`endpoint.py`), the remote client (`client/remote.py`) and the tests' double come from
the entry; callers have one signature for a node in the process and for one elsewhere.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import NoneType
from typing import Any, Literal, Protocol, TypeVar, get_type_hints

import msgspec

from holdfast.engine.identity.values import Permission
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import Need

JSON = "application/json"
BYTES = "application/octet-stream"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Declared = Callable[..., Coroutine[Any, Any, Any]]
Undo = Callable[[Any, Any], Awaitable[None]]
"""Takes the namespace and takes back an answer that nobody is there to get."""

_D = TypeVar("_D", bound=Declared)
_IN_PATH = re.compile(r"{(\w+)[.\w]*}")  # `{key}`, or `{member.type}` for a part of an argument


class Namespace(Protocol):
    """A part of the Api: operations about one kind of thing.

    A service derives from it and overrides every operation; one that does not is refused as soon as
    its class is defined.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = [name for base in cls.__mro__[1:] for name in vars(base).get(_ENTRIES, {})]
        if missing := [name for name in declared if name not in _overridden(cls)]:
            raise TypeError(f"{cls.__name__} does not do {', '.join(missing)}")
        entries = {
            name: entry
            for name, each in vars(cls).items()
            if (entry := getattr(each, _ENTRY, None)) is not None
        }
        setattr(cls, _ENTRIES, entries)


_ENTRY, _ENTRIES = "__operation__", "__operations__"


def _overridden(cls: type[Namespace]) -> set[str]:
    return {
        name
        for base in cls.__mro__
        for name, each in vars(base).items()
        if callable(each) and not hasattr(each, _ENTRY)
    }


class Piece(msgspec.Struct, frozen=True):
    """A part of something large, and how large that is."""

    content: bytes
    size_bytes: int  # of the whole


class Resend(Enum):
    """Whether a client may send a request again that may have been done."""

    FREELY = "freely"  # it only reads, or twice is the same as once
    BY_ID = "by id"  # the node recognises it by its request id, and answers as it did then
    BY_LEASE = "by lease"  # a lease or a session says whether it counts: its caller repeats it
    NEVER = "never"


class OutOfRange(InvalidArgument):
    """A part was asked for that begins behind the end."""


@dataclass(frozen=True)
class Operation:
    """One entry of the table."""

    name: str  # in the OpenAPI
    method: Method
    path: str  # {names} are arguments
    need: Need | None  # None: the server has rows of its own for it
    declared: Declared
    body: Callable[..., msgspec.Struct | None] | None  # makes the body of the arguments
    answer: type[msgspec.Struct] | None  # has what the method gives as its first field
    media_type: str
    waits: bool  # a long poll: the body's wait_ms says how long, and at_once() does without
    takes_ms: Callable[[Any], int] | None  # how long what a body asks for may take
    undo: Undo | None
    creates: bool  # something new, which the answer shows
    is_ranged: bool  # a part of something large, which a request names in the header Range
    resend: Resend | None = None  # None: as what it needs says

    @cached_property
    def resends(self) -> Resend:
        """Whether it may be sent again: readers freely, workers by their leases."""
        if self.resend is not None:
            return self.resend
        needed = [each for _, each in self.need] if isinstance(self.need, tuple) else []
        if self.method == "GET" or (needed and all(_reads(each) for each in needed)):
            return Resend.FREELY
        is_work = bool(needed) and all(each is Permission.WORK for each in needed)
        return Resend.BY_LEASE if is_work else Resend.BY_ID

    @cached_property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.declared)

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.declared)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names of the method's arguments, in their order."""
        return tuple(self.signature.parameters)[1:]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(_IN_PATH.findall(self.path))

    @cached_property
    def in_body(self) -> tuple[str, ...]:
        """The arguments that are the fields of the body, or the one that is the body itself."""
        if self.is_ranged:
            return ()
        return tuple(each for each in self.arguments if each not in self.in_path)

    @cached_property
    def spreads(self) -> bool:
        """Whether the body's fields are the arguments."""
        return isinstance(self.body, type)

    @cached_property
    def request(self) -> type[Any] | None:
        """The shape of the body."""
        if self.spreads:
            return self.body  # pyright: ignore[reportReturnType]
        return self.hints[self.in_body[0]] if self.in_body else None

    @cached_property
    def result(self) -> type[Any] | None:
        """The shape of the answer on the wire; None if there is none."""
        given = self.hints["return"]
        return self.answer or (None if given is NoneType else given)


def _reads(permission: Permission) -> bool:
    return permission.startswith("READ")


def operation(
    name: str,
    method: Method,
    path: str,
    needs: Need,
    *,
    body: Callable[..., msgspec.Struct | None] | None = None,
    answer: type[msgspec.Struct] | None = None,
    media_type: str = JSON,
    waits: bool = False,
    takes_ms: Callable[[Any], int] | None = None,
    undo: Undo | None = None,
    creates: bool = False,
    is_ranged: bool = False,
    resend: Resend | None = None,
) -> Callable[[_D], _D]:
    """Makes a method of a namespace an entry of the table.

    What is not in the path is the body: one argument that is a shape or bytes, or the fields of
    `body`, if that is a shape, or what the function `body` makes of all arguments. A ranged one
    takes `start` and `bytes_max` behind what is in the path, and gives a `Piece`.
    """

    def of(declared: _D) -> _D:
        entry = Operation(
            name, method, path, needs, declared, body, answer, media_type, waits, takes_ms, undo,
            creates, is_ranged, resend,
        )  # fmt: skip
        setattr(declared, _ENTRY, entry)
        return declared

    return of


def asks(
    method: Method, path: str, *, body: Callable[..., msgspec.Struct | None] | None = None
) -> Callable[[_D], _D]:
    """An operation that several endpoints serve, each with a path and a need of its own.

    `{type_}` in the path is an argument; a test finds the endpoint for each that it may be.
    """

    def of(declared: _D) -> _D:
        entry = Operation(
            declared.__name__, method, path, None, declared, body, None, JSON, False, None, None,
            False, False,
        )  # fmt: skip
        setattr(declared, _ENTRY, entry)
        return declared

    return of


def entry_of(declared: Declared) -> Operation:
    """The entry of a declared method."""
    return getattr(declared, _ENTRY)


def operations_of(namespace: type[Namespace]) -> Iterator[tuple[str, Operation]]:
    """What a namespace declares, by the names of its methods."""
    return iter(getattr(namespace, _ENTRIES).items())
