"""Which partitions are open here: how one is opened, closed, stopped and opened again.

Each partition lives by itself. One that fails stops alone; the others go on.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.clock import Clock
from holdfast.engine.kernel.alarms import Alarms
from holdfast.engine.kernel.careful import reason_of
from holdfast.engine.kernel.inbox import Inbox, tell
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import TOPIC, recover_one
from holdfast.engine.kernel.turn import Submission
from holdfast.engine.kernel.work import Stepped, Work
from holdfast.errors import HoldfastError, InvalidState, Moved, Unavailable, Unknown
from holdfast.journal import Journal, Refused, Taken
from holdfast.logs import log
from holdfast.metrics import Metrics
from holdfast.state import Store, Writing

S = TypeVar("S")

MayTake = Callable[[int], bool]
"""Whether this member may write a partition now, as those decide who place partitions."""

OpenProcessor = Callable[[Store, int], Processor[S]]
"""A processor of a partition over its rows in a store."""


class Lives(Generic[S]):
    """The partitions of a runner, each with its epoch, and why the others are not open."""

    def __init__(
        self,
        processors: dict[int, Processor[S]],
        journal: Journal,
        store: Store,
        clock: Clock,
        metrics: Metrics,
        in_flight_max: int,
        open_processor: "OpenProcessor[S]",
        alarms: Alarms,
    ) -> None:
        self.processors = processors
        self.standing: dict[int, Processor[S]] = {}  # of partitions that are standbys here
        self.store = store
        self.on_moved: Callable[[int], None] = _nobody  # told when a partition is not open any more
        self.epochs: dict[int, int] = {}  # of the partitions that are open
        self.opening: set[int] = set()  # partitions that are being opened
        self.may_take: MayTake | None = None  # where others decide who writes a partition
        self.closed: dict[int, HoldfastError] = {}  # why the others are not
        self.writing: Writing | None = None  # to the store, under way
        self.inbox = Inbox(in_flight_max, metrics, self.why_closed)
        self._journal = journal
        self._clock = clock
        self._metrics = metrics
        self._open_processor = open_processor
        self._alarms = alarms

    def why_closed(self, partition: int) -> HoldfastError:
        """What the caller of a partition that is not open here is told."""
        error = self.closed.get(partition)
        if error is None:
            return moved(partition, "it has not been opened")
        return copy.copy(error)

    async def take(self, partition: int, epoch: int | None = None) -> Taken:
        """Takes a partition that is not open here, in an epoch or the next one.

        Moved if a newer epoch has it.
        """
        if partition in self.epochs:
            raise InvalidState(
                f"Partition {partition} is open here in epoch {self.epochs[partition]}"
            )
        if self.may_take is not None and not self.may_take(partition):
            raise moved(partition, "this member does not own it now")
        taken = await self._journal.take(TOPIC, partition, epoch)
        if isinstance(taken, Refused):
            raise moved(partition, taken.reason)
        return taken

    def read_state(self, partition: int) -> Processor[S]:
        """A processor over what the store has of a partition."""
        self.finish_writing()  # it may have rows of the partition's former life
        return self._open_processor(self.store, partition)

    def finish_writing(self) -> None:
        """What is on its way to the store gets there now."""
        writing, self.writing = self.writing, None
        if writing is not None:
            writing.finish()

    async def bring_up(self, processor: Processor[S], taken: Taken) -> int:
        """Opens a partition that was taken, once its processor has read the log to the end.

        Returns how many events were applied.
        """
        partition, events = processor.partition, 0
        async for applied in recover_one(processor, self._journal, self.store):
            events += applied
        processor.next_offset = taken.next
        processor.measure(self._clock.monotonic)
        self.processors[partition] = processor
        self.epochs[partition] = taken.epoch
        self.closed.pop(partition, None)
        self.inbox.open(partition)
        self._metrics.partition(partition).open = 1
        return events

    async def open_again(self, partition: int, work: Work[S]) -> bool:
        """Reads the log of a partition whose memory cannot be trusted; whether it is open again."""
        former = self.processors[partition]
        try:
            taken = await self.take(partition)
            processor = self.read_state(partition)
            processor.succeed(former)
            await self.bring_up(processor, taken)
        except Moved as error:
            self.drop(partition, error, work)
            return False
        except Unavailable as error:  # for now: it is placed again, here or elsewhere
            reason = f"it could not be opened again: {error.message}"
            self.drop(partition, moved(partition, reason), work)
            return False
        except Exception as error:
            self.stop(partition, error, work)
            return False
        work.changed[partition] = processor.state.changed_rows()
        return True

    def moved(self, stepped: Stepped, refused: Refused, work: Work[S]) -> None:
        """The log refused a step: nothing of it happened, and another owner has the partition."""
        partition = stepped.partition
        error = moved(partition, refused.reason)
        self.processors[partition].abandon(stepped.step)
        self.inbox.answered(partition, stepped.taken)
        tell(stepped.step.demanded, error)
        leave_to_next(work, partition, stepped.taken, error)
        self.drop(partition, error, work)

    def drop(self, partition: int, error: HoldfastError, work: Work[S]) -> None:
        """Forgets a partition. What is on its log and not answered is for its next owner."""
        log.info("partition closed", partition=partition, reason=error.message)
        self._close(partition, error, work)
        self.on_moved(partition)

    def stop(self, partition: int, error: Exception, work: Work[S]) -> None:
        """The partition cannot go on: it stops alone, and its callers are told why."""
        reason = reason_of(error)
        stopped = Unavailable(
            f"Partition {partition} has stopped: {reason}; the others go on. Its log is whole:"
            " restart the node, with a version that can go on from it",
            partition=partition,
            lasting=1,
        )
        log.error("partition stopped", partition=partition, error=reason)
        self._close(partition, stopped, work)

    def leave(self, partition: int, work: Work[S]) -> None:
        """What is in the memory of a partition does not count any more."""
        self.epochs.pop(partition, None)
        work.changed.pop(partition, None)
        self._alarms.forget(partition)

    def _close(self, partition: int, error: HoldfastError, work: Work[S]) -> None:
        self.leave(partition, work)
        self.closed[partition] = error
        self._metrics.partition(partition).open = 0
        waiting = self.inbox.close(partition)
        if (processor := self.processors.pop(partition, None)) is not None:
            tell_awaited(processor, partition)
        if work.outside is not None:
            work.outside.stopped(partition)
        if isinstance(error, Moved):
            leave_to_next(work, partition, waiting, error)
        else:
            tell(waiting, error)


def leave_to_next(work: Work[S], partition: int, left: Sequence[Submission], error: Moved) -> None:
    """What reached no log is for the next owner, if somebody here knows the way to it."""
    if left and work.outside is not None:
        work.outside.left(partition, left, error)
    else:
        tell(left, error)


def _nobody(partition: int) -> None:
    """Nobody has asked to be told."""


def tell_awaited(processor: Processor[S], partition: int) -> None:
    """Tells the callers of commands that are on the log that the answer is not known."""
    tickets = processor.awaited_tickets()
    if tickets:
        tell([Submission((), ticket) for ticket in tickets], unknown(partition))


def moved(partition: int, reason: str) -> Moved:
    """What callers are told when nothing reached the log."""
    return Moved(f"Partition {partition} is not open here: {reason}", partition=partition)


def unknown(partition: int) -> Unknown:
    """What callers are told when the log may have the command."""
    return Unknown(
        f"It is not known whether partition {partition} has done this; try again with the same"
        " request id",
        partition=partition,
    )
