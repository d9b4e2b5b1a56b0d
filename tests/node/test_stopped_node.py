"""The partitions of a stopped node, with one member and with several."""

import asyncio
import shutil
from pathlib import Path

import pytest
from flips import CONFIG, Truth, check_all, make_folder, work

from holdfast.blobs import open_blobs
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import InvalidState, NotFound, Unavailable
from holdfast.journal.local import LocalJournal
from holdfast.layout import Layout, write_layout
from holdfast.moving import open_stopped
from holdfast.node import LocalNode
from holdfast.state.moving import has_rows
from holdfast.state.portable import header_of
from holdfast.state.rocks import RocksStore


def nothing(count: int) -> None:
    del count


async def export(folder: Path, partition: int, target: Path) -> None:
    async with open_stopped(folder, partition) as node:
        moved = await node.export(
            partition, open_blobs(str(target)), f"{partition}.export", nothing
        )
    assert moved.partition == partition and moved.rows > 100
    assert moved.size_bytes == (target / f"{partition}.export").stat().st_size


async def take_in(folder: Path, partition: int, source: Path, *, new_log: bool = False) -> None:
    blobs = open_blobs(str(source), create=False)
    assert header_of(blobs, f"{partition}.export").partition == partition
    async with open_stopped(folder, partition) as node:
        node.import_(blobs, f"{partition}.export", nothing, new_log=new_log)


def test_what_is_exported_and_imported_with_its_log_is_the_same_node(tmp_path: Path) -> None:
    async def story() -> None:
        folder, blobs = tmp_path / "data", tmp_path / "blobs"
        truth: Truth = await make_folder(folder)
        for partition in (1, 2):
            await export(folder, partition, blobs)
        shutil.rmtree(folder / "state")
        for partition in (1, 2):
            await take_in(folder, partition, blobs)
        node = await LocalNode.open(folder, CONFIG)
        assert node.replayed_events == 0  # an export stands for the end of the log
        await check_all(node, truth)
        with pytest.raises(Unavailable):
            await export(folder, 1, blobs)
        await node.close()

    asyncio.run(story())


def test_a_partition_is_looked_for_at_the_member_that_has_it(tmp_path: Path) -> None:
    async def story() -> None:
        folder, blobs = tmp_path / "data", tmp_path / "blobs"
        await make_folder(tmp_path / "made")
        for member in ("1", "2"):
            shutil.copytree(tmp_path / "made", folder / "members" / member)
        write_layout(Layout(folder, 2, 2, "cluster"))
        shutil.rmtree(folder / "members" / "1" / "state")
        await export(folder, 2, blobs)
        with pytest.raises(NotFound, match="from 1 to 2"):
            await export(folder, 3, blobs)
        shutil.rmtree(folder / "members" / "2" / "state")
        await take_in(folder, 2, blobs)
        store = RocksStore(folder / "members" / "2" / "state" / "live")
        assert has_rows(store, 2) and not has_rows(store, 1)
        store.close()

    asyncio.run(story())


def test_a_node_goes_on_elsewhere_with_a_new_log(tmp_path: Path) -> None:
    async def story() -> None:
        folder, new, blobs = tmp_path / "data", tmp_path / "new", tmp_path / "blobs"
        truth: Truth = await make_folder(folder)
        await make_empty(new, 2)
        for partition in (1, 2):
            await export(folder, partition, blobs)
            with pytest.raises(InvalidState, match="or begin a new log"):
                await take_in(new, partition, blobs)
            await take_in(new, partition, blobs, new_log=True)
        for _ in range(2):  # its log begins in the middle, and is enough with the state
            node = await LocalNode.open(new, CONFIG)
            await check_all(node, truth)
            await work(node, truth, 0)
            await node.take_snapshot()
            await work(node, truth, 1)
            await node.close()
        shutil.rmtree(new / "state" / "live")  # its snapshots and its log
        node = await LocalNode.open(new, CONFIG)
        await check_all(node, truth)
        await node.close()

    asyncio.run(story())


def test_a_new_log_is_refused_where_it_would_lose_something(tmp_path: Path) -> None:
    async def story() -> None:
        folder, blobs = tmp_path / "data", tmp_path / "blobs"
        await make_folder(folder)
        await export(folder, 1, blobs)
        shutil.rmtree(folder / "state")
        with pytest.raises(InvalidState, match="a new log begins in a new folder"):
            await take_in(folder, 1, blobs, new_log=True)
        await make_empty(tmp_path / "other", 3)
        with pytest.raises(InvalidState, match="to have 2 partitions"):
            await take_in(tmp_path / "other", 1, blobs, new_log=True)

    asyncio.run(story())


async def make_empty(folder: Path, partitions: int) -> None:
    journal = LocalJournal.open(folder / "journal")
    journal.create_topic(TOPIC, partitions)
    await journal.close()
