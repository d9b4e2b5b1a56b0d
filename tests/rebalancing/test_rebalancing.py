"""Another number of processes for a folder: everything stays as it was, wherever it is."""

import asyncio
import collections
import shutil
import stat
from pathlib import Path

import pytest
from divided import (
    PARTITIONS,
    STAYS,
    activate,
    check_all,
    complete_some,
    logs,
    make_folder,
    opened,
    work,
)

from holdfast.errors import (
    DataLoss,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from holdfast.folder_format import FORMAT_FILE
from holdfast.layout import Layout, divide, layout_of
from holdfast.node import LocalNode
from holdfast.rebalancing import rebalance
from holdfast.state.families import progress_key
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import verify_state


def nothing(what: str, size_bytes: int) -> None:
    del what, size_bytes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that tests copy."""
    folder = tmp_path_factory.mktemp("rebalancing") / "data"
    asyncio.run(make_folder(folder))
    return folder


def test_from_one_process_to_three_to_two_and_back_to_one(tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "data"
        truth = await make_folder(folder)
        for batch, processes in enumerate((3, 2, 1), start=4):
            before = logs(folder)
            old = layout_of(folder)
            done = await rebalance(folder, processes, nothing)
            now = layout_of(folder)
            assert (done.processes, done.processes_before) == (processes, old.members)
            assert now.members == processes
            assert now.cluster != old.cluster, "members of the old division do not join the new"
            assert done.moved == [
                each for each in range(1, PARTITIONS + 1) if old.owner(each) != now.owner(each)
            ]
            assert logs(folder) == before, "offsets, times, epochs and entries are the same"
            assert all((folder / name).exists() for name in STAYS)
            left = {path.name for path in folder.iterdir()}
            expected = {"members", "members.json"} if processes > 1 else {"journal", "state"}
            expected |= {FORMAT_FILE, *(name.split("/")[0] for name in STAYS)}
            assert left - {"running"} == expected
            for journal in now.journals():
                assert stat.S_IMODE(journal.parent.stat().st_mode) == 0o700
                state = dict(verify_state(journal.parent / "state"))
                assert state == {"live": None, "snapshot 1": None}, "they have a first snapshot"
            async with opened(folder) as nodes:
                assert len(nodes) == processes
                for node in nodes:
                    await check_all(node.gateway, truth)
                await complete_some(nodes[-1].gateway, truth, 10)
                await work(nodes[0].gateway, truth, batch)
        async with opened(folder) as (node,):
            await check_all(node.gateway, truth)
            jobs = await activate(node.gateway, len(truth.waiting))
            counted = collections.Counter(job.job_key for job in jobs)
            assert counted == collections.Counter(list(truth.waiting)), "each once"

    asyncio.run(story())


def test_a_folder_whose_node_was_killed_is_divided_with_what_its_log_has(tmp_path: Path) -> None:
    """The store is behind the log; what is missing is replayed by the new members."""

    async def story() -> None:
        folder = tmp_path / "data"
        truth = await make_folder(folder)
        async with opened(folder) as (node,):
            await work(node.gateway, truth, 4)
            await node.runner.settled()
            # A checkpoint that is being made has links that go while they are copied.
            unfinished = shutil.ignore_patterns("*.links")
            shutil.copytree(folder, tmp_path / "killed", ignore=unfinished)
        done = await rebalance(tmp_path / "killed", 2, nothing)
        assert done.processes == 2
        async with opened(tmp_path / "killed") as nodes:
            assert sum(node.replayed_events for node in nodes) > 0
            await check_all(nodes[1].gateway, truth)

    asyncio.run(story())


def test_what_cannot_be_divided_is_refused_and_stays(made: Path, tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "data"
        shutil.copytree(made, folder)
        before = logs(folder)
        with pytest.raises(NotFound, match="check the path"):
            await rebalance(tmp_path / "nowhere", 2, nothing)
        (tmp_path / "empty").mkdir()
        with pytest.raises(NotFound, match="no log"):
            await rebalance(tmp_path / "empty", 2, nothing)
        with pytest.raises(InvalidArgument, match="at least one partition"):
            await rebalance(folder, PARTITIONS + 1, nothing)
        async with opened(folder):
            with pytest.raises(Unavailable, match="in use by"):
                await rebalance(folder, 2, nothing)
        assert (await rebalance(folder, 1, nothing)).moved == []
        before = logs(folder)
        await rebalance(folder, 2, nothing)
        async with opened(folder):
            with pytest.raises(Unavailable, match="in use by"):
                await rebalance(folder, 3, nothing)
        with pytest.raises(InvalidState, match="divided among 2"):
            await LocalNode.open(folder)
        assert not (folder / "journal").exists()
        with pytest.raises(InvalidState, match="holdfast partitions rebalance"):
            divide(folder, 3, None, 1)
        for partition, (_, _, appends) in before.items():
            assert logs(folder)[partition][2][: len(appends)] == appends

    asyncio.run(story())


def test_without_room_on_the_disk_nothing_is_begun(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    usage = shutil.disk_usage(folder)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ResourceExhausted, match=r"free bytes .* but found 1,048,576"):
        asyncio.run(rebalance(folder, 2, nothing))
    assert layout_of(folder) == Layout(folder) and not (folder / "members.next").exists()


def test_a_state_that_its_log_does_not_reach_is_refused_with_a_way(
    made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    before = logs(folder)
    shutil.rmtree(folder / "state")
    with pytest.raises(InvalidState, match="start the node once"):
        asyncio.run(rebalance(folder, 2, nothing))
    assert logs(folder) == before and not (folder / "members.next").exists()


def test_a_copy_that_differs_never_takes_effect(made: Path, tmp_path: Path) -> None:
    """What was copied is compared with what is read back, whatever went wrong in between."""
    folder = tmp_path / "data"
    shutil.copytree(made, folder)

    def add_something(what: str, size_bytes: int) -> None:
        if (what, size_bytes) == ("checking", 0):
            store = RocksStore(folder / "members.next" / "1" / "state" / "live")
            store.write([(progress_key(1) + b"x", b"nobody wrote this")], [])
            store.close()

    with pytest.raises(DataLoss, match="the copy of partition 1"):
        asyncio.run(rebalance(folder, 2, add_something))
    assert layout_of(folder) == Layout(folder) and not (folder / "members.next").exists()
