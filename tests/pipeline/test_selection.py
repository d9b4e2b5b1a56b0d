"""Selections: what Spark finds stays as it was found, and is handed out page by page."""

import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.select_reference import meets
from tests.pipeline.select_tables import (
    BASE,
    INCIDENTS,
    PROCESS_INSTANCES,
    RECORDS,
    SPREAD,
    VARIABLES,
    Tables,
    instances,
    with_instances,
)

from holdfast.errors import DeadlineExceeded, InvalidArgument, NotFound
from holdfast.pipeline.search.search import Search
from holdfast.pipeline.select import selection
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.prune import pruned
from holdfast.pipeline.select.selection import select, wait_for, write_keys
from holdfast.pipeline.select.snapshot import (
    SelectionManifest,
    Snapshot,
    drop_snapshot,
    find_snapshot,
    open_snapshot,
    store_manifest,
    write_run,
)
from holdfast.pipeline.select.tree import EVERYTHING, All, Within
from holdfast.pipeline.select.tree import Any as AnyOf
from holdfast.pipeline.tables.delta import files_at
from holdfast.pipeline.tables.progress import load_progress
from holdfast.records import key_of
from holdfast.testing.loop import VirtualClock

ACTIVE = read_filter(PROCESS_INSTANCES, {"state": "ACTIVE"})
NOBODY = read_filter(PROCESS_INSTANCES, {"processId": "'; DROP TABLE x\0\\%_🦀"})


def all_pages(snapshot: Snapshot, partition: int, limit: int) -> list[int]:
    keys: list[int] = []
    cursor = None
    while True:
        page = snapshot.page(partition, cursor, limit)
        keys += page.keys
        if (cursor := page.next) is None:
            return keys


def active(partition: int, count: int) -> list[int]:
    return [key for key, row in instances(partition, count).items() if row["state"] == "ACTIVE"]


@pytest.mark.parametrize("rows_per_task", [1, 1_000])
def test_a_snapshot_has_the_keys_of_each_partition_in_their_order(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_task: int
) -> None:
    monkeypatch.setattr(selection, "_ROWS_PER_TASK", rows_per_task)
    with_instances(tmp_path)
    snapshot = select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {1: 41, 3: 41}, 0)
    assert snapshot.count() == 30
    for partition in (1, 2, 3):
        assert snapshot.count(partition) == 10
        for limit in (1, 3, 10, 10_000):
            assert all_pages(snapshot, partition, limit) == active(partition, 40)
    assert snapshot.page(9).keys == []
    manifest = snapshot.manifest
    assert manifest.filter == ACTIVE and manifest.positions == {1: 41, 2: 41, 3: 41}
    sample = snapshot.sample(6)
    assert len(sample) == 6 and {key // BASE for key in sample} == {1, 2, 3}
    assert open_snapshot(tmp_path, snapshot.name).manifest == manifest
    drop_snapshot(tmp_path, snapshot.name)
    drop_snapshot(tmp_path, snapshot.name)
    assert find_snapshot(tmp_path, snapshot.name) is None
    with pytest.raises(NotFound):
        open_snapshot(tmp_path, snapshot.name)


def test_only_what_the_asker_may_see_is_selected(spark: Any, tmp_path: Path) -> None:
    with_instances(tmp_path)
    visible = read_filter(PROCESS_INSTANCES, {"processId": {"$in": ["process-1", "process-4"]}})
    snapshot = select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, visible=visible)
    rows = instances(1, 40)
    expected = [key for key in active(1, 40) if meets(rows[key], visible)]
    assert 0 < len(expected) < 10
    assert all_pages(snapshot, 1, 2) == expected
    nothing = read_filter(PROCESS_INSTANCES, {"processId": {"$in": []}})
    snapshot = select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, visible=nothing)
    assert snapshot.count() == 0


@pytest.mark.parametrize("gathered_rows_max", [0, 1_000])
def test_rows_are_selected_by_the_rows_of_another_table_that_they_name(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gathered_rows_max: int
) -> None:
    monkeypatch.setattr(selection, "_GATHERED_ROWS_MAX", gathered_rows_max)
    tables = with_instances(tmp_path)
    rows = instances(1, 40)
    # two of each instance: an open one, and one that is over
    incidents = {
        key + 1 + over: {"process_instance_key": key, "state": "RESOLVED" if over else "OPEN"}
        for key in rows
        for over in (0, 1)
    }
    tables.put(INCIDENTS, 1, incidents)
    tables.put(INCIDENTS, 2, {2 * BASE + 7: {"state": "OPEN"}})  # of a task
    tables.publish()
    of_running = Within("process_instance_key", PROCESS_INSTANCES.name, ACTIVE)
    wanted = All((read_filter(INCIDENTS, {"state": "OPEN"}), of_running))
    snapshot = select(spark, tmp_path, INCIDENTS, wanted, {}, 0)
    assert all_pages(snapshot, 1, 3) == [key + 1 for key in active(1, 40)]
    assert snapshot.count() == len(active(1, 40))
    nobody = Within("process_instance_key", PROCESS_INSTANCES.name, NOBODY)
    assert select(spark, tmp_path, INCIDENTS, All((wanted, nobody)), {}, 0).count() == 0
    with pytest.raises(InvalidArgument, match="beside the others of a selection"):
        select(spark, tmp_path, INCIDENTS, AnyOf((of_running,)), {}, 0)
    with pytest.raises(InvalidArgument, match="beside the others of a selection"):
        Search(tmp_path).search(INCIDENTS, wanted)


