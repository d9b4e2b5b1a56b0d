"""A node whose state is lost starts from the snapshot store and the log, or says why not."""

import asyncio
import functools
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from flips import CONFIG, Truth, check_all, until_healthy, work

from holdfast.config import Config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import DataLoss, Unavailable
from holdfast.node import LocalNode
from holdfast.state.copies import MANIFEST


def story(told):
    """A test that is a coroutine."""

    @functools.wraps(told)
    def run(**fixtures: object) -> None:
        asyncio.run(told(**fixtures))

    return run


def config_of(folder: Path) -> Config:
    return msgspec.structs.replace(CONFIG, snapshot_store=str(folder.parent / "store"))


async def make(folder: Path) -> Truth:
    """A node whose log was cut behind two snapshots in the store; some work came afterwards."""
    truth = Truth()
    node = await LocalNode.open(folder, config_of(folder))
    for batch in range(9):
        await work(node, truth, batch)
        if batch in (2, 5, 7):
            await node.take_snapshot()
    assert all(node.journal.bounds(TOPIC, each).earliest > 0 for each in (1, 2))
    assert node.metrics.storage.uploads == 3
    await node.close()
    return truth


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("master") / "data"
    return folder, asyncio.run(make(folder))


@pytest.fixture
def truth(master: tuple[Path, Truth]) -> Truth:
    return Truth(dict(master[1].waiting), set(master[1].ended))


@pytest.fixture
def folder(master: tuple[Path, Truth], tmp_path: Path) -> Path:
    shutil.copytree(master[0].parent, tmp_path / "all")
    return tmp_path / "all" / "data"


def stored(folder: Path, kind: str = "export") -> list[Path]:
    """The stored snapshots, by partition, oldest first."""
    return sorted((folder.parent / "store").rglob(f"*.{kind}"))


async def check(folder: Path, truth: Truth) -> None:
    """The node comes up, has everything, works on, and has it all at the next start, too."""
    for _ in range(2):
        node = await LocalNode.open(folder, config_of(folder))
        await check_all(node, truth)
        await work(node, truth, 10)
        await until_healthy(node)
        await node.close()


