"""The log in the tables: once, whatever happens in between."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from local_batch import LocalBatch
from node_story import NodeStory, StoredTables

from holdfast.clock import SystemClock
from holdfast.errors import DataLoss
from holdfast.pipeline import project as project_module
from holdfast.pipeline.project import CHECKPOINT, ExecutorReport, Projection
from holdfast.pipeline.reading import read_log
from holdfast.pipeline.schema import JOBS, PROCESS_INSTANCES, TABLES, Column, ColumnKind, Table
from holdfast.pipeline.tables import upkeep
from holdfast.pipeline.tables.delta import DeltaLog, files_at
from holdfast.pipeline.tables.files import Part


class Stream:
    """Micro-batches in Spark's way: what is under way is done again until it is committed."""

    def __init__(self, story: NodeStory, root: Path) -> None:
        self._story = story
        self.root = root
        self._number = 0
        self._start = dict.fromkeys(story.ends(), 0)
        self._end: dict[int, int] | None = None

    def step(self, rows: int | None = None) -> None:
        """One micro-batch by a driver that has just started."""
        projection = Projection(str(self._story.folder), self.root, SystemClock())
        if self._end is None:
            ends = self._story.ends()
            share = None if rows is None else rows // len(ends)
            self._end = {
                partition: end if share is None else min(end, self._start[partition] + share)
                for partition, end in ends.items()
            }
        ranges = [
            {"partition_id": partition, "start": self._start[partition], "end": end}
            for partition, end in self._end.items()
            if end > self._start[partition]
        ]
        projection.take(LocalBatch(ranges), self._number)  # pyright: ignore[reportArgumentType]
        projection.tend()
        self._start, self._end, self._number = self._end, None, self._number + 1

    def is_done(self) -> bool:
        return self._start == self._story.ends()


@pytest.fixture
def story(tmp_path: Path) -> NodeStory:
    return NodeStory(tmp_path / "node")


def test_the_tables_follow_the_log(story: NodeStory, tmp_path: Path) -> None:
    story.tell(5)
    stream = Stream(story, tmp_path / "tables")
    for _ in range(4):
        stream.step()
        story.check(tmp_path / "tables")
        story.tell(3)