def test_nothing_that_matches_is_an_empty_snapshot(spark: Any, tmp_path: Path) -> None:
    assert select(spark, tmp_path / "none", PROCESS_INSTANCES, NOBODY, {}, 0).count() == 0
    with_instances(tmp_path)
    snapshot = select(spark, tmp_path, PROCESS_INSTANCES, NOBODY, {}, 0)
    assert snapshot.count() == 0 and snapshot.sample(10) == []
    assert snapshot.page(1).keys == [] and snapshot.page(1).next is None


def test_a_snapshot_stays_while_the_tables_change(spark: Any, tmp_path: Path) -> None:
    tables = with_instances(tmp_path)
    snapshot = select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, name="operation-7")
    first = snapshot.page(1, None, 4)
    changing = threading.Thread(target=_end_all, args=(tables,))
    changing.start()
    reopened = open_snapshot(tmp_path, "operation-7")
    rest = all_pages(Snapshot(reopened.folder, reopened.manifest), 2, 1)
    changing.join()
    assert rest == active(2, 40)
    assert first.keys + snapshot.page(1, first.next).keys == active(1, 40)
    again = select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, name="operation-7")
    assert again.manifest == snapshot.manifest
    assert select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0).count() == 0


def _end_all(tables: Tables) -> None:
    for partition in (1, 2, 3):
        rows = {key: {"state": "CANCELED"} for key in instances(partition, 40)}
        tables.put(PROCESS_INSTANCES, partition, rows)
    tables.publish()


def test_what_a_selection_that_never_ended_left_is_no_snapshot(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_instances(tmp_path)

    def broken(*_: Any) -> Snapshot:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(selection, "store_manifest", broken)
        with pytest.raises(OSError, match="no room"):
            select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, name="x")
    assert find_snapshot(tmp_path, "x") is None
    assert select(spark, tmp_path, PROCESS_INSTANCES, ACTIVE, {}, 0, name="x").count() == 30
    files = list((tmp_path / "_selections" / "x").glob("*.parquet"))
    assert len(files) == len(open_snapshot(tmp_path, "x").manifest.runs)


# --- without Spark -----------------------------------------------------------------------------


def test_a_selection_waits_until_the_tables_are_as_far(tmp_path: Path) -> None:
    tables = with_instances(tmp_path)
    clock = VirtualClock()
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        clock.advance(seconds)
        if len(looks) == 3:
            tables.publish({2: 50})

    progress = wait_for(tmp_path, {1: 41, 2: 50}, clock.monotonic() + 10, clock, sleep)
    assert progress.positions[2] == 50 and len(looks) == 3


def test_a_selection_does_not_wait_beyond_its_deadline(tmp_path: Path) -> None:
    with_instances(tmp_path)
    clock = VirtualClock()
    deadline = clock.monotonic() + 1
    with pytest.raises(DeadlineExceeded, match="Expected the tables to reach 50 of partition 2"):
        wait_for(tmp_path, {1: 41, 2: 50}, deadline, clock, clock.advance)
    assert deadline <= clock.monotonic() < deadline + 1


@pytest.mark.parametrize("table", [VARIABLES, RECORDS])
def test_only_tables_with_one_key_can_be_selected_from(tmp_path: Path, table: Any) -> None:
    with pytest.raises(InvalidArgument):
        select(None, tmp_path, table, EVERYTHING, {}, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "x" * 101, "a\0", "-x", "ä"])
def test_a_hostile_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument):
        find_snapshot(tmp_path, name)
    with pytest.raises(InvalidArgument):
        drop_snapshot(tmp_path, name)


