"""What a partition's runner tells the world around it: the gateway."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from holdfast.engine.kernel.turn import Submission
from holdfast.errors import Moved


class Outside(Protocol):
    """Who is told of effects: the gateway."""

    def demand(self, partition: int, effects: list[Any]) -> Iterable[Submission]:
        """Commands that the effects call for in the same step."""
        ...

    def deliver(self, effects: list[Any]) -> None:
        """The effects are durable: act on them."""
        ...

    def started(self, partition: int) -> None:
        """The partition runs again: what it owes others may be sent."""
        ...

    def stopped(self, partition: int) -> None:
        """The partition does not run here any more: nothing of it can be had."""
        ...

    def left(self, partition: int, left: Sequence[Submission], error: Moved) -> None:
        """These reached no log, and the partition is another owner's: they are answered there."""
        ...

    def refresh(self, partition: int) -> None:
        """What the partition has waiting may have changed without an effect: look at its state."""
        ...