@pytest.mark.parametrize("seed", range(4))
def test_a_driver_that_falls_at_any_commit_neither_loses_nor_doubles(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = NodeStory(tmp_path / "node", seed)
    story.tell(12)
    stream = Stream(story, tmp_path / "tables")
    commit = DeltaLog.commit
    falls = iter(range(1, 1_000))
    left = [0]

    def commit_or_fall(self: DeltaLog, *arguments: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError("the driver is killed")
        commit(self, *arguments, **options)

    monkeypatch.setattr(DeltaLog, "commit", commit_or_fall)
    monkeypatch.setattr(project_module, "_THREADS", 1)
    while not stream.is_done():
        left[0] = next(falls) % 11
        try:
            stream.step(rows=120)
        except OSError:
            continue
    story.check(tmp_path / "tables")


def test_many_small_files_become_few(
    story: NodeStory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.tell(20)
    monkeypatch.setattr(upkeep, "FILES_PER_RUN", 6)
    monkeypatch.setattr("holdfast.pipeline.tables.files.BUCKET_BITS", 5)
    stream = Stream(story, tmp_path / "tables")
    batches = 0
    while not stream.is_done():
        stream.step(rows=60)
        batches += 1
    assert batches > 8
    story.check(tmp_path / "tables")
    for name in ("records", "jobs"):
        log = DeltaLog(tmp_path / "tables", TABLES[name])
        removed = log.tidy(0)
        assert removed > 0
        assert len(log.parts()) < batches
    story.check(tmp_path / "tables")


def test_a_row_is_written_anew_only_a_few_times() -> None:
    rows: dict[Part, int] = {}
    written = 0
    for number in range(20_000):  # each micro-batch adds a file of 100 rows
        rows[Part(1, number * 100, number * 100 + 99, str(number))] = 100
        for low, high in pairwise(upkeep._SIZES):
            runs = list(upkeep.runs_of(rows, True, low, high))
            for run in runs:
                total = sum(rows.pop(part) for part in run)
                rows[Part(1, run[0].first, run[-1].last, f"{number} {run[0].first}")] = total
                written += total
            if runs:
                break
    assert sum(rows.values()) == 2_000_000
    assert written < 5 * 2_000_000
    assert len(rows) < 60


def test_bytes_that_are_no_record_go_into_quarantine_and_the_stream_goes_on(
    story: NodeStory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.tell(5)
    real = project_module.entries_between

    def poisoned(*arguments: Any) -> Iterator[list[Any]]:
        for entries in real(*arguments):
            yield [
                entry._replace(payload=b"\xc1poison") if entry.offset == 7 else entry
                for entry in entries
            ]

    monkeypatch.setattr(project_module, "entries_between", poisoned)
    Stream(story, tmp_path / "tables").step()
    rows = StoredTables(tmp_path / "tables", None).rows("quarantine")
    assert [(row["partition_id"], row["position"]) for row in rows] == [(1, 7), (2, 7), (3, 7)]
    assert all(
        row["bytes"] == b"\xc1poison" and "could not be decoded" in row["error"] for row in rows
    )
    ends = story.ends()
    records = StoredTables(tmp_path / "tables", None).rows("records")
    assert len(records) == sum(ends.values()) - 3


def test_a_table_gets_the_columns_that_a_later_version_has(
    story: NodeStory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.tell(3)
    stream = Stream(story, tmp_path / "tables")
    stream.step()
    later = Table(
        JOBS.name, JOBS.about, (*JOBS.columns, Column("color", ColumnKind.TEXT, "of the job"))
    )
    monkeypatch.setitem(TABLES, JOBS.name, later)
    story.tell(3)
    stream.step()
    rows = StoredTables(tmp_path / "tables", None).rows("jobs")
    assert rows and all(row["color"] is None for row in rows)
    story.check(tmp_path / "tables")


def test_tables_whose_checkpoint_is_gone_are_not_written(story: NodeStory, tmp_path: Path) -> None:
    story.tell(1)
    Stream(story, tmp_path / "tables").step()
    projection = Projection(str(story.folder), tmp_path / "tables", SystemClock())
    with pytest.raises(DataLoss, match="checkpoint"):
        projection.start(None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("small_records", [0, 150], ids=["by executors", "by the driver"])
def test_spark_keeps_the_tables_fresh(
    spark: Any,
    story: NodeStory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_records: int,
) -> None:
    root = tmp_path / "tables"
    here: list[int] = []  # what is done in this process
    real = project_module.project_range

    def watched(*arguments: Any, **named: Any) -> ExecutorReport:
        here.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(project_module, "project_range", watched)
    for _ in range(2):
        story.tell(6)
        query = Projection(str(story.folder), root, SystemClock(), small_records).start(
            spark, available_now=True, rows_per_trigger=150
        )
        query.awaitTermination()
        story.check(root)
    assert bool(here) == bool(small_records)
    assert (root / CHECKPOINT / "offsets").is_dir()
    files = [path for path in (root / PROCESS_INSTANCES.name).iterdir() if path.suffix]
    assert files
    files = files_at(root, JOBS, DeltaLog(root, JOBS).version)
    frame = spark.read.parquet(*(each.path for each in files))
    assert frame.count() == len(StoredTables(root, None).rows("jobs"))


def test_the_whole_log_is_what_the_tables_have_and_what_came_since(
    spark: Any, story: NodeStory, tmp_path: Path
) -> None:
    story.tell(4)
    root = tmp_path / "tables"
    assert read_log(spark, str(story.folder), root).count() == sum(story.ends().values())
    Stream(story, root).step()
    story.tell(2)
    log = read_log(spark, str(story.folder), root)
    rows = log.select("partition_id", "position", "value", "timestamp").collect()
    plain = spark.read.format("holdfast").load(str(story.folder))
    assert sorted(rows) == sorted(
        plain.select("partition_id", "position", "value", "timestamp").collect()
    )
    assert len(rows) == sum(story.ends().values())
