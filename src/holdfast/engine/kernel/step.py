"""A step: what a processor is given, what it wrote, and how it is taken back."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from holdfast.engine.kernel.domain import DueCommand
from holdfast.engine.kernel.turn import Reply, Submission
from holdfast.records import Record


class DueSource(Protocol):
    """Where the commands come from that time itself gives."""

    def due(self, now_ms: int, limit: int) -> list[DueCommand]: ...

    def next_due_ms(self) -> int | None: ...

    def put_off(self, command: DueCommand, now_ms: int) -> None:
        """The command was refused: if it is due still, it is not to be given again at once."""
        ...

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Time has gone on at once: no lease is to end because of that."""
        ...


class Step(msgspec.Struct):
    """What one step wrote, and what is to happen once it is durable."""

    first_position: int
    entries: list[bytes]
    replies: list[tuple[Any, list[Reply]]]
    effects: list[Any]
    commands: int
    rejections: int
    bugs: list[str]  # commands that threw; each is rejected on the log and counted
    before: "Before"
    demanded: list[Submission] = msgspec.field(default_factory=list)  # in the step itself
    is_prepared: bool = False  # what may be done before it is durable is done


class Awaited(msgspec.Struct):
    """A submission some of whose commands are on the log and not processed yet."""

    ticket: Any
    replies: list[Reply]
    missing: int


class Before(msgspec.Struct, frozen=True):
    """Where the processor stood before a step, for taking the step back."""

    applied_position: int
    processed_position: int
    key_counter: int
    last_ms: int
    leftover: tuple[Record, ...]
    awaited: dict[int, tuple[Awaited, int]]


Demand = Callable[[list[Any]], Iterable[Submission]]
"""Asked with the effects of a step, before it ends: commands that they call for at once."""


def no_demand(effects: list[Any]) -> Iterable[Submission]:
    """Nothing is called for."""
    return ()
