"""The retention of topics is enforced by the node, as far as nobody needs what it would drop."""

import asyncio
from pathlib import Path

import pytest

from holdfast import retained, upkeep
from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    NewTask,
    TaskQuery,
)
from holdfast.journal import Retention
from holdfast.limits import ENDED_RECORDS, KIB, SEGMENT_BYTES_MIN
from holdfast.node import LocalNode

CONFIG = Config(partitions=1, segment_bytes=SEGMENT_BYTES_MIN)


async def filled(folder: Path, config: Config = CONFIG) -> LocalNode:
    node = await LocalNode.open(folder, config)
    node.journal.create_topic("news", 2, Retention(bytes=64 * KIB))
    for _ in range(100):
        await node.journal.append("news", 1, [bytes(4 * KIB)])
    return node


def earliest(node: LocalNode) -> int:
    return node.journal.bounds("news", 1).earliest


def test_a_node_enforces_the_retention_of_its_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "RETENTION_INTERVAL_MS", 10)

    async def story() -> None:
        node = await filled(tmp_path / "data")
        async with asyncio.timeout(20):
            # segment by segment, and nobody tells of it
            while node.journal.bytes_used("news") >= 64 * KIB + 2 * SEGMENT_BYTES_MIN:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert earliest(node)
        await node.close()

    asyncio.run(story())


def test_a_registered_reader_is_waited_for_within_its_limit(tmp_path: Path) -> None:
    async def story() -> None:
        node = await filled(tmp_path / "data")
        readers = tmp_path / "data" / "readers" / "news"
        readers.mkdir(parents=True)
        (readers / "mine.json").write_text('{"1": 7, "2": 0}')
        await node.upkeep.enforce_retention()
        assert earliest(node) <= 7
        (readers / "mine.json").write_text('{"1": 50, "2": 0}')
        await node.upkeep.enforce_retention()
        assert 7 < earliest(node) <= 50
        await node.close()

        small = Config(partitions=1, segment_bytes=SEGMENT_BYTES_MIN, journal_bytes_max=128 * KIB)
        node = await LocalNode.open(tmp_path / "data", small)
        await node.upkeep.enforce_retention()
        assert earliest(node) > 50, "a reader that is stuck does not fill the disk"
        await node.close()

    asyncio.run(story())


def test_the_records_are_never_dropped_before_snapshots_have_them(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        node.journal.create_topic(TOPIC, 1, Retention(age_ms=1))
        for _ in range(20):
            await node.gateway.tasks.submit([NewTask("mail")] * 100)
        await node.upkeep.enforce_retention()
        assert node.journal.bounds(TOPIC, 1).earliest == 0, "no snapshot stands for it"
        await node.close()
        again = await LocalNode.open(tmp_path / "data", CONFIG)
        assert len(again.runner.processors) == 1
        await again.close()

    asyncio.run(story())


async def turn_over(node: LocalNode, count: int) -> list[str]:
    """So many tasks come and go; their keys."""
    receipts = await node.gateway.tasks.submit([NewTask("mail") for _ in range(count)])
    jobs = await node.gateway.jobs.activate(ActivationRequest(["mail"], "w", count))
    await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
    return [each.task_key for each in receipts]


def test_the_log_is_kept_for_what_ended_lately_up_to_a_number_of_records(tmp_path: Path) -> None:
    config = Config(partitions=1, segment_bytes=SEGMENT_BYTES_MIN, ended_kept_max=20)

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", config)
        done = await turn_over(node, 15)
        for _ in range(4):
            await node.take_snapshot()
            await node.gateway.tasks.submit([NewTask("later")])
        assert node.journal.bounds(TOPIC, 1).earliest == 0
        await node.close()

        node = await LocalNode.open(tmp_path / "data", config)
        page = await node.gateway.tasks.page(TaskQuery(scope=ListScope.ENDED))
        assert sorted(each.task_key for each in page.items) == sorted(done)
        done = await turn_over(node, 200)
        for _ in range(3):
            await node.take_snapshot()
            await node.gateway.tasks.submit([NewTask("later")])
        earliest, end = node.journal.bounds(TOPIC, 1)
        assert 0 < end - earliest <= 20 * ENDED_RECORDS + 20
        page = await node.gateway.tasks.page(TaskQuery(scope=ListScope.ENDED))
        assert len(page.items) == 20 and {each.task_key for each in page.items} <= set(done)
        await node.upkeep.take_snapshot(again=True)
        await node.upkeep.take_snapshot(again=True)
        cut = node.journal.bounds(TOPIC, 1)
        assert cut.next - cut.earliest < 20, "what is taken again may be damaged: the log goes"
        page = await node.gateway.tasks.page(TaskQuery(scope=ListScope.ENDED))
        assert len(page.items) == 20, "what was read is known until the node stops"
        await node.close()

    asyncio.run(story())


def test_a_large_log_is_not_kept_for_what_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "ENDED_LOG_BYTES_MAX", 1)

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        await turn_over(node, 10)
        for _ in range(3):
            await node.take_snapshot()
            await node.gateway.tasks.submit([NewTask("later")])
        assert node.journal.bounds(TOPIC, 1).earliest > 10
        page = await node.gateway.tasks.page(TaskQuery(scope=ListScope.ENDED))
        assert not page.items and page.ended_since is not None
        await node.close()

    asyncio.run(story())
