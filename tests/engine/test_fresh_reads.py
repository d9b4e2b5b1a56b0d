"""A query is answered by the owner as of now, or not at all, unless the asker does not mind."""

import asyncio
import contextlib
from random import Random
from typing import Any

import pytest
from fellows import Fellows, SharedLog

from holdfast.engine.jobs.queries import FindTask, FindWaitingTypes
from holdfast.engine.jobs.values import JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, InvalidState, Moved
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.partitions.local import LocalPartitions
from holdfast.partitions.wire import decode_query, encode_query
from holdfast.records import ValueType
from holdfast.testing import run


class Quorum:
    """The replicas, which know the newest epoch; each member asks them over a slow network."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self.asked = 0

    async def confirms(self, partition: int, epoch: int | None) -> bool:
        self.asked += 1
        newest = self._journal._topics[TOPIC].partitions[partition - 1].epoch
        is_newest = epoch == newest
        await asyncio.sleep(0.002)  # the answer is on its way, and of when it was given
        return is_newest


def confirming(fellows: Fellows) -> Quorum:
    """From now on members ask before they answer."""
    quorum = Quorum(fellows.journal)
    for node in fellows.nodes.values():

        async def confirm(partition: int, runner: Any = node.runner) -> bool:
            return await quorum.confirms(partition, runner.epoch(partition))

        node.runtime.partitions._confirm = confirm
    return quorum


def create(content: str = "1") -> Command:
    new = NewJob("mail", content.encode(), keep_ms=3_600_000)
    return Command(ValueType.JOB, JobIntent.CREATE, 0, new)


def test_a_former_owner_that_was_paused_never_answers_an_old_value_as_fresh() -> None:
    async def story() -> None:
        fellows = await Fellows(("a", "b"), 1).start()
        quorum = confirming(fellows)
        a, b = fellows.nodes["a"], fellows.nodes["b"]
        await a.runner.open(1)
        [made] = await a.runner.submit(1, [create()])
        await b.runner.open(1)  # and a hears nothing of it
        cancel = Command(ValueType.JOB, JobIntent.CANCEL, made.key, JobRef())
        [reply] = await b.runner.submit(1, [cancel])
        assert reply.rejection is None
        assert a.runner.epoch(1) is not None, "it believes that it is the owner"
        asked = FindTask(made.key)
        fresh = await b.runtime.partitions.ask(1, asked)
        with pytest.raises(Moved, match="confirm"):
            await a.runtime.partitions.ask(1, asked)
        stale = await a.runtime.partitions.ask(1, asked, may_be_stale=True)
        assert fresh is not None and stale is not None and fresh != stale, "what it had"
        before = quorum.asked
        assert await a.runtime.partitions.ask(1, FindWaitingTypes(("mail",))) == ["mail"]
        assert quorum.asked == before, "a hint that is acted upon through the log costs nothing"
        await fellows.close()

    run(story())


def test_a_partition_that_is_not_open_is_not_asked_about() -> None:
    async def story() -> None:
        fellows = await Fellows(("a",), 1).start()
        quorum = confirming(fellows)
        with pytest.raises(Moved):
            await fellows.nodes["a"].runtime.partitions.ask(1, FindTask(1))
        assert quorum.asked == 0
        await fellows.close()

    run(story())


def test_a_local_journal_is_not_asked_to_confirm() -> None:
    async def story() -> None:
        fellows = await Fellows(("a",), 1).start()
        runner = fellows.nodes["a"].runner
        log: Any = SharedLog(fellows.journal)
        assert LocalPartitions(runner, log, runner._clock)._confirm is None
        log.confirm = lambda partition: None
        assert LocalPartitions(runner, log, runner._clock)._confirm is log.confirm
        await fellows.close()

    run(story())


def test_staleness_is_said_over_the_wire() -> None:
    for may_be_stale in (False, True):
        received = decode_query(encode_query(3, FindTask(7), None, may_be_stale))
        assert (received.partition, received.may_be_stale) == (3, may_be_stale)


@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_before_a_query_is_in_its_answer(seed: int) -> None:
    """A node that has it open is asked, while others take it over and members do not hear of it."""

    async def story() -> None:
        random = Random(seed)
        fellows = await Fellows(("a", "b", "c"), 1).start()
        confirming(fellows)
        await fellows.nodes["a"].runner.open(1)
        acknowledged: dict[int, bool] = {}  # whether it was canceled
        answers = refusals = 0

        async def change() -> None:
            while True:
                await asyncio.sleep(random.uniform(0, 0.004))
                runner = random.choice(list(fellows.nodes.values())).runner
                try:
                    open_keys = [key for key, ended in acknowledged.items() if not ended]
                    if open_keys and random.random() < 0.4:
                        key = random.choice(open_keys)
                        cancel = Command(ValueType.JOB, JobIntent.CANCEL, key, JobRef())
                        [reply] = await runner.submit(1, [cancel])
                        acknowledged[key] = True
                    else:
                        [reply] = await runner.submit(1, [create()])
                        acknowledged[reply.key] = False
                except HoldfastError:
                    pass

        async def move() -> None:
            while True:
                await asyncio.sleep(random.uniform(0, 0.02))
                with contextlib.suppress(Moved, InvalidState):
                    await random.choice(list(fellows.nodes.values())).runner.open(1)

        working = [asyncio.ensure_future(each()) for each in (change, change, move)]
        for _ in range(300):
            await asyncio.sleep(random.uniform(0, 0.004))
            if not acknowledged:
                continue
            key, node = random.choice(list(acknowledged)), random.choice([*fellows.nodes.values()])
            was_canceled = acknowledged[key]
            try:
                found: Any = await node.runtime.partitions.ask(1, FindTask(key))
            except Moved:
                refusals += 1
                continue
            answers += 1
            assert found is not None, "it was created"
            if was_canceled:
                assert found.outcome is not None, "it was canceled"
        for each in working:
            each.cancel()
        assert answers > 20 and refusals > 20
        await asyncio.gather(*working, return_exceptions=True)
        await fellows.close()

    run(story())


def test_a_query_is_answered_though_the_partition_never_rests() -> None:
    """Each step takes a while to be acknowledged, and the next one waits already."""

    async def story() -> None:
        journal = MemoryJournal(fate=lambda append: Fate.SLOW)
        fellows = await Fellows(("a",), 1, journal=journal).start()
        node = fellows.nodes["a"]
        await node.runner.open(1)
        [made] = await node.runner.submit(1, [create()])

        async def load() -> None:
            while True:
                node.runner.submit(1, [create()])
                await asyncio.sleep(0.0002)

        loading = asyncio.ensure_future(load())
        await asyncio.sleep(0.05)
        async with asyncio.timeout(0.02):
            assert await node.runtime.partitions.ask(1, FindTask(made.key)) is not None
        loading.cancel()
        await fellows.close()

    run(story())


def test_a_query_is_answered_though_every_round_has_a_step() -> None:
    async def story() -> None:
        fellows = await Fellows(("a",), 1).start()
        node = fellows.nodes["a"]
        await node.runner.open(1)
        [made] = await node.runner.submit(1, [create()])

        async def load() -> None:
            while True:
                node.runner.submit(1, [create()])
                await asyncio.sleep(0)

        loading = asyncio.ensure_future(load())
        await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        asking = asyncio.ensure_future(node.runtime.partitions.ask(1, FindTask(made.key)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert asking.done()
        loading.cancel()
        await fellows.close()

    run(story())
