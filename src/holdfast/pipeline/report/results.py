"""Reports that were made: rows on this machine, kept as Parquet, written as CSV."""

import csv
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.freshness import Freshness
from holdfast.pipeline.report.declare import Report
from holdfast.pipeline.report.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "reports"  # beside the tables
AS_OF = b"holdfast.as_of"  # the name of the metadata

Rows = list[dict[str, Any]]


class Result(msgspec.Struct, frozen=True):
    """A report that was made. It is short: some hundred rows."""

    report: Report
    table: pa.Table

    @property
    def rows(self) -> Rows:
        return self.table.to_pylist()


def make(spark: "SparkSession", tables: Tables, reports: Iterable[Report]) -> list[Result]:
    """Runs the Spark job of each report."""
    return [Result(report, report.frame(spark, tables).toArrow()) for report in reports]


def store(root: Path, results: Iterable[Result], freshness: Freshness) -> None:
    """Keeps each as a Parquet table beside the tables; readers see the old one or the new one.

    As of when it is stands in the file's metadata.
    """
    as_of = {AS_OF: msgspec.json.encode(freshness)}
    for result in results:
        folder = root / FOLDER / result.report.name
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / ".draft"
        told = (result.table.schema.metadata or {}) | as_of
        pq.write_table(result.table.replace_schema_metadata(told), draft)
        draft.replace(folder / f"{result.report.name}.parquet")


def write_csv(folder: Path, results: Iterable[Result]) -> list[Path]:
    """A file for each report: a line of names, then its rows; what is empty is empty."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for result in results:
        path = folder / f"{result.report.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(column.name for column in result.report.columns)
            writer.writerows(map(_plain, row.values()) for row in result.rows)
        paths.append(path)
    return paths


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return str(value).lower() if isinstance(value, bool) else value
