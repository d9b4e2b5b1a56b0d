"""Nodes over one log that is kept elsewhere: no files of it here, states come by the blob store."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from shared_log import PARTITIONS, MemberPlace, caught_up, replayed
from test_standby_upkeep import work

from holdfast.brokered.feeding import Feeding
from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import DataLoss
from holdfast.journal import Journal
from holdfast.journal.memory import MemoryJournal
from holdfast.node import LocalNode


class Kept(MemoryJournal):
    """A log that outlives its users."""

    async def close(self) -> None:
        """It stays open for the others."""


async def open_node(folder: Path, kept: Kept, **config: Any) -> LocalNode:
    async def elsewhere(*_: object) -> Journal:
        return kept

    settings = Config(partitions=PARTITIONS, ended_kept_max=0, **config)
    place = MemberPlace(folder)
    node = await LocalNode.open(folder, settings, place=place, elsewhere=elsewhere)
    node.runner.doors.prepare = node.upkeep.restore
    return node


async def open_all(node: LocalNode) -> LocalNode:
    for partition in range(1, PARTITIONS + 1):
        await node.runner.open(partition)
    return node


async def close_all(node: LocalNode) -> None:
    for partition in range(1, PARTITIONS + 1):
        await node.runner.close_partition(partition)


async def check_state(node: LocalNode, kept: Kept, before: dict[int, int]) -> None:
    """Whatever it began with, it knows what the log says."""
    for partition, positions in before.items():
        assert node.runner.processor(partition).next_position == positions


def positions_of(node: LocalNode) -> dict[int, int]:
    return {each: p.next_position for each, p in node.runner.processors.items()}


def test_a_node_without_files_of_its_log_works_and_is_healthy(tmp_path: Path) -> None:
    async def story() -> None:
        kept = Kept()
        node = await open_all(await open_node(tmp_path / "a", kept))
        await work(node, 20)
        await node.upkeep.scrub()
        assert node.health().status == "UP"
        assert not (tmp_path / "a" / "journal").exists()
        positions = positions_of(node)
        await node.close()
        again = await open_all(await open_node(tmp_path / "a", kept))
        await check_state(again, kept, positions)
        await again.close()
        fresh = await replayed(kept, 1)
        assert fresh.next_position == positions[1]

    asyncio.run(story())


def test_without_a_blob_store_the_log_is_never_cut(tmp_path: Path) -> None:
    async def story() -> None:
        kept = Kept()
        node = await open_all(await open_node(tmp_path / "a", kept, journal_bytes_max=1))
        for _ in range(4):
            await work(node, 20)
            await node.take_snapshot()
            await node.upkeep.enforce_retention()
        assert all(kept.bounds(TOPIC, each).earliest == 0 for each in (1, 2))
        await node.close()

    asyncio.run(story())


def test_the_log_is_cut_behind_stored_snapshots_and_an_empty_disk_begins_with_them(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        kept, store = Kept(), str(tmp_path / "store")
        a = await open_all(await open_node(tmp_path / "a", kept, snapshot_store=store))
        b = await open_node(tmp_path / "b", kept, snapshot_store=store)
        for _ in range(4):
            await work(a, 20)
            await a.take_snapshot()
        assert all(kept.bounds(TOPIC, each).earliest > 0 for each in (1, 2))
        positions = positions_of(a)
        await close_all(a)
        await open_all(b)
        await check_state(b, kept, positions)
        await work(b, 10)
        cut = kept.bounds(TOPIC, 1).earliest
        await a.take_snapshot()  # it is not theirs any more: nothing is stored, nothing is cut
        assert kept.bounds(TOPIC, 1).earliest == cut
        positions = positions_of(b)
        for _ in range(3):
            await work(b, 20)
            await b.take_snapshot()
        assert kept.bounds(TOPIC, 1).earliest > positions[1], "the rows of a do not reach any more"
        positions = positions_of(b)
        await b.close()
        await open_all(a)
        await check_state(a, kept, positions)
        await a.close()

    asyncio.run(story())


def test_a_standby_whose_log_is_gone_begins_with_a_stored_snapshot(tmp_path: Path) -> None:
    async def story() -> None:
        kept, store = Kept(), str(tmp_path / "store")
        a = await open_all(await open_node(tmp_path / "a", kept, snapshot_store=store))
        for _ in range(4):
            await work(a, 20)
            await a.take_snapshot()
        b = await open_node(tmp_path / "b", kept, snapshot_store=store)
        feeding = Feeding(b.runner.standbys, b.upkeep.restore)
        for partition in (1, 2):
            b.runner.stand_by(partition)
        await caught_up(b)
        positions = positions_of(a)
        await close_all(a)
        await open_all(b)
        await check_state(b, kept, positions)
        await feeding.close()
        await asyncio.gather(a.close(), b.close())

    asyncio.run(story())


def test_a_partition_without_state_anywhere_stays_closed_and_says_why(tmp_path: Path) -> None:
    async def story() -> None:
        kept = Kept()
        kept.create_topic(TOPIC, PARTITIONS)
        for number in range(3):
            await kept.append(TOPIC, 1, [b"%d" % number])
        kept.discard(TOPIC, 1, 2)
        node = await open_node(tmp_path / "a", kept)
        with pytest.raises(DataLoss, match="snapshot_store"):
            await node.runner.open(1)
        await node.runner.open(2)
        assert node.health().status in ("UP", "CHECKING")
        await node.close()

    asyncio.run(story())
