"""Drives the batch operations of this node: has items selected, and done when live work lets it.

What is to be done is said by the state of each partition (`engine/batch/agenda.py`); this is only
when. Items are done in portions. While nobody else wants anything all partitions do theirs in one
round, which shares its sync. As soon as live commands come, portions are small, of one partition at
a time, and each waits until no live command does, though not for ever.
"""

import asyncio
from functools import partial

from holdfast.clock import Clock
from holdfast.engine.batch.agenda import agenda, failing, starting, taking
from holdfast.engine.batch.selector import NoSelector, Selector
from holdfast.engine.batch.values import BatchOperationExecutionIntent, Execute
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import Code, HoldfastError
from holdfast.limits import (
    BATCH_EXECUTE_ITEMS_MAX,
    BATCH_GAP_LOOK_MS,
    BATCH_GAP_WAIT_MS,
    BATCH_IDLE_PORTION_MS,
    BATCH_LIVE_MS,
    BATCH_LIVE_PORTION_MS,
    BATCH_LIVE_STORE_ROWS_MAX,
    BATCH_REFUSED_PAUSE_MS,
    BATCH_SELECTIONS_MAX,
    BATCH_STUCK_MS,
    STORE_ROWS_MAX,
)
from holdfast.records import ValueType

_EXECUTION = ValueType.BATCH_OPERATION_EXECUTION
_ITEMS_MAX = BATCH_EXECUTE_ITEMS_MAX
_EXECUTE = BatchOperationExecutionIntent.EXECUTE


# What a page is refused with that is not wanted any more. Anything else counts as a failed attempt.
_LATE = frozenset({Code.NOT_FOUND, Code.INVALID_STATE, Code.ALREADY_EXISTS})


class _Refused(Exception):
    """A command of the driver was rejected."""

    def __init__(self, error: HoldfastError) -> None:
        super().__init__(error.message)
        self.error = error


