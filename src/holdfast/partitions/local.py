"""Partitions of this process, over the runner that has them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.clock import Clock
from holdfast.engine.asker import Asker
from holdfast.engine.jobs.values import JobsAvailable
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.kernel.inbox import tell as refuse
from holdfast.engine.kernel.lives import moved
from holdfast.engine.kernel.query import Query
from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.engine.partition import DISPATCH, QUESTIONS
from holdfast.engine.reader import Reader
from holdfast.engine.state import EngineState
from holdfast.errors import Code, Moved
from holdfast.journal import Journal
from holdfast.partitions.api import EffectTopic, Placement, Tell, Waiting
from holdfast.partitions.followers import Followers
from holdfast.records import Rejection

A = TypeVar("A")

Confirm = Callable[[int], Awaitable[bool]]
"""Whether nobody had taken a partition over when this was asked."""

OnLeft = Callable[[int, Sequence[Submission], Moved], None]
"""Has the tickets of submissions settled by the partition's next owner."""

_NO_JOB = Rejection(Code.NOT_FOUND, "There is no waiting job")


class LocalPartitions:
    """Keeps the port `Partitions` when all of them are here."""

    def __init__(self, runner: Runner[EngineState], journal: Journal, clock: Clock) -> None:
        self._runner = runner
        self._journal = journal
        self._clock = clock
        # A journal that others may take over without this member's knowing says whether they have.
        self._confirm: Confirm | None = getattr(journal, "confirm", None)
        self._waiting: Waiting | None = None
        self.on_opened: list[Callable[[int], None]] = []
        self.on_left: OnLeft | None = None
        self.followers = Followers()
        self.count = journal.topics()[TOPIC]
        self.near: Sequence[int] = sorted(runner.processors)
        self.submit: Callable[..., asyncio.Future[list[Reply]]] = runner.submit

    @property
    def of_machine(self) -> Sequence[int]:
        return self.near

    def placement(self) -> list[Placement]:
        epochs = {each: self._runner.epoch(each) for each in self.near}
        return [Placement(each, "", epoch or 0) for each, epoch in epochs.items()]

    def placed(self) -> None:
        """A partition was opened or closed: what may go anywhere goes to those that are open."""
        self.near = self._runner.open_partitions() or self.near

    def opened(self, partition: int) -> None:
        """A partition is open here, perhaps again: those who wait for it are told."""
        for callback in self.on_opened:
            callback(partition)

    def left(self, partition: int, left: Sequence[Submission], error: Moved) -> None:
        """Nothing of these reached the log of a partition that is closed here."""
        if self.on_left is None:
            refuse(left, error)
        else:
            self.on_left(partition, left, error)

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        return self._runner.submit_all(commands, size_bytes)

    def activate(self, partition: int, command: Command) -> "asyncio.Future[list[Reply]]":
        jobs = self._runner.processor(partition).view.jobs
        if any(map(jobs.waiting.has, command.value.types)):
            return self._runner.submit(partition, [command])
        nothing = asyncio.get_running_loop().create_future()
        nothing.set_result([Reply(rejection=_NO_JOB)])
        return nothing

    async def ask(
        self,
        partition: int,
        query: Query[A],
        asker: Asker | None = None,
        *,
        may_be_stale: bool = False,
    ) -> A:
        if self._confirm is not None and query.is_fresh and not may_be_stale:
            self._runner.processor(partition)  # or why it is not open
            if not await self._confirm(partition):
                raise moved(partition, "a quorum does not confirm that this member still owns it")
        if query.is_settled:
            await self._runner.settled(partition)
        processor = self._runner.processor(partition)
        now_ms = processor.time_ms(self._clock.now_ms())
        reader = Reader(processor, DISPATCH, self._journal, now_ms, asker)
        answer: Any = QUESTIONS.answer(reader, query)
        # What reads more than the state takes its time.
        return await answer if isinstance(answer, Coroutine) else answer

    def follow(self, topic: EffectTopic, tell: Tell) -> Callable[[], None]:
        return self.followers.follow(topic, tell)

    def serve(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def demand(self, partition: int, effects: list[Any]) -> Iterator[Submission]:
        """Jobs became available in a step: workers that wait get them in the same step."""
        waiting = self._waiting
        if waiting is None:
            return
        jobs = self._runner.processors[partition].view.jobs
        for effect in effects:
            if type(effect) is not JobsAvailable:
                continue
            while waiting.wants(effect.type) and jobs.waiting.has(effect.type):
                submission = waiting.next(effect.type)
                if submission is not None:
                    yield submission
