"""The port through which everything above the engine uses partitions.

It does not say where a partition is: in this process, in another of the machine, or on another
machine. Its users never see a processor, a view of the state or a column family.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from holdfast.engine.asker import Asker
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.kernel.query import Query

A = TypeVar("A")

ANYWHERE = 0  # no partition has this number


class EffectTopic(NamedTuple):
    """What somebody wants to be told of: effects of one type, all of them or about one thing."""

    effect: type[Any]
    about: int | str | None = None
    partition: int = ANYWHERE  # the one that they come from


Tell = Callable[[Any], None]
"""Called with an effect; with None when some may have been missed: ask again."""


class Waiting(Protocol):
    """Workers that wait for jobs."""

    def wants(self, type_: str) -> bool:
        """Whether one waits for jobs of a type."""
        ...

    def next(self, type_: str) -> Submission | None:
        """The command of the one that waits longest, which waits no longer."""
        ...


class Placement(msgspec.Struct, frozen=True):
    """Who owns a partition, and since which change of its owner."""

    partition: int
    member: str
    epoch: int


class Partitions(Protocol):
    """All partitions of the node."""

    @property
    def count(self) -> int:
        """How many there are; they have the numbers from 1 on. It never changes."""
        ...

    @property
    def near(self) -> Sequence[int]:
        """Those of this member, in order: what may go anywhere goes there, to few large steps."""
        ...

    @property
    def of_machine(self) -> Sequence[int]:
        """Those of this machine that can be reached now: bulk work is divided among them."""
        ...

    def placement(self) -> list[Placement]:
        """Who owns which, as far as this member knows."""
        ...

    def submit(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> "asyncio.Future[list[Reply]]":
        """Hands commands to a partition, to be appended together; the future has their replies."""
        ...

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        """Like `submit` for several partitions. If one here has no room, none gets anything."""
        ...

    def activate(self, partition: int, command: Command) -> "asyncio.Future[list[Reply]]":
        """Like `submit` for an activation; if no job waits, NOT_FOUND and nothing on the log."""
        ...

    async def ask(
        self,
        partition: int,
        query: Query[A],
        asker: Asker | None = None,
        *,
        may_be_stale: bool = False,
    ) -> A:
        """What a partition answers to a query, in the asker's name.

        It is of the partition's owner as of now, or newer. With `may_be_stale` a member that was
        the owner, and has not heard otherwise, may answer.
        """
        ...

    def follow(self, topic: EffectTopic, tell: Tell) -> Callable[[], None]:
        """Has effects told from now on; what is returned ends it."""
        ...

    def serve(self, waiting: Waiting) -> None:
        """Workers that wait here get jobs of partitions here in the step that makes them."""
        ...
