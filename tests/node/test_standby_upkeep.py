"""A member looks after the state of the partitions that it stands by for, as for its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from shared_log import caught_up, close_member, open_member, replayed

from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import Unavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.node import LocalNode
from holdfast.records import ValueType


async def work(node: LocalNode, count: int) -> None:
    for number in range(count):
        command = Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"%d" % number))
        await node.runner.submit(1 + number % 2, [command])


async def open_both(tmp_path: Path, **config: Any) -> tuple[MemoryJournal, LocalNode, LocalNode]:
    shared = MemoryJournal()
    a = await open_member(tmp_path / "a", shared)
    b = await open_member(tmp_path / "b", shared, **config)
    for partition in (1, 2):
        await a.runner.open(partition)
    return shared, a, b


def rebuilt(node: LocalNode) -> Any:
    async def wait() -> None:
        async with asyncio.timeout(30):
            while node.health().status == "REBUILDING":  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    return wait()


@pytest.mark.parametrize("is_hot", [True, False])
def test_snapshots_have_standbys_and_the_log_is_cut_here_alone(
    tmp_path: Path, is_hot: bool
) -> None:
    async def story() -> None:
        shared, a, b = await open_both(tmp_path)
        if not is_hot:
            b.runner.standbys.pause()
            b.runner.standbys.is_hot = False
        ends: list[dict[int, int]] = []
        for _ in range(3):
            await work(a, 20)
            if is_hot:
                await caught_up(b)
            ends.append({each: shared.bounds(TOPIC, each).next for each in (1, 2)})
            await b.take_snapshot()
        newest = b.upkeep._snapshots.newest()
        assert newest is not None and newest[1] == ends[-1]
        for partition in (1, 2):
            assert b.journal.bounds(TOPIC, partition).earliest == ends[-2][partition]
            assert a.journal.bounds(TOPIC, partition).earliest == 0, "it is another's log"
        await work(a, 4)
        await close_member(tmp_path / "b", b)
        b = await open_member(tmp_path / "b", shared)  # with the end of the log alone
        await caught_up(b)
        await close_member(tmp_path / "a", a)
        for partition in (1, 2):
            await b.runner.open(partition)
            fresh = await replayed(shared, partition)
            assert b.runner.processor(partition).state.dump() == fresh.state.dump()
        await close_member(tmp_path / "b", b)

    asyncio.run(story())


def test_a_damaged_store_is_rebuilt_with_its_standbys(tmp_path: Path) -> None:
    async def story() -> None:
        shared, a, b = await open_both(tmp_path)
        await work(a, 20)
        await caught_up(b)
        await b.take_snapshot()
        await work(a, 20)
        await a.runner.close_partition(2)
        await b.runner.open(2)  # one of each
        await caught_up(b)
        b.upkeep._store.damaged("a test says so")
        with pytest.raises(Unavailable):
            await b.runner.open(1)
        with pytest.raises(Unavailable):
            await b.runner.close_partition(2)
        await rebuilt(b)
        assert b.runner.failure is None
        await work_on_both(a, b)
        await caught_up(b)
        standing = b.runner._lives.standing[1]
        assert standing.state.store is b.upkeep._store
        assert standing.state.dump() == (await replayed(shared, 1)).state.dump()
        assert b.runner.processor(2).state.dump() == (await replayed(shared, 2)).state.dump()
        await a.close()
        await b.close()

    asyncio.run(story())


async def work_on_both(a: LocalNode, b: LocalNode) -> None:
    for node, partition in ((a, 1), (b, 2)):
        new = NewJob("mail", b"after")
        await node.runner.submit(partition, [Command(ValueType.JOB, JobIntent.CREATE, 0, new)])


def test_a_partition_that_closes_while_the_state_is_rebuilt_closes_afterwards(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        shared, a, b = await open_both(tmp_path)
        await work(a, 20)
        last = a.runner.submit(
            1, [Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"1"))]
        )
        closing = asyncio.ensure_future(a.runner.close_partition(1))
        await asyncio.sleep(0)
        a.upkeep._store.damaged("a test says so")
        await closing
        assert (await last)[0].rejection is None, "it was accepted before"
        await rebuilt(a)
        assert a.runner.open_partitions() == [2] and a.runner.failure is None
        await caught_up(a)
        assert a.runner._lives.standing[1].state.dump() == (await replayed(shared, 1)).state.dump()
        await a.close()
        await b.close()

    asyncio.run(story())


def test_a_scrub_reads_the_files_of_the_members_own_journal(tmp_path: Path) -> None:
    async def story() -> None:
        _, a, b = await open_both(tmp_path)
        await work(a, 4)
        journal: Any = b.journal
        assert journal.folder == str(tmp_path / "b" / "journal")
        await b.upkeep.scrub()
        assert b.health().status == "UP"
        await a.close()
        await b.close()

    asyncio.run(story())
