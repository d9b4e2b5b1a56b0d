"""Selecting: the keys of all rows that meet a filter, as of some moment, found by Spark.

First the tables have to be as far as the moment. Then Spark hands the files that can have such rows
to its executors, all of a partition to one of them, which reads them (`scan`) and writes the keys
in their order. Nothing but the names of files goes through Spark.

A filter that asks for rows of another table too is a join, which Spark does itself. Its keys move:
to the driver, which writes them; or if there may be too many for it, all of a partition to one
executor, which does the same.
"""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StructField, StructType

from holdfast.clock import Clock, SystemClock
from holdfast.errors import DeadlineExceeded, InvalidArgument
from holdfast.limits import KEY_COUNTER_BITS
from holdfast.pipeline.schema import BATCH_OPERATION_ITEMS, TABLES, Table
from holdfast.pipeline.select.prune import pruned
from holdfast.pipeline.select.scan import keys_in
from holdfast.pipeline.select.snapshot import (
    Run,
    SelectionManifest,
    Snapshot,
    drop_snapshot,
    find_snapshot,
    folder_of,
    store_manifest,
    write_run,
)
from holdfast.pipeline.select.spark import column_of
from holdfast.pipeline.select.tree import EVERYTHING, All, Condition, apart
from holdfast.pipeline.spark_types import ddl_of
from holdfast.pipeline.tables.delta import files_at
from holdfast.pipeline.tables.files import part_of
from holdfast.pipeline.tables.listing import TableFile
from holdfast.pipeline.tables.progress import TableProgress, load_progress
from holdfast.records import key_of, partition_of
from holdfast.records.keys import KEY_COUNTER_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_SECONDS = 0.05  # how often it is looked whether the tables are as far: micro-batches take 0.3
_GATHERED_ROWS_MAX = 20_000_000  # if all of them were found: 240 MB in the driver
_RUN = StructType([StructField("run", BinaryType())])  # Spark would have to be asked to read DDL
_ROWS_PER_TASK = 4_000_000  # 50 ms of work: to begin a task takes a fifth of it
_WRITERS = 4  # files that are written at a time: most of it is waiting for the disk

Batches = Iterator[pa.RecordBatch]

_encode_run = msgspec.msgpack.Encoder().encode
_decode_run = msgspec.msgpack.Decoder(Run).decode