class Portion:
    """How many items are done at once, so that it takes about as long as it may.

    What counts is how long the node works on them. How long the disk takes to sync does not depend
    on how many they are: fewer at a time would only make all of them slower. A page that comes, or
    rows that go to the store, make a portion long now and then: it takes more than one to make the
    next ones much smaller.
    """

    def __init__(self, items: int, ms_max: int) -> None:
        self.items = items
        self._seconds_max = ms_max / 1_000

    def took(self, seconds: float, is_full: bool, items_max: int) -> None:
        """It took so much work, in all partitions together; if it is full, there may be more."""
        if seconds > 2 * self._seconds_max:
            self.items = max(self.items // 2, 1)
        elif seconds > self._seconds_max:
            self.items = max(self.items * 4 // 5, 1)
        elif is_full:
            self.items = min(self.items * 5 // 4 + 1, items_max)


class GivenOut:
    """A portion that some partitions do."""

    __slots__ = ("_busy", "_limit", "_partitions", "_portion", "items", "seconds", "unanswered")

    def __init__(
        self, portion: Portion, partitions: int, limit: int, seconds: float, busy: float
    ) -> None:
        """`limit` is how many items each of the partitions does at most."""
        self._portion = portion
        self._partitions = partitions
        self._limit = limit
        self._busy = busy
        self.seconds = seconds  # when it was given
        self.unanswered = 0  # partitions
        self.items = 0  # that were done

    def took(self, busy: float) -> None:
        """All have answered."""
        is_full = self.items >= self._partitions * self._limit
        self._portion.took(busy - self._busy, is_full, self._partitions * _ITEMS_MAX)


class BatchDriver:
    """Gives the commands that the operations of all partitions want."""

    def __init__(self, runner: Runner[EngineState], clock: Clock) -> None:
        self.selector: Selector = NoSelector()
        self._runner = runner
        self._clock = clock
        self._is_stopped = False
        self._to_look_at: set[int] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._selections: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._refused: dict[tuple[int, int], float] = {}  # until when its pages are not asked for
        self._given = 0  # commands of the driver itself, ever
        self._executing: dict[int, int] = {}  # partition -> the operation whose items are next
        self._under_way: set[int] = set()  # partitions that have not answered
        self._given_out: GivenOut | None = None  # the portion that the next one waits for
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._last = 0  # the partition that had the last portion while there was live work
        self._live_commands = 0
        self._live_seconds = float("-inf")  # when the last live command was seen
        self._waiting_seconds: float | None = None  # since when a portion waits for a gap
        self._gap_timer: asyncio.TimerHandle | None = None
        self._portions = {
            True: Portion(8, BATCH_LIVE_PORTION_MS),
            False: Portion(64, BATCH_IDLE_PORTION_MS),
        }

    def stop(self) -> None:
        """Nothing more is asked for; what is under way ends by itself."""
        self._is_stopped = True
        for timer in (*self._timers.values(), self._gap_timer, self._stuck_timer):
            if timer is not None:
                timer.cancel()
        for task in self._selections.values():
            task.cancel()

    # --- what is wanted -----------------------------------------------------------------------

    def look(self, partition: int) -> None:
        """What a partition wants may have changed."""
        if not self._to_look_at and not self._is_stopped:
            asyncio.get_running_loop().call_soon(self._look)
        self._to_look_at.add(partition)

    def _look(self) -> None:
        partitions, self._to_look_at = self._to_look_at, set()
        if self._is_stopped:
            return
        clock_ms = self._clock.now_ms()
        for partition in partitions & self._runner.processors.keys():
            processor = self._runner.processors[partition]
            now_ms = processor.time_ms(clock_ms)
            wanted = agenda(processor.view.batches, now_ms)
            self._select_wanted(partition, wanted.selecting)
            if wanted.executing:
                self._executing[partition] = wanted.executing
            else:
                self._executing.pop(partition, None)
            if wanted.later_ms is not None:
                self._look_later(partition, wanted.later_ms - now_ms)
        self._pace()

    def _look_later(self, partition: int, after_ms: int) -> None:
        known = self._timers.pop(partition, None)
        if known is not None:
            known.cancel()
        loop = asyncio.get_running_loop()
        self._timers[partition] = loop.call_later(max(after_ms, 1) / 1_000, self.look, partition)

    # --- selecting ----------------------------------------------------------------------------

    def _select_wanted(self, partition: int, keys: tuple[int, ...]) -> None:
        under_way = 0
        for (where, key), task in list(self._selections.items()):
            if where == partition:
                under_way += 1
                if key not in keys:  # suspended or canceled: its page is not wanted any more
                    task.cancel()
        for key in keys:
            if self._is_resting(partition, key):
                continue
            if (partition, key) not in self._selections and under_way < BATCH_SELECTIONS_MAX:
                under_way += 1
                task = asyncio.get_running_loop().create_task(self._select(partition, key))
                self._selections[partition, key] = task
                task.add_done_callback(partial(self._selected, partition, key))

    def _selected(self, partition: int, key: int, task: "asyncio.Task[None]") -> None:
        del self._selections[partition, key]
        if task.cancelled() or task.exception() is None:
            self.look(partition)
        else:  # it was refused, the partition has no room, or the node is closing
            until = self._clock.monotonic() + BATCH_REFUSED_PAUSE_MS / 1_000
            self._refused[partition, key] = until  # whatever else makes us look before
            self._look_later(partition, BATCH_REFUSED_PAUSE_MS)

    def _is_resting(self, partition: int, key: int) -> bool:
        """Whether a page of the operation was refused just now."""
        until = self._refused.get((partition, key))
        if until is None or until > self._clock.monotonic():
            return until is not None
        del self._refused[partition, key]
        return False

    async def _select(self, partition: int, key: int) -> None:
        """One page, from the selector to the log."""
        batches = self._runner.processors[partition].view.batches
        part = batches.parts.get(key)
        if part is not None and not part.is_started:
            await self._submit(partition, [starting(key)])
            part = batches.parts.get(key)
        stored, selecting = batches.operations.get(key), batches.selecting(key)
        if stored is None or selecting is None or part is None:
            return
        cursor, limit = selecting.cursor, selecting.page_items
        try:
            page = await self.selector.page(key, stored.operation, partition, cursor, limit)
            commands = taking(key, selecting, part.chunks, page)
        except Exception as error:  # whatever it is, the operation tells people of it
            await self._submit(partition, [failing(key, selecting, part.chunks, error)])
            return
        try:
            await self._submit(partition, commands)
        except _Refused as refused:
            if refused.error.code in _LATE:
                raise
            failed = failing(key, selecting, part.chunks, refused.error)
            await self._submit(partition, [failed])

    async def _submit(self, partition: int, commands: list[Command]) -> None:
        self._given += len(commands)
        for reply in await self._runner.submit(partition, commands):
            if (error := reply.error()) is not None:
                raise _Refused(error)

    # --- executing ----------------------------------------------------------------------------

    def _pace(self) -> None:
        """Does the next portion now, or looks again soon because live commands are waiting."""
        now = self._clock.monotonic()
        if self._is_stopped or self._is_waited_for(now):
            return
        accepted, waiting = self._runner.load()
        if (live := accepted - self._given) != self._live_commands:
            self._live_commands, self._live_seconds = live, now
        if not self._executing.keys() - self._under_way:
            return
        is_live = now - self._live_seconds < BATCH_LIVE_MS / 1_000
        if waiting:
            since = self._waiting_seconds = self._waiting_seconds or now
            if now - since < BATCH_GAP_WAIT_MS / 1_000:
                self._look_for_gap()
                return
        self._waiting_seconds = None
        self._runner.behind.rows_max = BATCH_LIVE_STORE_ROWS_MAX if is_live else STORE_ROWS_MAX
        self._execute(is_live)

    def _is_waited_for(self, now: float) -> bool:
        """Whether a portion is under way. One without an answer for long is not waited for.

        Its partition may have no quorum; the others are not to stand still for that.
        """
        given = self._given_out
        if given is None:
            return False
        if now - given.seconds < BATCH_STUCK_MS / 1_000:
            if self._stuck_timer is None and self._executing:
                loop = asyncio.get_running_loop()
                self._stuck_timer = loop.call_later(BATCH_STUCK_MS / 1_000, self._on_stuck_timer)
            return True
        self._given_out = None
        return False

    def _on_stuck_timer(self) -> None:
        self._stuck_timer = None
        self._pace()

    def _look_for_gap(self) -> None:
        if self._gap_timer is None:
            loop = asyncio.get_running_loop()
            self._gap_timer = loop.call_later(BATCH_GAP_LOOK_MS / 1_000, self._on_gap_timer)

    def _on_gap_timer(self) -> None:
        self._gap_timer = None
        self._pace()

    def _execute(self, is_live: bool) -> None:
        partitions = sorted(self._executing.keys() - self._under_way)
        if is_live:  # one after the other
            self._last = next((each for each in partitions if each > self._last), partitions[0])
            partitions = [self._last]
        portion = self._portions[is_live]
        limit = min(max(portion.items // len(partitions), 1), _ITEMS_MAX)
        now, busy = self._clock.monotonic(), self._clock.busy()
        given = GivenOut(portion, len(partitions), limit, now, busy)
        for partition in partitions:
            command = Command(_EXECUTION, _EXECUTE, self._executing.pop(partition), Execute(limit))
            try:
                ticket = self._runner.submit(partition, [command])
            except HoldfastError:  # no room, or the node is closing
                self._look_later(partition, BATCH_REFUSED_PAUSE_MS)
                continue
            self._given += 1
            self._under_way.add(partition)
            given.unanswered += 1
            self._given_out = given
            ticket.add_done_callback(partial(self._done, given, partition))

    def _done(
        self, given: "GivenOut", partition: int, ticket: "asyncio.Future[list[Reply]]"
    ) -> None:
        self._under_way.discard(partition)
        given.unanswered -= 1
        is_answered = not ticket.cancelled() and ticket.exception() is None
        if self._is_stopped:
            return
        if is_answered and ticket.result()[0].rejection is None:
            given.items += ticket.result()[0].value
            self.look(partition)
        else:
            self._look_later(partition, BATCH_REFUSED_PAUSE_MS)
        if not given.unanswered and self._given_out is given:
            self._given_out = None
            given.took(self._clock.busy())
            self._pace()
