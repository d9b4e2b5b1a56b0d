"""What is done with a partition's step: before the log has it, and once that is decided."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.engine.kernel.alarms import Alarms
from holdfast.engine.kernel.careful import reason_of
from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.inbox import Inbox, tell
from holdfast.engine.kernel.outside import Outside
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.step import Step
from holdfast.engine.kernel.turn import Submission
from holdfast.errors import DataLoss, HoldfastError, Internal, InvalidArgument, ResourceExhausted
from holdfast.journal import Appended
from holdfast.limits import DUE_BUG_PAUSE_MS
from holdfast.logs import log
from holdfast.metrics import Metrics

S = TypeVar("S")


class Stepped(NamedTuple):
    """A partition's step, and what was submitted to it."""

    partition: int
    step: Step
    taken: list[Submission]


class Work(Generic[S]):
    """Steps partitions, and tells the callers what became of their commands."""

    def __init__(
        self,
        processors: dict[int, Processor[S]],
        inbox: Inbox,
        alarms: Alarms,
        halt: Halt,
        metrics: Metrics,
        wake: Callable[[int], None],
    ) -> None:
        self.outside: Outside | None = None
        self.changed: dict[int, int] = {}  # by partition, about how many rows the store lacks
        # what the round that is under way has taken
        self.at_hand: list[tuple[list[Submission], Step | None]] = []
        self._processors = processors
        self._inbox = inbox
        self._alarms = alarms
        self._halt = halt
        self._metrics = metrics
        self._wake = wake

    def step(
        self, partition: int, taken: list[Submission], now_ms: int, before: Step | None = None
    ) -> Step | None:
        """One step of a partition, or one more try of another that the log has refused.

        A step that fails as a whole, which none should, is told to its askers; the partition lives.
        """
        processor = self._processors[partition]
        demand = partial(self._demand, partition)
        self.at_hand.append((taken, before))
        try:
            if before is None:
                step = processor.step(taken, now_ms, demand)
            else:
                step = processor.step_again(before, taken, now_ms, demand)
        except Exception as error:
            failed: HoldfastError = Internal(f"The step failed: {reason_of(error)}")
            if isinstance(error, DataLoss):
                failed = self._halt.told(error)
            self.failed("step failed", partition, error)
            self.refuse(partition, taken, failed)
            tell((*processor.unserved, *(before.demanded if before is not None else ())), failed)
            self._alarms.pause(partition, DUE_BUG_PAUSE_MS)
            return None
        self.at_hand[-1] = (taken, step)
        if not step.entries:
            self.finish(partition, step, taken, None)
        return step

    def _demand(self, partition: int, effects: list[Any]) -> Iterable[Submission]:
        return () if self.outside is None else self.outside.demand(partition, effects)

    def measure(self, steps: Iterable[Stepped], began: float, ended: float) -> None:
        """A round is over, with these steps.

        A command waits from its arrival, or from the beginning of the round in which it arrived:
        what is measured is never too short, and too long by a round at most.
        """
        commands, took = 0, self._metrics.commands.add
        for _, step, taken in steps:
            commands += step.commands
            since = (taken[0].during or began) if taken else began
            took(int((ended - since) * 1_000_000), step.commands)
        self._inbox.worked(commands, ended - began)

    def prepare(self, steps: Iterable[Stepped]) -> None:
        """Does what is harmless if the log does not take these steps: it is on its way there."""
        for partition, step, _ in steps:
            self._prepare(partition, step)

    def _prepare(self, partition: int, step: Step) -> None:
        self._alarms.watch(partition, self._processors[partition].next_due_ms())
        step.is_prepared = True

    def finish(
        self, partition: int, step: Step, taken: list[Submission], appended: Appended | None
    ) -> None:
        """The step is durable: its answers and effects may leave."""
        processor = self._processors[partition]
        processor.commit(step, appended)
        self._inbox.answered(partition, taken)
        self.changed[partition] = processor.state.changed_rows_at_most()
        for bug in step.bugs:
            log.error("command failed", partition=partition, error=bug)
        for ticket, replies in step.replies:
            if not ticket.done():
                ticket.set_result(replies)
        if step.effects and self.outside is not None:
            try:
                self.outside.deliver(step.effects)
            except Exception as error:  # what is on the log stays true, delivered or not
                self.failed("effects not delivered", partition, error)
                if self._halt.reason:
                    self._halt.undelivered.append(step.effects)
        if processor.has_leftover or self._inbox.has(partition):
            self._wake(partition)
        if not step.is_prepared:
            self._prepare(partition, step)
        self._metrics.partition(partition).step(
            len(step.entries), step.commands, step.rejections, len(step.bugs), processor.lag
        )

    def abandon(
        self,
        partition: int,
        step: Step,
        taken: list[Submission],
        error: ResourceExhausted | InvalidArgument,
    ) -> None:
        """The log did not take it: nothing of the step has happened, and callers are told so."""
        self._processors[partition].abandon(step)
        if self.outside is not None:
            self._halt.meets_damage(partial(self.outside.refresh, partition))
        self.refuse(partition, taken, error)
        tell(step.demanded, error)
        retry_after_ms = error.retry_after_ms if isinstance(error, ResourceExhausted) else 0
        self._alarms.pause(partition, max(retry_after_ms, 100))

    def refuse(self, partition: int, taken: Collection[Submission], error: Exception) -> None:
        self._inbox.answered(partition, taken)
        tell(taken, error)

    def give_up(self, stepped: Stepped, error: Exception) -> None:
        """Nobody will hear more of a step, because its partition's memory is dropped."""
        self.refuse(stepped.partition, stepped.taken, error)
        tell(stepped.step.demanded, error)

    def failed(self, what: str, partition: int, error: Exception) -> None:
        """A bug outside the commands: it is told and counted, and the partition goes on."""
        log.error(what, partition=partition, error=reason_of(error))
        self._metrics.partition(partition).bugs += 1
