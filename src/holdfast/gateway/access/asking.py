"""The partitions as the asker sees them: commands carry who asked, and reading has its bounds.

Who asks is known from the moment a request is let in until it is answered. What the node does by
itself, or for a program that it is embedded in, is asked by nobody and bounded by nothing.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeVar

import msgspec

from holdfast.engine.asker import Asker, asker_of
from holdfast.engine.identity.guard import refused
from holdfast.engine.identity.queries import FindMissing
from holdfast.engine.identity.values import DECIDING_PARTITION
from holdfast.engine.kernel import Command, Reply, Required
from holdfast.engine.kernel.query import Query
from holdfast.errors import Forbidden
from holdfast.limits import BULK_ITEMS_MIN
from holdfast.partitions import Partitions
from holdfast.records import partition_for

A = TypeVar("A")

_ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def asking(asker: Asker | None) -> Iterator[None]:
    """Whatever is done inside is asked for by somebody."""
    token = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(token)


class _Request:
    """A request that may be sent again: its commands are numbered, so that they are known again."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self._last = 0

    def next(self) -> str:
        self._last += 1
        return f"{self.id}/{self._last}"


_REQUEST: ContextVar[_Request | None] = ContextVar("request", default=None)


@contextmanager
def requesting(id_: str) -> Iterator[None]:
    """Whatever is asked for inside is done once, however often a request with this id comes.

    Ids are the asker's own: nobody is answered what somebody else was.
    """
    asker = _ASKER.get()
    owner = "" if asker is None else f"{asker.type}:{asker.sub}"
    token = _REQUEST.set(_Request(f"{owner}/{id_}"))
    try:
        yield
    finally:
        _REQUEST.reset(token)


def asker_now() -> Asker | None:
    """Who asks for what is being done; None if nobody does."""
    return _ASKER.get()


def claims_now() -> dict[str, Any] | None:
    """The same as a record carries it."""
    asker = _ASKER.get()
    return None if asker is None else msgspec.to_builtins(asker)


def is_asker(claims: Mapping[str, Any] | None) -> bool:
    """Whether the claims name the asker: the name alone may be a user's or a client's."""
    asker = _ASKER.get()
    if asker is None or not claims:
        return asker is None
    named = asker_of(dict(claims))
    return (named.type, named.sub) == (asker.type, asker.sub)


class Asked:
    """The partitions, to which the asker is known."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self.count = partitions.count
        self._turn = count()
        self.follow = partitions.follow
        self.serve = partitions.serve
        self.placement = partitions.placement

    # --- where things are ---------------------------------------------------------------------

    @property
    def near(self) -> Sequence[int]:
        """The partitions of this member."""
        return self._partitions.near

    def anywhere(self, items: int = 1) -> int:
        """A partition for what may go to any: those of this member take turns, if it has any.

        Many items are worth the way to another process of the machine, which may be idle.
        """
        request = _REQUEST.get()
        if request is not None:  # sent again, it may come to another member
            return partition_for(request.id, self.count)
        partitions = self._partitions
        near = partitions.near if items < BULK_ITEMS_MIN else partitions.of_machine
        near = near or range(1, self.count + 1)
        return near[next(self._turn) % len(near)]

    # --- asking -------------------------------------------------------------------------------

    def submit(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> "asyncio.Future[list[Reply]]":
        """Hands commands to a partition, in the asker's name."""
        return self._partitions.submit(partition, _signed(commands), size_bytes)

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        """Hands commands to several partitions, in the asker's name."""
        if _ASKER.get() is not None or _REQUEST.get() is not None:
            commands = {partition: _signed(group) for partition, group in commands.items()}
        return self._partitions.submit_all(commands, size_bytes)

    def activate(self, partition: int, command: Command) -> "asyncio.Future[list[Reply]]":
        """Asks a partition for jobs, in the asker's name."""
        [signed] = _signed([command])
        return self._partitions.activate(partition, signed)

    # --- reading ------------------------------------------------------------------------------

    def ask(self, partition: int, query: Query[A]) -> Coroutine[Any, Any, A]:
        """What a partition answers to the asker."""
        return self._partitions.ask(partition, query, _ASKER.get())

    async def ask_all(self, query: Query[A]) -> list[A]:
        """What all partitions answer, in their order."""
        if self.count == 1:
            return [await self.ask(1, query)]
        everywhere = range(1, self.count + 1)
        return await asyncio.gather(*(self.ask(each, query) for each in everywhere))

    def ask_any(self, query: Query[A]) -> Coroutine[Any, Any, A]:
        """What is the same on all partitions: the one that decides it, or one that is here."""
        near = self.near
        partition = DECIDING_PARTITION if DECIDING_PARTITION in near or not near else near[0]
        return self.ask(partition, query)

    async def check(self, *required: Required) -> None:
        """Forbidden, unless the asker has all of these permissions."""
        asker = _ASKER.get()
        if asker is None:
            return
        missing = await self.ask_any(FindMissing(required))
        if missing is not None:
            raise Forbidden(refused(asker.sub, missing.required, missing.id))


def _signed(commands: Sequence[Command]) -> Sequence[Command]:
    claims, request = claims_now(), _REQUEST.get()
    if request is not None:
        commands = [msgspec.structs.replace(each, request_id=request.next()) for each in commands]
    if claims is None:
        return commands
    return [
        msgspec.structs.replace(each, claims=claims) if each.claims is None else each
        for each in commands
    ]
