"""The shell around a node's processors: takes submissions, makes steps durable, acts on them.

One round steps every partition that has something to do and appends all their records with one
sync. Partitions that have nothing to do cost nothing. What becomes of an append is decided by
partition: one that is refused or unknown concerns its own partition and no other.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from holdfast.clock import Clock
from holdfast.engine.kernel.alarms import Alarms
from holdfast.engine.kernel.behind import WriteBehind
from holdfast.engine.kernel.doors import Doors
from holdfast.engine.kernel.halt import Halt, Hold
from holdfast.engine.kernel.inbox import tell
from holdfast.engine.kernel.lives import Lives, OpenProcessor
from holdfast.engine.kernel.outcomes import Outcomes
from holdfast.engine.kernel.outside import Outside
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.kernel.rounds import StepRounds
from holdfast.engine.kernel.standbys import Standbys
from holdfast.engine.kernel.turn import Command, Reply, Submission
from holdfast.engine.kernel.work import Work
from holdfast.errors import DataLoss, Unavailable
from holdfast.journal import Journal
from holdfast.logs import log
from holdfast.metrics import Metrics
from holdfast.state import Store

S = TypeVar("S")

__all__ = ["TOPIC", "Runner"]


class Runner(Generic[S]):
    """Runs the processors of a node over one journal and one store."""

    def __init__(
        self,
        processors: dict[int, Processor[S]],
        journal: Journal,
        store: Store,
        clock: Clock,
        metrics: Metrics,
        in_flight_max: int,
        open_processor: "OpenProcessor[S]",
    ) -> None:
        self.processors = processors
        self.failure: BaseException | None = None  # why the node stopped, if it did by itself
        self._journal = journal
        self._clock = clock
        self._alarms = Alarms(clock, self._wake)
        self._halt = Halt()
        self.halted = self._halt.stands
        self._lives: Lives[S] = Lives(
            processors, journal, store, clock, metrics, in_flight_max, open_processor, self._alarms
        )
        self._inbox = self._lives.inbox
        self.epochs: Mapping[int, int] = self._lives.epochs  # of the partitions that are open here
        self._work: Work[S] = Work(
            processors, self._inbox, self._alarms, self._halt, metrics, self._wake
        )
        self.behind = WriteBehind(self._lives, self._work, self._halt, self.fail)
        self.write_state = self.behind.write
        self._outcomes: Outcomes[S] = Outcomes(
            self._lives, self._work, self.behind, self._look_at, self._wake, self.fail
        )
        self._rounds: StepRounds[S] = StepRounds(
            journal, clock, self._lives, self._inbox, self._work, self._outcomes, self.behind
        )
        self.standbys: Standbys[S] = Standbys(
            journal, self._lives, self._work, self.behind, self._halt
        )
        self._lives.on_moved, self.follow_again = self.standbys.go_on, self.standbys.try_again
        self._something = asyncio.Event()  # to do
        self.hold = Hold(self.settled, self._something.set)
        self.doors = doors = Doors(
            self._lives, self._work, self._outcomes, self.standbys, self._halt, self._look_at,
            self._something.set)  # fmt: skip
        self.open, self.close_partition, self.lose = doors.open, doors.close, doors.lose
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def outside(self) -> Outside | None:
        """Who is told of effects."""
        return self._work.outside

    @outside.setter
    def outside(self, outside: Outside | None) -> None:
        self._work.outside = outside

    @property
    def stopped(self) -> dict[int, str]:
        """The partitions that could not go on, and why."""
        closed = self._lives.closed.items()
        return {each: error.message for each, error in closed if isinstance(error, Unavailable)}

    def epoch(self, partition: int) -> int | None:
        """The epoch in which a partition is open here; None if it is not."""
        return self._lives.epochs.get(partition)

    def open_partitions(self) -> list[int]:
        """The partitions that are open here, in order."""
        return sorted(self._lives.epochs)

    def processor(self, partition: int) -> Processor[S]:
        """The processor of a partition that is open here, or is just being opened again."""
        processor = self.processors.get(partition)
        if processor is None:
            raise self._lives.why_closed(partition)
        return processor

    # --- life ---------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Brings every partition to the end of its log; returns how many events were applied.

        One whose events cannot be applied stops, and the others go on.
        """
        applied = 0
        for partition, processor in list(self.processors.items()):
            try:
                taken = await self._lives.take(partition)
                applied += await self._lives.bring_up(processor, taken)
                self._work.changed[partition] = processor.state.changed_rows()
            except DataLoss:
                raise
            except Exception as error:
                self._outcomes.stop(partition, error)
        return applied

    def start(self) -> None:
        """Begins to run; the loop must be running."""
        loop = asyncio.get_running_loop()
        self._look_at(list(self._lives.epochs))
        is_quiet: Callable[[], bool] | None = getattr(loop, "is_quiet", None)
        if is_quiet is not None:
            self._rounds.listen(is_quiet)
        self._task = loop.create_task(self._run(), name="runner")

    def stand_by(self, partition: int) -> None:
        """From now on the log of a partition is followed here whenever it is not open."""
        self.standbys.begin(partition)

    def forget(self, partition: int) -> None:
        """Follows the log of a partition no longer."""
        self.standbys.forget(partition)

    def stored_offsets(self) -> dict[int, int]:
        """From where on the log is needed for what the store has, of all partitions here."""
        opened = {each: processor.stored_offset for each, processor in self.processors.items()}
        return self.standbys.offsets() | opened

    def _look_at(self, partitions: Sequence[int]) -> None:
        """Sees what partitions have to do, and what others have to know of it."""
        outside = self.outside
        for partition in partitions:
            processor = self.processors[partition]
            if processor.has_leftover or self._inbox.has(partition):
                self._wake(partition)
            self._alarms.watch(partition, processor.next_due_ms())
            if outside is not None:
                outside.refresh(partition)
        if outside is not None:
            for partition in partitions:
                outside.started(partition)

    async def close(self) -> None:
        """Finishes what was accepted, writes the state and stops."""
        self._closing = True
        self._something.set()
        self._halt.wake()
        if self._task is not None:
            await self._task
        self._outcomes.cancel()
        standing = self.standbys.cancel()
        self.forget_timers()
        await asyncio.gather(*standing, return_exceptions=True)
        if self.failure is None and not self._halt.reason:
            self.write_state()

    def forget_timers(self) -> None:
        """Nothing wakes up by itself any more."""
        self._alarms.stop()
        self.behind.stop()
        self.standbys.cancel()

    def halt(self, reason: str) -> None:
        """Takes no more commands; `halted` returns when no step is under way."""
        self._halt.begin(reason)
        self.standbys.pause()
        self._something.set()

    def resume(
        self,
        processors: Mapping[int, Processor[S]],
        store: Store,
        broken: Mapping[int, Exception] = MappingProxyType({}),
    ) -> None:
        """Goes on with processors that stand for the same log, over another store."""
        for partition, error in broken.items():
            self._outcomes.stop(partition, error)
        for partition in self._lives.epochs:
            processors[partition].take_over(self.processors[partition])
            self.processors[partition] = processors[partition]
        self._lives.store, self._lives.writing = store, None
        self._work.changed.clear()
        for effects in self._halt.end():
            if self.outside is not None:
                self.outside.deliver(effects)
        self._look_at(list(self._lives.epochs))
        self.standbys.resume()
        self._outcomes.landed()

    def fail(self, error: BaseException) -> None:
        """The node cannot go on."""
        self.failure = error
        self._refuse_all(Unavailable(f"The node stopped: {error}"))
        self.standbys.cancel()
        self._halt.wake()
        self._something.set()
        log.error("runner stopped", error=repr(error))

    def _refuse_all(self, error: Exception) -> None:
        """The node stops: all waiting callers are told so, whether the log has it or not."""
        for taken, step in self._work.at_hand:
            tell([*taken, *(step.demanded if step is not None else ())], error)
        self._outcomes.give_up_late()
        for processor in self.processors.values():
            tell([Submission((), ticket) for ticket in processor.awaited_tickets()], error)
        tell(self._inbox.take_all(), error)

    # --- submitting ---------------------------------------------------------------------------

    def submit(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> "asyncio.Future[list[Reply]]":
        """Hands commands to a partition, to be appended together; the future has their replies.

        They wait for the next round: what partitions send to each other shares one.
        """
        tickets = self._accept({partition: commands}, size_bytes)
        self._something.set()
        return tickets[0]

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        """Like `submit` for several partitions: if one has no room, none gets anything.

        The round is begun at once where a caller has the loop for itself.
        """
        begins = self._rounds.may_begin() and not self.hold.is_on
        tickets = self._accept(commands, size_bytes)
        if begins:
            self._begin_round()
        else:
            self._something.set()
        return tickets

    def _accept(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int
    ) -> "list[asyncio.Future[list[Reply]]]":
        if self._closing or self.failure is not None:
            raise Unavailable(
                "The node is closing" if self._closing else f"The node stopped: {self.failure}"
            )
        self._halt.check()
        for partition, group in commands.items():
            self._inbox.check_room(partition, len(group))
        self._rounds.ready.update(commands)
        return [self._inbox.accept(each, group, size_bytes) for each, group in commands.items()]

    def _begin_round(self) -> None:
        try:
            self._rounds.begin()
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):  # the program was told to stop
                raise
        if self._rounds.is_begun:
            self._something.set()

    def load(self) -> tuple[int, int]:
        """How many commands were accepted so far, and how many of them are not answered yet."""
        return self._inbox.accepted, sum(self._inbox.in_flight.values())

    async def settled(self, partition: int | None = None) -> None:
        """Waits until the state of a partition, or of all, holds nothing that is not durable."""
        self._halt.check()
        outcomes = self._outcomes
        while outcomes.unsettled if partition is None else partition in outcomes.unsettled:
            await outcomes.landing()
        if partition is not None and partition not in self._lives.epochs:
            raise self._lives.why_closed(partition)

    def _wake(self, partition: int) -> None:
        self._rounds.ready.add(partition)
        self._something.set()

    # --- the loop -----------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self.failure is None:
                if self._rounds.is_begun:
                    await self._rounds.finish()
                elif self._halt.reason and not self._closing:
                    await (self._something_new() if self._is_busy() else self._halt.stand())
                elif self._closing and self._outcomes.late:
                    await self._outcomes.wait_for_late()
                elif self._closing and (
                    self._halt.reason or not self._rounds.ready or not self._is_asked()
                ):
                    return self._refuse_all(Unavailable("The node is closing"))
                elif not self._rounds.ready or (self.hold.is_on and not self._closing):
                    await self._something_new()
                else:
                    await self._rounds.run()
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):  # it was told to stop
                raise

    async def _something_new(self) -> None:
        self._something.clear()
        await self._something.wait()

    def _is_busy(self) -> bool:
        """Whether a step is under way, or a partition is being opened."""
        return bool(self._outcomes.late or self._outcomes.opening or self._lives.opening)

    def _is_asked(self) -> bool:
        """Whether somebody waits for an answer. What is left over otherwise is on the log."""
        return any(self._inbox.has(p) or q.awaited_tickets() for p, q in self.processors.items())

    # --- time ---------------------------------------------------------------------------------

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Time has gone on at once: leases of living workers go on for as long as they would."""
        for processor in self.processors.values():
            processor.clock_jumped(before_ms, after_ms)
        self._ring_all()

    def clock_turned(self) -> None:
        """The clock was set by hand: every partition goes by it, and looks at what is due."""
        for processor in self.processors.values():
            processor.turn_clock_back()
        self._ring_all()

    def _ring_all(self) -> None:
        for partition in self._lives.epochs:
            self._alarms.ring(partition)
