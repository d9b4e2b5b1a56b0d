"""Where a node gets its state from, and what it says when it cannot get it."""

import asyncio
import errno
import os
import shutil
import time
from pathlib import Path

import pytest
from flips import (
    BATCHES,
    CONFIG,
    Truth,
    check_all,
    make_folder,
    persistently,
    until_healthy,
    work,
)

from holdfast.errors import DataLoss, Unavailable
from holdfast.journal.local import RealDisk, verify
from holdfast.journal.local.recovery import open_mark
from holdfast.node import LocalNode
from holdfast.state.copies import MANIFEST
from holdfast.upkeep import Upkeep


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("master") / "data"
    return folder, asyncio.run(make_folder(folder))


@pytest.fixture
def truth(master: tuple[Path, Truth]) -> Truth:
    return Truth(dict(master[1].waiting), set(master[1].ended))


@pytest.fixture
def folder(master: tuple[Path, Truth], tmp_path: Path) -> Path:
    shutil.copytree(master[0], tmp_path / "data")
    return tmp_path / "data"


async def check_node(folder: Path, truth: Truth) -> LocalNode:
    """The node comes up, has everything, works on, and has it all at the next start, too."""
    node = await LocalNode.open(folder, CONFIG)
    await check_all(node, truth)
    await work(node, truth, BATCHES)
    await node.close()
    again = await LocalNode.open(folder, CONFIG)
    await check_all(again, truth)
    await until_healthy(again)
    await again.close()
    return node


def newest_segments(folder: Path) -> list[Path]:
    """The segment that was written last, and the one that stands ready behind it."""
    records = folder / "journal" / "records"
    mark = open_mark(RealDisk(), str(records))
    durable = mark.load()
    mark.close()
    assert durable is not None
    return [
        each for each in sorted(records.glob("*.segment")) if int(each.stem) >= durable.sequence
    ]


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_no_file_of_the_state_has_two_names(master: tuple[Path, Truth]) -> None:
    files = [path for path in (master[0] / "state").rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if path.stat().st_nlink > 1] == []


