"""The Parquet files of a table: which rows each holds is in its name.

A file of a table with keys holds the rows of a range of buckets; a bucket is a range of keys, so of
one partition. A task that changes a row writes the file of its bucket anew. A file of a history
holds a range of positions of one partition, and is never changed.
"""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

import json
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.schema import ColumnKind, Table
from holdfast.pipeline.tables.arrow import merged, rows_as_arrow

BUCKET_BITS = 16  # keys of a bucket: 65,536; some thousand instances with their jobs and elements
ROWS_PER_GROUP = 65_536  # what a reader of one row reads: 3 ms

_UNLIKE_KINDS = {
    ColumnKind.LONG,
    ColumnKind.TIME,
}  # hardly one value comes twice, but the next is near
_STATS_KINDS = {ColumnKind.LONG, ColumnKind.INT, ColumnKind.TIME}


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that was written, to be named in the table's log."""

    table: str
    path: str
    size_bytes: int
    rows: int
    stats: str  # as Delta wants them
    replaces: tuple[str, ...] = ()  # files whose rows are in it


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A file: the range of buckets or positions that its rows are of."""

    partition: int
    first: int
    last: int
    path: str


def part_of(path: str) -> Part:
    """What a file's name says."""
    partition, first, last, _ = path.split("-", 3)
    return Part(int(partition), int(first), int(last), path)


def bucket_of(key: Any) -> int:
    """The bucket of a key, or of one that has several columns."""
    return (key[0] if isinstance(key, tuple) else key) >> BUCKET_BITS


def merge_changes(
    root: Path, table: Table, partition: int, rows: dict[Any, dict[str, Any]], parts: list[Part]
) -> list[WrittenFile]:
    """Writes every file anew that has one of these rows, and new ones for new buckets."""
    by_part: dict[Part | int, dict[Any, dict[str, Any]]] = {}
    for key, row in rows.items():
        bucket = bucket_of(key)
        part = next((each for each in parts if each.first <= bucket <= each.last), None)
        by_part.setdefault(part if part is not None else bucket, {})[key] = row
    written: list[WrittenFile] = []
    for part, changed in by_part.items():
        if isinstance(part, Part):
            with pq.ParquetFile(root / table.name / part.path) as file:
                existing = file.read()  # read_table takes twice as long to begin
            result = merged(table, existing, changed)
            new = write_part(root, table, partition, part.first, part.last, result)
            written.append(msgspec.structs.replace(new, replaces=(part.path,)))
        else:
            result = merged(table, None, changed)
            written.append(write_part(root, table, partition, part, part, result))
    return written


def add_history(
    root: Path, table: Table, partition: int, rows: list[dict[str, Any]]
) -> list[WrittenFile]:
    """Writes rows that come after all others."""
    if not rows:
        return []
    result = rows_as_arrow(table, rows)
    first, last = rows[0]["position"], rows[-1]["position"]
    return [write_part(root, table, partition, first, last, result)]


def look_up(
    root: Path, table: Table, keys: Iterable[int], parts: list[Part], column: str
) -> dict[int, Any]:
    """One column of some rows."""
    wanted: dict[str, list[int]] = {}
    for key in keys:
        bucket = bucket_of(key)
        part = next((each for each in parts if each.first <= bucket <= each.last), None)
        if part is not None:
            wanted.setdefault(part.path, []).append(key)
    found: dict[int, Any] = {}
    for path, some in wanted.items():
        rows = pq.read_table(root / table.name / path, columns=[table.keys[0], column])
        rows = rows.filter(pc.is_in(rows.column(0), value_set=pa.array(some, pa.int64())))
        pairs = zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
        found.update(pairs)
    return found


def write_part(
    root: Path, table: Table, partition: int, first: int, last: int, rows: pa.Table
) -> WrittenFile:
    """Writes one file."""
    name = f"{partition:04d}-{first}-{last}-{uuid.uuid4().hex}.parquet"
    folder = root / table.name
    path = folder / name
    numbers = [column.name for column in table.columns if column.kind in _UNLIKE_KINDS]
    alike = [name for name in table.names if name not in numbers]
    pq.write_table(
        rows,
        path,
        row_group_size=ROWS_PER_GROUP,
        compression="zstd" if table.is_history else "snappy",  # small, or soon read
        use_dictionary=alike,  # pyright: ignore[reportArgumentType] - names are fine
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the table's log must not name what a power failure takes away
    finally:
        os.close(descriptor)
    return WrittenFile(table.name, name, path.stat().st_size, rows.num_rows, _stats(table, rows))


def _stats(table: Table, rows: pa.Table) -> str:
    """What lets a reader leave a file out: how many rows, and the ends of each column."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for column in table.columns:
        if column.kind not in _STATS_KINDS:
            continue
        values = rows.column(column.name)
        nulls[column.name] = values.null_count
        if values.null_count == rows.num_rows:
            continue
        ends: Any = pc.min_max(values)
        low[column.name] = _plain(column.kind, ends["min"].as_py())
        high[column.name] = _plain(column.kind, ends["max"].as_py())
    stats = {
        "numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls,
    }  # fmt: skip
    return json.dumps(stats)


def _plain(kind: ColumnKind, value: Any) -> Any:
    if kind is ColumnKind.TIME:
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
