"""Rounds: every partition that has something to do takes a step, and one append has them all.

A round is mostly run by the runner's task. While nothing else is to be done on the loop, a
submission need not wait for that task: its round is begun where it is submitted. What such a round
has to wait for, as for a thread that writes a large append, is left to the task.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

from holdfast.clock import Clock
from holdfast.coroutines import go_on
from holdfast.engine.kernel.behind import WriteBehind
from holdfast.engine.kernel.inbox import Inbox
from holdfast.engine.kernel.lives import Lives
from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.outcomes import Outcomes
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.kernel.work import Stepped, Work
from holdfast.errors import InvalidArgument, ResourceExhausted, Unknown
from holdfast.journal import Append, AtOnceJournal, Journal, Outcome
from holdfast.limits import REQUEST_BYTES_MAX

S = TypeVar("S")


class StepRounds(Generic[S]):
    """Runs one round after the other, and knows which partitions wait for the next."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        lives: Lives[S],
        inbox: Inbox,
        work: Work[S],
        outcomes: Outcomes[S],
        behind: WriteBehind,
    ) -> None:
        self.ready: set[int] = set()  # partitions with something to do
        self._journal = journal
        self._journal_at_once = _at_once(journal)
        self._clock = clock
        self._lives = lives
        self._inbox = inbox
        self._work = work
        self._outcomes = outcomes
        self._behind = behind
        self._is_quiet: Callable[[], bool] = _never
        self._is_under_way = False
        self._is_alone = False  # the round under way was begun by its submitter: nobody else waits
        self._begun: tuple[Coroutine[Any, Any, None], Any] | None = None  # and what it waits for

    def listen(self, is_quiet: Callable[[], bool]) -> None:
        """A loop that is run by the thread of a caller says when there is nothing but its call.

        A journal that always waits, for a network, gains nothing by an early begin.
        """
        if self._journal_at_once is not None:
            self._is_quiet = is_quiet

    @property
    def is_begun(self) -> bool:
        """Whether a round waits for `finish`."""
        return self._begun is not None

    def may_begin(self) -> bool:
        """Whether the next round may be begun by its submitter: nobody else would join it."""
        return not self._is_under_way and not self.ready and self._is_quiet()

    def begin(self) -> None:
        """A round without a task, as far as it gets without waiting."""
        assert not self._is_under_way, "there is one round at a time"
        running = self.run()
        self._is_alone = True
        try:
            self._begun = running, running.send(None)
        except StopIteration:
            pass
        finally:
            self._is_alone = False

    async def finish(self) -> None:
        """The rest of a round that was begun."""
        assert self._begun is not None, "a round was begun"
        (running, awaited), self._begun = self._begun, None
        await go_on(running, awaited)

    async def run(self) -> None:
        """One round."""
        self._work.at_hand.clear()
        self._is_under_way = True
        try:
            await self._run()
        finally:
            self._is_under_way = False

    async def _run(self) -> None:
        now_ms, started = self._clock.now_ms(), self._clock.monotonic()
        self._inbox.round_began = started
        steps: list[Stepped] = []
        ready, self.ready, room_bytes = self.ready, set(), REQUEST_BYTES_MAX
        for partition in sorted(ready) if len(ready) > 1 else ready:
            if partition in self._outcomes.away:
                continue  # it is woken when it is back
            if room_bytes <= 0:
                self.ready.add(partition)  # for the next round
                continue
            taken, taken_bytes = self._inbox.take(partition, room_bytes)
            room_bytes -= taken_bytes
            step = self._work.step(partition, taken, now_ms)
            if step is not None and step.entries:
                steps.append(Stepped(partition, step, taken))
        if steps:
            self._outcomes.begin(steps)
            try:
                await self._make_durable(steps, now_ms)
            finally:
                self._outcomes.end()
            self._work.measure(steps, started, self._clock.monotonic())
            self._behind.soon()
        self._inbox.round_began = 0.0
        if self._outcomes.landed():
            await others()  # else the next step would begin before they have looked

    async def _make_durable(self, steps: list[Stepped], now_ms: int) -> None:
        try:
            outcomes = await self._append(steps)
        except ResourceExhausted as error:
            for partition, step, taken in steps:
                self._work.abandon(partition, step, taken, error)
        except InvalidArgument:
            await self._append_each(steps, now_ms)
        except Unknown as error:
            for stepped in steps:
                self._outcomes.land(stepped, error)
        else:
            for stepped, outcome in zip(steps, outcomes, strict=True):
                self._outcomes.land(stepped, outcome)

    def _append(self, steps: Sequence[Stepped]) -> Awaitable[list[Outcome]]:
        epochs, processors = self._lives.epochs, self._lives.processors
        appends = [
            Append(TOPIC, each, step.entries, epochs[each], processors[each].next_offset)
            for each, step, _ in steps
        ]
        if self._is_alone and self._journal_at_once is not None:
            return self._journal_at_once.append_many(appends, partial(self._work.prepare, steps))
        return self._journal.append_many(appends)

    async def _append_each(self, steps: Sequence[Stepped], now_ms: int) -> None:
        """The log takes something of these steps never: whose it is, is found out one by one."""
        for partition, step, _ in steps:
            self._lives.processors[partition].abandon(step)
        for partition, refused, taken in steps:
            step = self._work.step(partition, taken, now_ms, refused)
            if step is None or not step.entries:
                continue
            stepped = Stepped(partition, step, taken)
            try:
                (outcome,) = await self._append([stepped])
            except Unknown as error:
                self._outcomes.land(stepped, error)
            except (ResourceExhausted, InvalidArgument) as error:
                self._work.abandon(partition, step, taken, error)
            else:
                self._outcomes.land(stepped, outcome)


def _at_once(journal: Journal) -> AtOnceJournal | None:
    return cast("AtOnceJournal", journal) if getattr(journal, "appends_at_once", False) else None


def _never() -> bool:
    return False
