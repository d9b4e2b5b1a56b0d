"""The shell around a node's processors: takes submissions, makes steps durable, acts on them.

One round steps every partition that has something to do and appends all their records with one
sync. Partitions that have nothing to do cost nothing.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from holdfast.clock import Clock
from holdfast.engine.kernel.alarms import Alarms
from holdfast.engine.kernel.careful import reason_of
from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.inbox import Inbox, tell
from holdfast.engine.kernel.outside import Outside
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import TOPIC, recover, write_state
from holdfast.engine.kernel.step import Step
from holdfast.engine.kernel.turn import Command, Reply, Submission
from holdfast.errors import (
    DataLoss,
    HoldfastError,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
)
from holdfast.journal import Append, Journal
from holdfast.limits import (
    DUE_BUG_PAUSE_MS,
    REQUEST_BYTES_MAX,
    STORE_INTERVAL_MS,
    STORE_ROWS_MAX,
)
from holdfast.logs import log
from holdfast.metrics import Metrics
from holdfast.state import Store

S = TypeVar("S")

__all__ = ["TOPIC", "Runner"]

_Stepped = tuple[int, Step, list[Submission]]  # a partition's step, and what was submitted to it


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
    ) -> None:
        self.processors = processors
        self.outside: Outside | None = None
        self.failure: BaseException | None = None  # why the node stopped, if it did by itself
        self._journal = journal
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._partition_metrics = {
            partition: metrics.partition(partition) for partition in processors
        }
        for processor in processors.values():
            processor.measure(clock.monotonic)
        # what the round that is under way has taken
        self._at_work: list[tuple[list[Submission], Step | None]] = []
        self._inbox = Inbox(processors, in_flight_max, metrics)
        self._ready: set[int] = set()
        self._changed: dict[int, int] = {}  # partition -> changed rows the store does not have
        self._alarms = Alarms(clock, self._wake)
        self._store_timer: asyncio.TimerHandle | None = None
        self._work = asyncio.Event()
        self._settled = asyncio.Event()  # no step is waiting for the disk
        self._settled.set()
        self._closing = False
        self._halt = Halt()
        self.halted = self._halt.stands
        self._task: asyncio.Task[None] | None = None
        self.store_rows_max = STORE_ROWS_MAX  # with fewer, nobody waits long behind a store write

    # --- life ---------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Brings every partition to the end of its log; returns how many events were applied."""
        applied = sum([n async for n in recover(self.processors, self._journal, self._store)])
        for partition, processor in self.processors.items():
            self._changed[partition] = processor.state.changed_rows()
        return applied

    def start(self) -> None:
        """Begins to run; the loop must be running."""
        self._look_at_all()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="runner")

    def _look_at_all(self) -> None:
        """Sees what every partition has to do, and what others have to know of it."""
        for partition, processor in self.processors.items():
            if processor.has_leftover or self._inbox.has(partition):
                self._wake(partition)
            self._watch_due(partition)
            if self.outside is not None:
                self.outside.refresh(partition)
        if self.outside is not None:
            for partition in self.processors:
                self.outside.started(partition)

    async def close(self) -> None:
        """Finishes what was accepted, writes the state and stops."""
        self._closing = True
        self._work.set()
        self._halt.wake()
        if self._task is not None:
            await self._task
        self.forget_timers()
        if self.failure is None and not self._halt.reason:
            self.write_state()

    def forget_timers(self) -> None:
        """Nothing wakes up by itself any more."""
        self._alarms.stop()
        if self._store_timer is not None:
            self._store_timer.cancel()

    def halt(self, reason: str) -> None:
        """Takes no more commands; `halted` returns when no step is under way."""
        self._halt.begin(reason)
        self._work.set()

    def resume(self, processors: Mapping[int, Processor[S]], store: Store) -> None:
        """Goes on with processors that stand for the same log, over another store."""
        for partition, processor in processors.items():
            processor.take_over(self.processors[partition])
            self.processors[partition] = processor
        self._store = store
        self._changed.clear()
        for effects in self._halt.end():
            if self.outside is not None:
                self.outside.deliver(effects)
        self._look_at_all()

    def fail(self, error: BaseException) -> None:
        """The node cannot go on."""
        self.failure = error
        self._refuse_all(Unavailable(f"The node stopped: {error}"))
        self._halt.wake()
        self._work.set()
        log.error("runner stopped", error=repr(error))

    # --- submitting ---------------------------------------------------------------------------

    def submit(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> "asyncio.Future[list[Reply]]":
        """Hands commands to a partition, to be appended together; the future has their replies."""
        return self.submit_all({partition: commands}, size_bytes)[0]

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        """Like `submit` for several partitions: if one has no room, none gets anything."""
        if self._closing or self.failure is not None:
            raise Unavailable(
                "The node is closing" if self._closing else f"The node stopped: {self.failure}"
            )
        self._halt.check()
        for partition, group in commands.items():
            self._inbox.check_room(partition, len(group))
        for partition in commands:
            self._wake(partition)
        return [self._inbox.accept(each, group, size_bytes) for each, group in commands.items()]

    def load(self) -> tuple[int, int]:
        """How many commands were accepted so far, and how many of them are not answered yet."""
        return self._inbox.accepted, sum(self._inbox.in_flight.values())

    async def settled(self) -> None:
        """Waits until the state holds nothing that is not durable, so that it may be read."""
        self._halt.check()
        await self._settled.wait()

    def _wake(self, partition: int) -> None:
        self._ready.add(partition)
        self._work.set()

    # --- the loop -----------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self.failure is None:
                if self._halt.reason and not self._closing:
                    await self._halt.stand()
                    continue
                if self._closing and (self._halt.reason or not self._ready or not self._is_asked()):
                    return self._refuse_all(Unavailable("The node is closing"))
                if not self._ready:
                    self._work.clear()
                    await self._work.wait()
                    continue
                self._at_work.clear()
                await self._round()
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):  # it was told to stop
                raise

    def _is_asked(self) -> bool:
        """Whether somebody waits for an answer. What is left over otherwise is on the log."""
        return any(self._inbox.has(p) or q.awaited_tickets() for p, q in self.processors.items())

    async def _round(self) -> None:
        now_ms, started = self._clock.now_ms(), self._clock.monotonic()
        steps: list[_Stepped] = []
        ready, self._ready = self._ready, set()
        room_bytes = REQUEST_BYTES_MAX
        for partition in sorted(ready):
            if room_bytes <= 0:
                self._ready.add(partition)  # for the next round
                continue
            taken, taken_bytes = self._inbox.take(partition, room_bytes)
            room_bytes -= taken_bytes
            step = self._step(partition, taken, now_ms)
            if step is not None and step.entries:
                steps.append((partition, step, taken))
        if not steps:
            return
        self._settled.clear()
        try:
            await self._append(steps)
        except ResourceExhausted as error:
            for partition, step, taken in steps:
                self._abandon(partition, step, taken, error)
            return
        except InvalidArgument:
            await self._append_each(steps, now_ms)
        else:
            for partition, step, taken in steps:
                self._finish(partition, step, taken)
        finally:
            self._settled.set()
        commands = sum(step.commands for _, step, _ in steps)
        self._inbox.worked(commands, self._clock.monotonic() - started)
        if sum(self._changed.values()) > self.store_rows_max:
            self._halt.meets_damage(self.write_state)
        elif self._store_timer is None:
            loop = asyncio.get_running_loop()
            self._store_timer = loop.call_later(STORE_INTERVAL_MS / 1000, self._write_state_later)

    def _step(
        self, partition: int, taken: list[Submission], now_ms: int, before: Step | None = None
    ) -> Step | None:
        """One step of a partition, or one more try of another that the log has refused.

        A step that fails as a whole, which none should, is told to its askers; the partition lives.
        """
        processor = self.processors[partition]
        demand = partial(self._demand, partition)
        self._at_work.append((taken, before))
        try:
            if before is None:
                step = processor.step(taken, now_ms, demand)
            else:
                step = processor.step_again(before, taken, now_ms, demand)
        except Exception as error:
            failed: HoldfastError = Internal(f"The step failed: {reason_of(error)}")
            if isinstance(error, DataLoss):
                failed = self._halt.told(error)
            self._failed("step failed", partition, error)
            self._refuse(partition, taken, failed)
            tell((*processor.unserved, *(before.demanded if before is not None else ())), failed)
            self._alarms.pause(partition, DUE_BUG_PAUSE_MS)
            return None
        self._at_work[-1] = (taken, step)
        if not step.entries:
            self._finish(partition, step, taken)
        return step

    async def _append(self, steps: Sequence[_Stepped]) -> None:
        await self._journal.append_many(
            [Append(TOPIC, partition, step.entries) for partition, step, _ in steps]
        )

    async def _append_each(self, steps: Sequence[_Stepped], now_ms: int) -> None:
        """The log takes something of these steps never: whose it is, is found out one by one."""
        for partition, step, _ in steps:
            self.processors[partition].abandon(step)
        for partition, refused, taken in steps:
            step = self._step(partition, taken, now_ms, refused)
            if step is None or not step.entries:
                continue
            try:
                await self._append([(partition, step, taken)])
            except (ResourceExhausted, InvalidArgument) as error:
                self._abandon(partition, step, taken, error)
            else:
                self._finish(partition, step, taken)

    def _demand(self, partition: int, effects: list[Any]) -> Iterable[Submission]:
        return () if self.outside is None else self.outside.demand(partition, effects)

    def _finish(self, partition: int, step: Step, taken: list[Submission]) -> None:
        """The step is durable: its answers and effects may leave."""
        processor = self.processors[partition]
        processor.commit(step)
        self._inbox.answered(partition, taken)
        self._changed[partition] = processor.state.changed_rows()
        for bug in step.bugs:
            log.error("command failed", partition=partition, error=bug)
        for ticket, replies in step.replies:
            if not ticket.done():
                ticket.set_result(replies)
        if step.effects and self.outside is not None:
            try:
                self.outside.deliver(step.effects)
            except Exception as error:  # what is on the log stays true, whoever could not hear it
                self._failed("effects not delivered", partition, error)
                if self._halt.reason:
                    self._halt.undelivered.append(step.effects)
        if processor.has_leftover or self._inbox.has(partition):
            self._wake(partition)
        self._watch_due(partition)
        lag = processor.next_position - 1 - processor.progress.processed_position
        self._partition_metrics[partition].step(
            len(step.entries), step.commands, step.rejections, len(step.bugs),
            lag if processor.has_leftover else 0,
        )  # fmt: skip

    def _failed(self, what: str, partition: int, error: Exception) -> None:
        """A bug outside the commands: it is told and counted, and the partition goes on."""
        log.error(what, partition=partition, error=reason_of(error))
        self._partition_metrics[partition].bugs += 1

    def _abandon(
        self,
        partition: int,
        step: Step,
        taken: list[Submission],
        error: ResourceExhausted | InvalidArgument,
    ) -> None:
        """The log did not take it: nothing of the step has happened, and whoever asked is told."""
        processor = self.processors[partition]
        processor.abandon(step)
        if self.outside is not None:
            self._halt.meets_damage(partial(self.outside.refresh, partition))
        self._refuse(partition, taken, error)
        tell(step.demanded, error)
        retry_after_ms = error.retry_after_ms if isinstance(error, ResourceExhausted) else 0
        self._alarms.pause(partition, max(retry_after_ms, 100))

    def _refuse(self, partition: int, taken: Collection[Submission], error: Exception) -> None:
        self._inbox.answered(partition, taken)
        tell(taken, error)

    def _refuse_all(self, error: Exception) -> None:
        """The node stops: whoever waits for an answer is told so, whether the log has it or not."""
        for taken, step in self._at_work:
            tell([*taken, *(step.demanded if step is not None else ())], error)
        for processor in self.processors.values():
            tell([Submission((), ticket) for ticket in processor.awaited_tickets()], error)
        tell(self._inbox.take_all(), error)

    # --- time ---------------------------------------------------------------------------------

    def _watch_due(self, partition: int) -> None:
        """Sees to it that the partition wakes up when something is due."""
        self._alarms.watch(partition, self.processors[partition].next_due_ms())

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Time has gone on at once: leases of living workers go on for as long as they would."""
        for processor in self.processors.values():
            processor.clock_jumped(before_ms, after_ms)
        self.clock_turned()

    def clock_turned(self) -> None:
        """The clock has jumped: every partition looks again at what is due."""
        for partition in self.processors:
            self._alarms.ring(partition)

    # --- state --------------------------------------------------------------------------------

    def _write_state_later(self) -> None:
        self._store_timer = None
        if self.failure is None and not any(
            self.processors[partition].state.undo_log for partition in self._changed
        ):
            try:
                self._halt.meets_damage(self.write_state)
            except Exception as error:
                self.fail(error)

    def write_state(self) -> None:
        """Hands all committed changes with the positions they stand for to the store at once."""
        changed, self._changed = self._changed, {}
        write_state([self.processors[partition] for partition in changed], self._store)