async def refusal(folder: Path, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        await LocalNode.open(folder, config_of(folder))
    return str(caught.value)


@story
async def test_a_node_that_lost_its_state_starts_from_the_store_and_the_log(
    folder: Path, truth: Truth
) -> None:
    assert len(stored(folder)) == len(stored(folder, "json")) == 4
    shutil.rmtree(folder / "state")
    await check(folder, truth)


@story
async def test_without_the_store_such_a_node_cannot_start(folder: Path) -> None:
    shutil.rmtree(folder / "state")
    with pytest.raises(DataLoss, match="the log begins at"):
        await LocalNode.open(folder, CONFIG)


@story
async def test_a_damaged_snapshot_of_the_store_is_passed_over(folder: Path, truth: Truth) -> None:
    shutil.rmtree(folder / "state")
    for newest in stored(folder)[1::2]:
        newest.write_bytes(newest.read_bytes()[:-10])
    await check(folder, truth)


@story
async def test_where_no_snapshot_is_good_the_start_is_refused_by_name(folder: Path) -> None:
    shutil.rmtree(folder / "state")
    for each in stored(folder)[:2]:
        each.write_bytes(each.read_bytes()[:-10])
    text = await refusal(folder, DataLoss)
    assert "a snapshot of partition 1 in" in text and "ends in the middle" in text
    assert "restore the folder from a backup" in text
    shutil.rmtree(folder.parent / "store")
    assert "there is none" in await refusal(folder, DataLoss)


@story
async def test_where_the_log_is_whole_it_needs_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.blobs.s3.BLOB_RETRIES_MAX", 0)
    folder, truth = tmp_path / "data", Truth()
    node = await LocalNode.open(folder, config_of(folder))
    await work(node, truth, 0)
    await node.close()
    shutil.rmtree(folder / "state")
    await check(folder, truth)
    # not even a store that can be reached
    shutil.rmtree(folder / "state")
    broken = msgspec.structs.replace(CONFIG, snapshot_store=unreachable())
    node = await LocalNode.open(folder, broken)
    await check_all(node, truth)
    await node.close()


def unreachable() -> str:
    return "s3://key:secret@bucket/prefix?endpoint=http://127.0.0.1:1&region=us-east-1"


@story
async def test_a_store_that_cannot_be_reached_stops_only_a_start_that_needs_it(
    folder: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.blobs.s3.BLOB_RETRIES_MAX", 0)
    broken = msgspec.structs.replace(CONFIG, snapshot_store=unreachable())
    node = await LocalNode.open(folder, broken)  # it has its state
    await check_all(node, truth)
    await node.close()
    shutil.rmtree(folder / "state")
    with pytest.raises(Unavailable, match="s3://bucket/prefix at http"):
        await LocalNode.open(folder, broken)
    await check(folder, truth)


@story
async def test_a_node_that_lost_its_log_does_not_start_as_a_new_one(folder: Path) -> None:
    shutil.rmtree(folder)
    text = await refusal(folder, DataLoss)
    assert "records that were acknowledged are missing" in text
    assert len(stored(folder)) == 4


@story
async def test_a_log_is_not_cut_behind_snapshots_that_are_not_in_the_store(
    folder: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.blobs.folder import FolderBlobs

    def fails(*_: object) -> None:
        raise Unavailable("the network is gone")

    node = await LocalNode.open(folder, config_of(folder))
    await work(node, truth, 20)
    await node.take_snapshot()
    earliest = {each: node.journal.bounds(TOPIC, each).earliest for each in (1, 2)}
    monkeypatch.setattr(FolderBlobs, "upload", fails)
    for batch in range(21, 25):
        await work(node, truth, batch)
        await node.take_snapshot()
    assert {each: node.journal.bounds(TOPIC, each).earliest for each in (1, 2)} == earliest
    assert node.metrics.storage.uploads_failed == 4
    (warning,) = node.health().warnings
    assert "the network is gone" in warning and str(folder.parent / "store") in warning
    monkeypatch.undo()
    await node.take_snapshot()  # nothing new has happened, and the store still gets it
    assert node.health().warnings == []
    await work(node, truth, 26)
    await node.take_snapshot()
    assert all(node.journal.bounds(TOPIC, each).earliest > earliest[each] for each in (1, 2))
    await node.close()
    shutil.rmtree(folder / "state")
    await check(folder, truth)


@story
async def test_a_state_that_is_damaged_while_it_runs_is_rebuilt_from_the_store(
    folder: Path, truth: Truth
) -> None:
    node = await LocalNode.open(folder, config_of(folder))
    for manifest in (folder / "state" / "snapshots").glob(f"*/{MANIFEST}"):
        shutil.rmtree(manifest.parent)
    node.upkeep._store.damaged("somebody says so")
    await check_all(node, truth)
    await until_healthy(node)
    assert node.metrics.storage.rebuilds == 1
    await node.close()
    await check(folder, truth)


@story
async def test_a_node_that_stops_in_the_middle_of_an_upload_leaves_nothing_behind(
    folder: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await LocalNode.open(folder, config_of(folder))
    await work(node, truth, 30)
    before = stored(folder)
    monkeypatch.setattr("holdfast.uploads.SCRUB_PAUSE_MS", 10**7)
    node.upkeep._begin(node.upkeep.take_snapshot())
    deadline = time.monotonic() + 30
    while not parts(folder):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await node.close()
    assert stored(folder) == before and not parts(folder)
    monkeypatch.undo()
    await check(folder, truth)


def parts(folder: Path) -> list[Path]:
    return list((folder.parent / "store").rglob(".*-part"))
