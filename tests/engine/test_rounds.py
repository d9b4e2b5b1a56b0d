"""A round that its submitter begins: it is the same round, and what it waits for is waited for."""

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Config
from holdfast.engine.kernel.rounds import StepRounds
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.kernel.work import Work
from holdfast.errors import DataLoss, ResourceExhausted, Unavailable
from holdfast.gateway.tasks.shapes import NewTask, TaskQuery
from holdfast.journal import Append, Outcome
from holdfast.journal.local.disk import RealFile
from holdfast.node import LocalNode
from holdfast.records import partition_of
from holdfast.testing import MemoryNode, run


async def quiet_node(begun: list[object]) -> MemoryNode:
    """A node whose submitters run the loop by themselves; it notes the rounds that they begin."""
    node = await MemoryNode().start()
    rounds: StepRounds[Any] = node.node.runner._rounds
    begin = rounds.begin

    def noted() -> None:
        begun.append(None)
        begin()

    rounds._is_quiet, rounds.begin = lambda: True, noted  # type: ignore[method-assign]
    return node


async def titles(node: MemoryNode) -> list[str]:
    return sorted(task.type for task in (await node.gateway.tasks.page(TaskQuery())).items)


def test_a_submission_is_durable_and_answered_before_it_first_waits(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path, Config())
        node.runner._rounds._is_quiet = lambda: True
        await node.gateway.tasks.submit([NewTask("a")])  # asks what is known of its type
        submitting: Any = node.gateway.tasks.submit([NewTask("a")])
        with pytest.raises(StopIteration) as ended:
            submitting.send(None)
        (receipt,) = ended.value.value
        assert receipt.created
        partition = partition_of(int(receipt.task_key))
        assert node.journal.bounds(TOPIC, partition).next > 0
        await node.close()

    asyncio.run(story())


def test_what_a_round_waits_for_is_left_to_the_runner() -> None:
    async def story() -> None:
        begun: list[object] = []
        node = await quiet_node(begun)
        go_on, append_many = asyncio.Event(), node.journal.append_many

        async def held(appends: Sequence[Append]) -> list[Outcome]:
            await go_on.wait()
            return await append_many(appends)

        node.journal.append_many = held  # type: ignore[method-assign]
        first = asyncio.ensure_future(node.gateway.tasks.submit([NewTask("a")]))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(node.gateway.tasks.submit([NewTask("b")]))
        await asyncio.sleep(0)
        assert len(begun) == 1, "there is one round at a time"
        assert not first.done() and not second.done()
        go_on.set()
        await asyncio.gather(first, second)
        assert await titles(node) == ["a", "b"]

    run(story())


def test_a_round_that_waits_is_finished_before_the_node_closes() -> None:
    async def story() -> None:
        node = await quiet_node([])
        go_on, append_many = asyncio.Event(), node.journal.append_many

        async def held(appends: Sequence[Append]) -> list[Outcome]:
            await go_on.wait()
            return await append_many(appends)

        node.journal.append_many = held  # type: ignore[method-assign]
        submitted = asyncio.ensure_future(node.gateway.tasks.submit([NewTask("a")]))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(node.node.runner.close())
        go_on.set()
        await closing
        assert (await submitted)[0].created

    run(story())


def test_a_refused_append_is_told_to_the_submitter_that_began_the_round() -> None:
    async def story() -> None:
        node = await quiet_node([])
        append_many = node.journal.append_many

        async def full(appends: Sequence[Append]) -> list[Outcome]:
            raise ResourceExhausted("no room", retry_after_ms=1)

        node.journal.append_many = full  # type: ignore[method-assign]
        with pytest.raises(ResourceExhausted):
            await node.gateway.tasks.submit([NewTask("a")])
        node.journal.append_many = append_many  # type: ignore[method-assign]
        await node.gateway.tasks.submit([NewTask("b")])
        assert await titles(node) == ["b"]

    run(story())


