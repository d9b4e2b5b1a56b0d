"""The tables that reports are made from: all at versions that fit one another."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import NotFound
from holdfast.pipeline.report.buckets import Buckets, buckets_of
from holdfast.pipeline.schema import RECORDS, TABLES, Table
from holdfast.pipeline.spark_types import ddl_of
from holdfast.pipeline.tables.delta import files_at
from holdfast.pipeline.tables.progress import TableProgress, load_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Tables(msgspec.Struct, frozen=True):
    """The tables, and from when on they are looked at."""

    frames: dict[str, "DataFrame"]
    since_ms: int  # what ended before is left out; 0 for all
    buckets: Buckets | None  # of the time that is looked at; None if nothing happened in it
    progress: TableProgress = TableProgress()  # where they stood when they were opened

    def __getitem__(self, table: Table) -> "DataFrame":
        return self.frames[table.name]


def tables_of(
    frames: dict[str, "DataFrame"], since_ms: int = 0, progress: TableProgress | None = None
) -> Tables:
    """Tables as they are handed in. The log itself says which time they tell of."""
    from pyspark.sql import functions as f

    progress = progress or TableProgress()
    moment = f.unix_millis("timestamp")
    (ends,) = frames[RECORDS.name].agg(f.min(moment), f.max(moment)).collect()
    if ends[0] is None or ends[1] < since_ms:
        return Tables(frames, since_ms, None, progress)
    return Tables(frames, since_ms, buckets_of(max(ends[0], since_ms), ends[1]), progress)


def open_tables(spark: "SparkSession", root: Path, since_ms: int = 0) -> Tables:
    """The tables in a folder, at the versions of the last micro-batch."""
    progress = check_tables(root)
    frames = {
        name: _frame(spark, root, table, progress.versions.get(name))
        for name, table in TABLES.items()
    }
    return tables_of(frames, since_ms, progress)


def check_tables(root: Path) -> TableProgress:
    """Where the tables stand; an error that says what to do if there are none."""
    progress = load_progress(root)
    if progress.batch < 0:
        raise NotFound(
            f"Expected tables in {root}, but there are none; holdfast pipeline run makes them",
            path=str(root),
        )
    return progress


def _frame(spark: "SparkSession", root: Path, table: Table, version: int | None) -> "DataFrame":
    """One table; columns that a file is too old for are empty."""
    schema = ddl_of(table.columns)
    files = [] if version is None else files_at(root, table, version)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(file.path for file in files))
