"""What was submitted to the partitions of a node and is not answered yet."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from holdfast.engine.kernel.turn import Command, Reply, Submission
from holdfast.errors import ResourceExhausted
from holdfast.limits import STEP_COMMANDS_MAX
from holdfast.metrics import Metrics


class Inbox:
    """The submissions of each partition in the order they came, with a limit on their commands."""

    def __init__(
        self, commands_max: int, metrics: Metrics, why_closed: Callable[[int], Exception]
    ) -> None:
        self._commands_max = commands_max
        self._metrics = metrics
        self._why_closed = why_closed
        self.round_began = 0.0  # the one under way, by the runner's clock; 0: there is none
        self._waiting: dict[int, deque[Submission]] = {}  # by partition that is open
        self.in_flight: dict[int, int] = {}  # by partition that takes more
        self.accepted = 0  # commands, ever
        self._rate = 10_000.0  # commands a second, lately: for the hint when to come back

    def open(self, partition: int) -> None:
        """Takes submissions for a partition from now on; what waits already stays."""
        self._waiting.setdefault(partition, deque())
        self.in_flight.setdefault(partition, 0)

    def shut(self, partition: int) -> None:
        """Takes no more for a partition; what waits is processed."""
        self.in_flight.pop(partition, None)

    def close(self, partition: int) -> list[Submission]:
        """Takes nothing for a partition any more; what waited for it."""
        self.shut(partition)
        return list(self._waiting.pop(partition, ()))

    def has(self, partition: int) -> bool:
        return bool(self._waiting.get(partition))

    def check_room(self, partition: int, commands: int) -> None:
        """Refuses what would be too much, with a hint when to come back."""
        try:
            waiting = self.in_flight[partition]
        except KeyError:
            raise self._why_closed(partition) from None
        if waiting and waiting + commands > self._commands_max:
            self._metrics.refused(commands)
            raise ResourceExhausted(
                f"Expected at most {self._commands_max} commands in flight on partition"
                f" {partition}, but {waiting} are waiting",
                retry_after_ms=max(1, int(waiting / self._rate * 1000)),
            )

    def accept(
        self, partition: int, commands: Sequence[Command], size_bytes: int
    ) -> "asyncio.Future[list[Reply]]":
        """Takes commands in; the future has their replies."""
        self.in_flight[partition] += len(commands)
        self.accepted += len(commands)
        ticket: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._waiting[partition].append(Submission(commands, ticket, size_bytes, self.round_began))
        return ticket

    def take(self, partition: int, room_bytes: int) -> tuple[list[Submission], int]:
        """As many whole submissions as a step may hold, and at least one; and their bytes."""
        waiting, commands, size_bytes = self._waiting[partition], 0, 0
        taken: list[Submission] = []
        while waiting:
            commands += len(waiting[0].commands)
            size_bytes += waiting[0].size_bytes
            if taken and (commands > STEP_COMMANDS_MAX or size_bytes > room_bytes):
                return taken, size_bytes - waiting[0].size_bytes
            taken.append(waiting.popleft())
        return taken, size_bytes

    def answered(self, partition: int, taken: Collection[Submission]) -> None:
        """These are no longer in flight."""
        if taken and partition in self.in_flight:
            in_flight = self.in_flight[partition]
            for submission in taken:
                in_flight -= len(submission.commands)
            self.in_flight[partition] = in_flight
            self._metrics.partition(partition).in_flight = in_flight

    def take_all(self) -> list[Submission]:
        """Everything that waits: nobody will process it."""
        left = [submission for waiting in self._waiting.values() for submission in waiting]
        for waiting in self._waiting.values():
            waiting.clear()
        return left

    def worked(self, commands: int, seconds: float) -> None:
        """So many commands were processed in so much time."""
        self._rate += (commands / max(seconds, 1e-6) - self._rate) * min(1.0, commands / 1000)


def tell(asked: Iterable[Submission], error: Exception) -> None:
    """Tells the callers without an answer what went wrong."""
    for submission in asked:
        if submission.ticket is not None and not submission.ticket.done():
            submission.ticket.set_exception(error)