def test_what_a_node_stores_is_for_its_owner_alone(master: tuple[Path, Truth]) -> None:
    folder, _ = master
    assert folder.stat().st_mode & 0o777 == 0o700
    own = [*(folder / "journal").rglob("*"), *(folder / "state" / "snapshots" / "3").iterdir()]
    assert [path for path in own if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("missing", ["deleted", "empty"])
def test_without_a_live_state_a_node_comes_up_from_its_newest_snapshot(
    folder: Path, truth: Truth, missing: str
) -> None:
    shutil.rmtree(folder / "state" / "live")
    if missing == "empty":
        (folder / "state" / "live").mkdir()
    asyncio.run(check_node(folder, truth))


def test_a_snapshot_that_does_not_verify_is_passed_over(folder: Path, truth: Truth) -> None:
    shutil.rmtree(folder / "state" / "live")
    spoil(next((folder / "state" / "snapshots" / "3").glob("*.sst")))
    asyncio.run(check_node(folder, truth))


def test_without_any_state_and_with_all_of_the_log_the_state_is_rebuilt(tmp_path: Path) -> None:
    async def story() -> None:
        truth = Truth({}, set())
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        await work(node, truth, 0)
        await node.close()
        shutil.rmtree(tmp_path / "data" / "state")
        await check_node(tmp_path / "data", truth)

    asyncio.run(story())


def test_without_any_good_state_and_with_a_cut_log_a_start_is_refused(folder: Path) -> None:
    for path in (folder / "state" / "snapshots").rglob("*.sst"):
        spoil(path)
    spoil(folder / "state" / "live" / "CURRENT")
    with pytest.raises(DataLoss) as refused:
        asyncio.run(LocalNode.open(folder, CONFIG))
    for word in ("snapshot 3", "snapshot 2", "log begins at", "backup"):
        assert word in refused.value.message


def test_a_state_that_is_ahead_of_its_log_is_not_replaced_by_an_older_one(folder: Path) -> None:
    for path in newest_segments(folder):
        path.unlink()
    (folder / "journal" / "records" / "durable").write_bytes(b"")  # nor does the mark tell
    with pytest.raises(DataLoss, match="as the state does"):
        asyncio.run(LocalNode.open(folder, CONFIG))


def test_snapshots_of_an_earlier_version_are_used_and_the_log_is_not_cut_behind_them(
    folder: Path, truth: Truth
) -> None:
    for path in (folder / "state" / "snapshots").glob(f"*/{MANIFEST}"):
        path.unlink()
    shutil.rmtree(folder / "state" / "live")

    async def story() -> None:
        await check_node(folder, truth)
        node = await LocalNode.open(folder, CONFIG)
        before = node.journal.bounds("records", 1)
        await node.take_snapshot()
        assert node.journal.bounds("records", 1).earliest == before.earliest
        await work(node, truth, BATCHES + 1)
        await node.take_snapshot()
        assert node.journal.bounds("records", 1).earliest > before.earliest
        there = {path.name for path in (folder / "state" / "snapshots").glob("?")}
        assert there == {"4", "5"}
        await node.close()

    asyncio.run(story())


def test_a_damaged_state_is_rebuilt_while_the_node_runs(folder: Path, truth: Truth) -> None:
    async def story() -> None:
        node = await LocalNode.open(folder, CONFIG)
        await node.upkeep.scrubbed.wait()
        for path in (folder / "state" / "live").glob("*.sst"):
            spoil(path)
        await node.upkeep.scrub()
        await until_healthy(node)
        assert node.metrics.storage.rebuilds == 1
        assert (folder / "state" / "damaged-1").is_dir()
        await check_all(node, truth)
        await work(node, truth, BATCHES)
        await node.close()
        await check_node(folder, truth)

    asyncio.run(story())


def test_a_command_that_meets_damage_is_not_decided_by_it(
    folder: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_scrub(_: Upkeep) -> None:
        """The commands are to find the damage, and nobody else."""

    monkeypatch.setattr(Upkeep, "_scrub", no_scrub)

    async def story() -> None:
        for path in (folder / "state" / "live").glob("*.sst"):
            spoil(path)
        node = await LocalNode.open(folder, CONFIG)
        keys, refused = list(truth.waiting), 0
        for key in keys:
            try:
                await node.gateway.tasks.cancel(key)
            except Unavailable:
                refused += 1
                await persistently(
                    lambda key=key: node.gateway.tasks.cancel(key), time.monotonic() + 30
                )
        assert refused and node.metrics.storage.rebuilds == 1
        assert node.metrics.partition(1).rejected == node.metrics.partition(2).rejected == 0
        for key in keys:
            assert (await node.gateway.tasks.get(key)).state == "CANCELED"
        await node.close()

    asyncio.run(story())


def test_a_state_that_cannot_be_rebuilt_stops_the_node_by_name(folder: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(folder, CONFIG)
        await node.upkeep.scrubbed.wait()
        for path in (folder / "state").rglob("*.sst"):
            spoil(path)
        scrubbing = asyncio.create_task(node.upkeep.scrub())
        while node.runner.failure is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        assert isinstance(node.runner.failure, DataLoss)
        assert "could not be rebuilt" in node.runner.failure.message
        health = await node.gateway.node.health()
        assert health.status == "DOWN" and "restore the folder" in health.damage[0]
        scrubbing.cancel()
        await node.close()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_damaged_snapshot_is_replaced_while_the_node_runs(folder: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(folder, CONFIG)
        await node.upkeep.scrubbed.wait()
        spoil(next((folder / "state" / "snapshots" / "3").glob("*.sst")))
        await node.upkeep.scrub()
        assert (
            b'holdfast_damage_found_total{what="snapshot"} 1.0' in await node.gateway.node.metrics()
        )
        there = sorted(path.name for path in (folder / "state" / "snapshots").iterdir())
        assert there == ["2", "4"]
        await node.close()

    asyncio.run(story())


# --- the journal's own witnesses --------------------------------------------------------------


def test_a_journal_without_its_newest_segment_does_not_verify(folder: Path) -> None:
    newest = newest_segments(folder)
    assert verify(str(folder / "journal"))[0].damage == []
    for path in newest:
        path.unlink()
    (damage,) = verify(str(folder / "journal"))[0].damage
    assert damage.file == str(newest[0]) and "missing" in damage.reason
    with pytest.raises(DataLoss, match=newest[0].name):
        asyncio.run(LocalNode.open(folder, CONFIG))


@pytest.mark.parametrize("name", ["durable", "earliest"])
def test_a_missing_marker_is_refused_by_name(folder: Path, name: str) -> None:
    path = folder / "journal" / "records" / name
    path.unlink()
    with pytest.raises(DataLoss, match=name):
        asyncio.run(LocalNode.open(folder, CONFIG))
    assert name in verify(str(folder / "journal"))[0].damage[0].file


def test_settings_without_a_checksum_are_those_of_an_earlier_version(
    folder: Path, truth: Truth
) -> None:
    path = folder / "journal" / "records" / "topic.json"
    path.write_text('{"partitions": 2, "retention": {"bytes": null, "age_ms": null}}')
    asyncio.run(check_node(folder, truth))


def test_settings_that_were_changed_by_a_bad_disk_are_read_from_their_copy(
    folder: Path, truth: Truth
) -> None:
    path = folder / "journal" / "records" / "topic.json"
    whole = path.read_bytes()
    path.write_text(path.read_text().replace('"partitions": 2', '"partitions": 3'))
    asyncio.run(check_node(folder, truth))
    assert path.read_bytes() == whole


def test_settings_that_are_damaged_with_their_copy_are_refused(folder: Path) -> None:
    for path in (folder / "journal" / "records").glob("topic*.json"):
        path.write_text(path.read_text().replace('"partitions": 2', '"partitions": 3'))
    with pytest.raises(DataLoss, match=r"topic\.copy\.json"):
        asyncio.run(LocalNode.open(folder, CONFIG))


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EMFILE])
def test_a_folder_that_cannot_be_written_is_unavailable_by_name(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: RealDisk, path: str, **__: object) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(RealDisk, "open", refuse)
    with pytest.raises(Unavailable, match=os.strerror(number)) as refused:
        asyncio.run(LocalNode.open(folder, CONFIG))
    assert str(folder) in refused.value.message