def select(
    spark: "SparkSession",
    root: Path,
    table: Table,
    condition: Condition,
    as_of: Mapping[int, int],
    deadline: float,
    *,
    visible: Condition = EVERYTHING,
    name: str | None = None,
    clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Selects once: with a name that has been used it is the snapshot that was made then.

    `as_of` has by partition the first position that need not be in the tables; `deadline` is in
    seconds of the clock's monotonic time; `visible` is what the asker may see. Of the items of
    batch operations a filter has to name the operation: only the key of an item is kept.
    """
    if table.is_history or (table.key_columns != 1 and table is not BATCH_OPERATION_ITEMS):
        raise InvalidArgument(
            f"Expected a table whose rows have one key, but found {table.name}", field="table"
        )
    name = uuid.uuid4().hex if name is None else name
    if (done := find_snapshot(root, name)) is not None:
        return done
    progress = wait_for(root, as_of, deadline, clock or SystemClock(), sleep)
    drop_snapshot(root, name)  # what one that never ended left
    folder = folder_of(root, name)
    folder.mkdir(parents=True)
    version = progress.versions.get(table.name, 0)
    found = _runs(spark, root, folder, progress, table, All((condition, visible)))
    runs = {run.partition: run for run in sorted(found, key=lambda run: run.partition)}
    return store_manifest(
        folder, SelectionManifest(table.name, version, progress.positions, condition, visible, runs)
    )


def wait_for(
    root: Path,
    as_of: Mapping[int, int],
    deadline: float,
    clock: Clock,
    sleep: Callable[[float], None],
) -> TableProgress:
    """Where the tables stand once they have all that is asked for."""
    while True:
        progress = load_progress(root)
        behind = [each for each in as_of if progress.positions.get(each, 0) < as_of[each]]
        if not behind:
            return progress
        if clock.monotonic() >= deadline:
            found = progress.positions.get(behind[0], 0)
            raise DeadlineExceeded(
                f"Expected the tables to reach {as_of[behind[0]]} of partition {behind[0]} in time,"
                f" but they are at {found}",
                partition=behind[0],
                position=found,
            )
        sleep(_LOOK_SECONDS)


def _runs(
    spark: "SparkSession",
    root: Path,
    folder: Path,
    progress: TableProgress,
    table: Table,
    condition: Condition,
) -> list[Run]:
    """What the executors found and wrote, by partition."""
    own, others = apart(condition)
    if others:
        return _joined_runs(folder, table, *_joined(spark, root, progress, table, condition))
    shares = _shares(_files(root, progress, table, own))
    if not shares:
        return []
    tasks = spark.range(0, len(shares), 1, len(shares))
    rows = tasks.mapInArrow(_scan_task(folder, table, own, shares), _RUN).collect()
    return [_decode_run(row.run) for row in rows]


def _files(
    root: Path, progress: TableProgress, table: Table, condition: Condition
) -> list[TableFile]:
    version = progress.versions.get(table.name)
    return [] if version is None else pruned(files_at(root, table, version), condition)


def _shares(files: Iterable[TableFile]) -> list[list[str]]:
    """The files that each task reads: all of a partition, and small partitions together."""
    by_partition: dict[int, list[TableFile]] = {}
    for file in files:
        by_partition.setdefault(part_of(Path(file.path).name).partition, []).append(file)
    shares: list[list[str]] = []
    rows = _ROWS_PER_TASK
    for of_partition in by_partition.values():
        if rows >= _ROWS_PER_TASK:
            shares.append([])
            rows = 0
        shares[-1] += [file.path for file in of_partition]
        rows += sum(file.rows for file in of_partition)
    return shares


def _scan_task(
    folder: Path, table: Table, condition: Condition, shares: list[list[str]]
) -> Callable[[Batches], Batches]:
    """What an executor does with the numbers of the shares that it is given."""

    def run(batches: Batches) -> Batches:
        # It travels to the executors with what it names: one function that they can import.
        return write_found(folder, table, condition, shares, batches)

    return run


def write_found(
    folder: Path, table: Table, condition: Condition, shares: list[list[str]], batches: Batches
) -> Batches:
    """Reads shares of the files, writes the keys that it finds, and tells of it."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _told(written(folder, keys_in(table, shares[number], condition)))


def _told(runs: list[Run]) -> Batches:
    for run in runs:
        yield pa.record_batch({"run": pa.array([_encode_run(run)], pa.binary())})


def _joined(
    spark: "SparkSession", root: Path, progress: TableProgress, table: Table, condition: Condition
) -> "tuple[DataFrame | None, int]":
    """The rows that meet a filter, all tables as of the same moment, and out of how many."""
    files = _files(root, progress, table, condition)
    if not files:
        return None, 0
    own, others = apart(condition)
    rows = spark.read.schema(ddl_of(table.columns)).parquet(*(file.path for file in files))
    rows = rows.where(column_of(own))
    for other in others:
        theirs, _ = _joined(spark, root, progress, TABLES[other.table], other.condition)
        if theirs is None:
            return None, 0
        rows = rows.join(theirs.select(other.column), other.column, "left_semi")
    return rows, sum(file.rows for file in files)


def _joined_runs(folder: Path, table: Table, rows: "DataFrame | None", rows_max: int) -> list[Run]:
    """Writes the keys of rows that Spark found, by partition."""
    if rows is None:
        return []
    key = table.keys[0]  # it tells its partition, too
    found = rows.select(key)
    if rows_max <= _GATHERED_ROWS_MAX:
        return written(folder, found.toArrow().column(0))
    spread = found.repartition(f.shiftright(key, KEY_COUNTER_BITS))
    spread = spread.mapInArrow(_write_task(folder), _RUN)
    return [_decode_run(row.run) for row in spread.collect()]


def _write_task(folder: Path) -> Callable[[Batches], Batches]:
    """What an executor does with the keys that it is given."""

    def run(batches: Batches) -> Batches:
        return write_keys(folder, batches)

    return run


def write_keys(folder: Path, batches: Batches) -> Batches:
    """Writes the keys of whole partitions, and tells of it."""
    found = pa.chunked_array([batch.column(0) for batch in batches], pa.int64())
    yield from _told(written(folder, found))


def written(folder: Path, keys: pa.ChunkedArray) -> list[Run]:
    """Writes keys in their order, by partition; a try that fails leaves files that nobody names."""
    ordered = keys.to_numpy().copy()
    ordered.sort(kind="stable")  # they come as a few pieces in order, which are only merged
    pieces: list[tuple[int, int, int]] = []
    start = 0
    while start < len(ordered):
        partition = partition_of(int(ordered[start]))
        end = int(ordered.searchsorted(key_of(partition, KEY_COUNTER_MAX), side="right"))
        pieces.append((partition, start, end))
        start = end

    def write(piece: tuple[int, int, int]) -> Run:
        partition, start, end = piece
        file = f"{partition:04d}-{uuid.uuid4().hex}.parquet"
        return write_run(folder, partition, pa.array(ordered[start:end]), file)

    with ThreadPoolExecutor(_WRITERS) as writers:
        return list(writers.map(write, pieces))