def test_pages_cross_groups_at_every_size(tmp_path: Path) -> None:
    keys = sorted(random.Random(7).sample(range(1_000_000), 25_300))
    run = write_run(tmp_path, 1, pa.array(keys, pa.int64()), "1.parquet")
    manifest = SelectionManifest("x", 1, {}, EVERYTHING, EVERYTHING, {1: run})
    snapshot = store_manifest(tmp_path, manifest)
    for limit in (10_000, 9_999, 2_530, 25):
        assert all_pages(snapshot, 1, limit) == keys
    assert snapshot.page(1, keys[-1]).keys == []
    assert snapshot.page(1, keys[19_999], 3).keys == keys[20_000:20_003]
    assert snapshot.page(1, -1, 2).keys == keys[:2]
    assert snapshot.page(1, keys[4], 1).next == keys[5]
    with pytest.raises(InvalidArgument):
        snapshot.page(1, None, 0)
    with pytest.raises(InvalidArgument):
        snapshot.page(1, None, 10_001)


def test_an_executor_sorts_what_it_finds_by_partition(tmp_path: Path) -> None:
    keys = [[key_of(2, 9), key_of(1, 4), key_of(2, 7)], [key_of(1, 3)]]
    batches = [pa.record_batch([pa.array(some)], ["key"]) for some in keys]
    runs = {
        run.partition: run
        for report in write_keys(tmp_path, iter(batches))
        for run in [selection._decode_run(report.column(0)[0].as_py())]
    }
    snapshot = Snapshot(tmp_path, SelectionManifest("x", 1, {}, EVERYTHING, EVERYTHING, runs))
    assert snapshot.page(1).keys == [key_of(1, 3), key_of(1, 4)]
    assert snapshot.page(2).keys == [key_of(2, 7), key_of(2, 9)]
    assert list(write_keys(tmp_path, iter([]))) == []


# --- pruning -----------------------------------------------------------------------------------

PRUNING = [
    {}, {"state": "ACTIVE"},
    {"processInstanceKey": str(BASE + SPREAD)},
    {"processInstanceKey": {"$neq": str(BASE + SPREAD)}},
    {"processInstanceKey": {"$in": [str(BASE + SPREAD), str(3 * BASE + 9 * SPREAD), "7"]}},
    {"processInstanceKey": {"$notIn": [str(BASE + SPREAD)]}},
    {"processInstanceKey": {"$lt": str(BASE + 5 * SPREAD)}, "partitionId": {"$gte": 1}},
    {"processInstanceKey": {"$lte": str(BASE)}},
    {"processInstanceKey": {"$gt": str(3 * BASE)}},
    {"parentElementInstanceKey": "7"}, {"parentElementInstanceKey": {"$in": ["7"]}},
    {"parentElementInstanceKey": {"$exists": False}},
    {"parentElementInstanceKey": {"$exists": True}},
    {"started": {"$gte": "2025-10-09T08:53:59.999Z"}}, {"started": {"$lt": "2025-10-09T08:53:24Z"}},
    {"started": "2025-10-09T08:53:25Z"},
    {"$or": [{"partitionId": 2, "version": 1}, {"processInstanceKey": str(BASE + SPREAD)}]},
]  # fmt: skip


@pytest.mark.parametrize("source", PRUNING, ids=[f"{at}" for at in range(len(PRUNING))])
def test_no_file_is_left_out_that_has_a_row(tmp_path: Path, source: Any) -> None:
    with_instances(tmp_path)
    condition = read_filter(PROCESS_INSTANCES, source)
    version = load_progress(tmp_path).versions[PROCESS_INSTANCES.name]
    files = files_at(tmp_path, PROCESS_INSTANCES, version)
    rows = [
        {"process_instance_key": key, "partition_id": partition} | row
        for partition in (1, 2, 3)
        for key, row in instances(partition, 40).items()
    ]
    wanted = {row["process_instance_key"] for row in rows if meets(row, condition)}
    kept = pruned(files, condition)
    ends = [file.ends["process_instance_key"] for file in kept]
    assert all(any(end.low <= key <= end.high for end in ends) for key in wanted)
    if not wanted:
        assert kept == []


def test_a_range_of_keys_or_times_leaves_most_files_out(tmp_path: Path) -> None:
    with_instances(tmp_path)
    version = load_progress(tmp_path).versions[PROCESS_INSTANCES.name]
    files = files_at(tmp_path, PROCESS_INSTANCES, version)
    assert len(files) > 30
    for source in (
        {"processInstanceKey": {"$gt": str(2 * BASE), "$lt": str(2 * BASE + 2 * SPREAD)}},
        {"processInstanceKey": str(BASE + SPREAD)},
    ):
        assert len(pruned(files, read_filter(PROCESS_INSTANCES, source))) == 1
    times = {"started": {"$lt": "2025-10-09T08:53:22Z"}}
    assert len(pruned(files, read_filter(PROCESS_INSTANCES, times))) == 3