def test_an_error_that_stops_the_node_stops_it_from_any_round() -> None:
    async def story() -> None:
        node = await quiet_node([])

        async def broken(appends: Sequence[Append]) -> list[Outcome]:
            raise RuntimeError("a bug")

        node.journal.append_many = broken  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="a bug"):
            await node.gateway.tasks.submit([NewTask("a")])
        assert node.node.runner.failure is not None
        with pytest.raises(Unavailable, match="The node stopped"):
            await node.gateway.tasks.submit([NewTask("b")])

    run(story())


def test_while_the_runner_holds_a_submission_waits() -> None:
    async def story() -> None:
        begun: list[object] = []
        node = await quiet_node(begun)
        await node.node.runner.hold.begin()
        submitted = asyncio.ensure_future(node.gateway.tasks.submit([NewTask("a")]))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not begun and not submitted.done()
        node.node.runner.hold.end()
        assert (await submitted)[0].created

    run(story())


async def local_node(folder: Path) -> LocalNode:
    node = await LocalNode.open(folder, Config())
    node.runner._rounds._is_quiet = lambda: True
    await node.gateway.tasks.submit([NewTask("a")])  # asks what is known of its type
    return node


def test_before_the_sync_of_a_round_nothing_is_answered_or_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await local_node(tmp_path)
        runner, sync, seen = node.runner, RealFile.sync, list[bool]()

        def ends() -> list[int]:
            return [node.journal.bounds(TOPIC, each).next for each in runner.open_partitions()]

        def looked(file: RealFile) -> None:
            tickets = [taken[0].ticket for taken, _ in runner._work.at_hand]
            [step] = [step for _, step in runner._work.at_hand]
            assert step is not None
            seen.extend([tickets[0].done(), ends() != before, not step.is_prepared])
            seen.append(not any(each.state.undo_log for each in runner.processors.values()))
            sync(file)

        before = ends()
        monkeypatch.setattr(RealFile, "sync", looked)
        await node.gateway.tasks.submit([NewTask("a", delay_ms=60_000)])
        monkeypatch.undo()
        assert seen == [False] * 4 and ends() != before
        await node.close()

    asyncio.run(story())


def test_a_sync_without_room_takes_a_prepared_round_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await local_node(tmp_path)
        sync = RealFile.sync

        def full(file: RealFile) -> None:
            monkeypatch.setattr(RealFile, "sync", sync)
            raise OSError(errno.ENOSPC, "no room")

        monkeypatch.setattr(RealFile, "sync", full)
        with pytest.raises(ResourceExhausted):
            await node.gateway.tasks.submit([NewTask("a", delay_ms=60_000)])
        await node.gateway.tasks.submit([NewTask("b", delay_ms=60_000)])
        found = await node.gateway.tasks.page(TaskQuery())
        assert sorted(task.type for task in found.items) == ["a", "b"]
        _, waiting = node.runner.load()
        assert not waiting
        await node.close()
        again = await LocalNode.open(tmp_path, Config())
        found = await again.gateway.tasks.page(TaskQuery())
        assert sorted(task.type for task in found.items) == ["a", "b"]
        await again.close()

    asyncio.run(story())


def test_a_sync_that_fails_behind_a_prepared_round_stops_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await local_node(tmp_path)

        def broken(file: RealFile) -> None:
            raise OSError(errno.EIO, "a bad disk")

        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "sync", broken)
            with pytest.raises(Unavailable, match="a bad disk"):
                await node.gateway.tasks.submit([NewTask("a", delay_ms=60_000)])
        assert isinstance(node.runner.failure, DataLoss)
        await node.close()

    asyncio.run(story())


def test_a_bug_beside_the_write_of_a_round_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await local_node(tmp_path)
        prepared: list[object] = []

        def broken(self: object, steps: object) -> None:
            prepared.append(steps)
            raise RuntimeError("a bug")

        monkeypatch.setattr(Work, "prepare", broken)
        (receipt,) = await node.gateway.tasks.submit([NewTask("a", delay_ms=1)])
        assert prepared and receipt.created and node.runner.failure is None
        partition = partition_of(int(receipt.task_key))
        assert partition in node.runner._alarms._timers, "it is done behind the sync"
        await node.close()

    asyncio.run(story())
