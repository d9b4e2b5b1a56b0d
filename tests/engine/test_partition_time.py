"""Time in a partition never goes back when its owner changes."""

import asyncio
from typing import Any

from fellows import Fellows

from holdfast.engine.jobs.queries import FindJob
from holdfast.engine.jobs.values import Activation, JobBatchIntent, JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.engine.reader import Reader
from holdfast.records import ValueType
from holdfast.testing import run

AHEAD_MS = 10_000


class Ahead:
    """A clock that shows another time."""

    def __init__(self, clock: Any, by_ms: int) -> None:
        self._clock = clock
        self._by_ms = by_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._by_ms


def create(due_ms: int = 0) -> Command:
    return Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"1", due_ms=due_ms))


def activate(lease_ms: int) -> Command:
    value = Activation(["mail"], "worker", 1, lease_ms)
    return Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)


async def times(fellows: Fellows) -> list[int]:
    entries = await fellows.journal.read(TOPIC, 1, 0)
    return [each.timestamp_ms for each in DISPATCH.codec.decode_many([e.payload for e in entries])]


def test_after_a_take_over_from_a_clock_that_is_ahead_time_stands_until_it_is_reached() -> None:
    async def story() -> None:
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        start_ms = clock.now_ms()
        clocks = {"a": Ahead(clock, AHEAD_MS)}
        fellows = await Fellows(("a", "b"), 1, clocks).start()
        a, b = fellows.nodes["a"].runner, fellows.nodes["b"].runner
        await a.open(1)
        soon_ms = start_ms + AHEAD_MS + 3_000
        await a.submit(1, [create(soon_ms)])
        await a.submit(1, [create()])
        [[leased]] = [await a.submit(1, [activate(5_000)])]
        assert leased.rejection is None
        last_ms = (await times(fellows))[-1]
        assert last_ms == start_ms + AHEAD_MS
        await b.open(1)
        await b.submit(1, [create()])
        assert (await times(fellows))[-1] == last_ms, "the clock shows less, and time stands"
        await asyncio.sleep(AHEAD_MS / 1000 - 1)
        await b.submit(1, [create()])
        assert (await times(fellows))[-1] == last_ms
        await asyncio.sleep(5)
        found = await times(fellows)
        assert found == sorted(found)
        assert found[-1] == soon_ms, "from then on it goes by the clock"
        await fellows.close()

    run(story())


def test_what_was_due_for_the_former_owner_is_done_at_once() -> None:
    """Its clock was past the due date, and it wrote something, when it was lost."""

    async def story() -> None:
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        clocks = {"a": Ahead(clock, AHEAD_MS)}
        fellows = await Fellows(("a", "b"), 1, clocks).start()
        a, b = fellows.nodes["a"].runner, fellows.nodes["b"].runner
        await a.open(1)
        due_ms = clock.now_ms() + AHEAD_MS + 500
        [reply] = await a.submit(1, [create(due_ms)])
        a._alarms.stop()  # it is busy with others
        processor = a.processor(1)
        due, processor._due.source.due = processor._due.source.due, lambda *_: []  # type: ignore[method-assign]
        await asyncio.sleep(1)
        await a.submit(1, [create()])
        processor._due.source.due = due  # type: ignore[method-assign]
        await b.open(1)
        await asyncio.sleep(0.01)
        job = b.processor(1).view.jobs.jobs.get(reply.key)
        assert job is not None and job.due_ms == 0, "it waits for a worker"
        await fellows.close()

    run(story())


def test_a_query_is_answered_for_the_time_of_the_partition() -> None:
    async def story() -> None:
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        fellows = await Fellows(("a", "b"), 1, {"a": Ahead(clock, AHEAD_MS)}).start()
        a, b = fellows.nodes["a"], fellows.nodes["b"]
        await a.runner.open(1)
        [reply] = await a.runner.submit(1, [create()])
        await b.runner.open(1)
        seen: list[int] = []
        ask = b.runtime.partitions.ask
        init = Reader.__init__

        def noted(reader: Any, *rest: Any) -> None:
            init(reader, *rest)
            seen.append(reader.now_ms)

        Reader.__init__ = noted  # type: ignore[method-assign]
        try:
            await ask(1, FindJob(reply.key))
        finally:
            Reader.__init__ = init  # type: ignore[method-assign]
        assert seen == [clock.now_ms() + AHEAD_MS]
        await fellows.close()

    run(story())
