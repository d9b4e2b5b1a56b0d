"""A partition goes from one member to another while both work, whatever happens on the way."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.node.shared_log import PARTITIONS, caught_up, open_member, replayed

from holdfast.cluster import transfer
from holdfast.cluster.transfer import TransferSource, TransferTarget
from holdfast.engine.jobs.values import JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import InvalidState, ResourceExhausted, Unavailable, Unknown
from holdfast.journal.memory import MemoryJournal
from holdfast.limits import TRANSFERS_MAX
from holdfast.node import LocalNode
from holdfast.records import ValueType

ROWS = 1_500


async def work(node: LocalNode, count: int, size_bytes: int = 100) -> None:
    for first in range(0, count, 100):
        content = [Random(each).randbytes(size_bytes) for each in range(first, first + 100)]
        jobs = [
            Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", each)) for each in content
        ]
        await node.runner.submit(1, jobs)


class Way:
    """The way to the member that has the partition, and what happens on it."""

    def __init__(self, source: TransferSource) -> None:
        self.source = source
        self.calls = 0
        self.happens: dict[int, Callable[[bytes], bytes]] = {}  # at which call
        self.before: dict[int, Exception] = {}

    async def ask(self, member: str, body: bytes) -> bytes:
        assert member == "a"
        self.calls += 1
        await asyncio.sleep(0)
        number = self.calls
        if number in self.before:  # it is not sent
            raise self.before.pop(number)
        answer = await self.source.answer(body)
        if number in self.happens:
            return self.happens.pop(number)(answer)
        return answer


class Story:
    """A member with a partition and a cut log, and one without."""

    def __init__(self, shared: MemoryJournal, a: LocalNode, b: LocalNode, folder: Path) -> None:
        self.shared, self.a, self.b = shared, a, b
        journal: Any = a.journal
        self.source = TransferSource(a.upkeep, journal, a._clock)
        self.way = Way(self.source)
        log: Any = b.journal
        self.log = log
        self.target = TransferTarget(
            folder, b.upkeep, self.way.ask, lambda partition: ["a"], log.begin_at
        )
        b.runner.standbys.on_missing.append(self.target.fetch)

    async def arrives(self) -> None:
        """The member that lacks the beginning is to stand by."""
        bounds = self.shared.bounds(TOPIC, 1)
        self.log.discard(TOPIC, 1, bounds.next - 10)
        self.b.runner.stand_by(1)
        async with asyncio.timeout(30):
            while 1 not in self.b.runner._lives.standing:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def check(self) -> None:
        standing = self.b.runner._lives.standing[1]
        await self.a.runner.settled()
        await caught_up(self.b)
        fresh = await replayed(self.shared, 1)
        assert standing.state.dump() == fresh.state.dump()
        assert self.log.bounds(TOPIC, 1).earliest > 0


def play(tmp_path: Path, story: Callable[[Story], Awaitable[None]]) -> None:
    async def whole() -> None:
        shared = MemoryJournal()
        a = await open_member(tmp_path / "a", shared)
        b = await open_member(tmp_path / "b", shared)
        for partition in range(1, PARTITIONS + 1):
            b.runner.forget(partition)
        await a.runner.open(1)
        await work(a, ROWS)
        told = Story(shared, a, b, tmp_path / "arriving")
        await story(told)
        await told.target.close()
        await told.source.close()
        assert list((tmp_path / "arriving").iterdir()) == []
        assert a.upkeep.held == {}
        await a.close()
        await b.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer, "TRANSFER_CHUNK_BYTES", 5_000)
        patch.setattr(transfer, "TRANSFER_RETRY_MS", 1)
        asyncio.run(whole())


def test_a_member_without_the_beginning_of_a_log_gets_the_state_and_stands_by(
    tmp_path: Path,
) -> None:
    async def story(told: Story) -> None:
        await told.arrives()
        await told.check()
        assert told.way.calls > 5, "in chunks"
        newest = told.b.upkeep._snapshots.newest()
        async with asyncio.timeout(10):
            while newest is None:
                await asyncio.sleep(0.01)
                newest = told.b.upkeep._snapshots.newest()
        assert newest[1][1] >= told.log.bounds(TOPIC, 1).earliest, "it can be recovered here"
        await told.a.runner.close_partition(1)
        await told.b.runner.open(1)
        await work(told.b, 100)

    play(tmp_path, story)


def test_the_source_goes_on_meanwhile_and_so_does_the_target(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        await told.b.runner.open(2)
        done = 0

        async def go_on() -> None:
            nonlocal done
            while True:
                await work(told.a, 100)
                job = NewJob("mail", b"1")
                await told.b.runner.submit(2, [Command(ValueType.JOB, JobIntent.CREATE, 0, job)])
                done += 1
                await asyncio.sleep(0.001)

        going = asyncio.ensure_future(go_on())
        await told.arrives()
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        assert done > 3
        await told.check()

    play(tmp_path, story)


def test_broken_connections_and_damaged_chunks_are_asked_for_again(tmp_path: Path) -> None:
    def flipped(answer: bytes) -> bytes:
        at = len(answer) // 2
        return answer[:at] + bytes([answer[at] ^ 1]) + answer[at + 1 :]

    def lost(answer: bytes) -> bytes:
        raise Unknown("the connection broke before the answer")

    async def story(told: Story) -> None:
        told.way.happens = {3: flipped, 5: lost, 6: lost}
        told.way.before = {4: Unavailable("not connected"), 8: Unavailable("not connected")}
        await told.arrives()
        await told.check()
        assert told.way.happens == {} and told.way.before == {}

    play(tmp_path, story)


def test_a_transfer_that_the_source_no_longer_knows_begins_anew(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        def forgotten(answer: bytes) -> bytes:
            told.source._sendings.clear()
            told.a.upkeep.held.clear()
            return answer

        told.way.happens = {4: forgotten}
        await told.arrives()
        await told.check()

    play(tmp_path, story)


def test_what_is_not_whole_changes_nothing_here(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        received = told.target._receive
        attempts = 0

        def damage(file: Path) -> None:
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content if attempts == 1 else content[:-10])

        async def damaged(member: str, partition: int, file: Path) -> Any:
            nonlocal attempts
            begun = await received(member, partition, file)
            attempts += 1
            if attempts < 3:  # on the disk, after its checksum was looked at
                damage(file)
            return begun

        told.target._receive = damaged  # type: ignore[method-assign]
        removed: list[int] = []
        store = told.b.upkeep._store
        remove = store.remove
        store.remove = lambda *keys: (removed.append(attempts), remove(*keys))[1]  # type: ignore
        await told.arrives()
        assert removed == [3], "what is known is given up for what is whole alone"
        await told.check()

    play(tmp_path, story)


def test_old_rows_are_replaced_and_never_mixed(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        b = told.b.runner
        b.stand_by(1)
        await caught_up(told.b)
        b.write_state()
        b.forget(1)
        for key in list(told.a.runner.processor(1).view.jobs.jobs.first_keys((), None, 50)):
            cancel = Command(ValueType.JOB, JobIntent.CANCEL, key, JobRef())
            await told.a.runner.submit(1, [cancel])
        await told.arrives()
        assert told.way.calls, "its own rows were too old"
        await told.check()

    play(tmp_path, story)


def test_a_partition_that_is_open_or_opening_is_not_replaced(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        await told.b.runner.open(2)
        with pytest.raises(InvalidState), told.b.runner.standbys.arriving(2):
            pass
        with told.b.runner.standbys.arriving(1):
            with pytest.raises(Unavailable, match="still coming"):
                await told.b.runner.open(1)
            opening = asyncio.ensure_future(told.b.runner.open(1))
            await asyncio.sleep(0)
        await asyncio.gather(opening, return_exceptions=True)
        (tmp_path / "arriving").mkdir()

    play(tmp_path, story)


def test_a_member_sends_a_few_partitions_at_once_and_gives_up_idle_ones(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        begin = transfer._encode(transfer.BeginTransfer(1))
        for _ in range(TRANSFERS_MAX):
            await told.source.answer(begin)
        assert len(told.a.upkeep.held) == TRANSFERS_MAX
        with pytest.raises(ResourceExhausted):
            await told.source.answer(begin)
        for each in told.source._sendings.values():
            each.used -= 61
        await told.source.answer(begin)
        assert len(told.a.upkeep.held) == 1, "the log is kept for those that are under way"
        (tmp_path / "arriving").mkdir()

    play(tmp_path, story)


def test_neither_side_holds_more_than_a_few_chunks(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        await work(told.a, 400, size_bytes=40_000)  # 16 MB
        told.a.runner.write_state()
        file = tmp_path / "arriving" / "one"
        file.parent.mkdir()
        tracemalloc.start()
        await told.target._receive("a", 1, file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        file.unlink()
        assert peak < 6_000_000

    play(tmp_path, story)


def test_rows_of_a_partition_that_has_left_are_removed_and_come_back_with_it(
    tmp_path: Path,
) -> None:
    async def story(told: Story) -> None:
        await told.arrives()
        await caught_up(told.b)
        with pytest.raises(InvalidState):
            await told.a.remove_rows(1)  # it is open there
        told.b.runner.forget(1)
        told.b.runner.write_state()
        assert told.b.has_rows(1)
        await told.b.remove_rows(1)
        assert not told.b.has_rows(1)
        await told.b.take_snapshot()
        await work(told.a, 100)
        await told.arrives()
        await told.check()

    play(tmp_path, story)
