"""Reading the keys of rows that meet a filter, file by file, with Arrow.

An executor that is told which files to read does it itself, in the Python process that Spark
started for it. Spark's own reader goes row by row, in Java code that takes dozens of selections to
be compiled; Arrow evaluates a condition on a text once for all rows that have the text.
"""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.schema import ColumnKind, Table
from holdfast.pipeline.select.arrow import mask_of
from holdfast.pipeline.select.prune import may_meet
from holdfast.pipeline.select.tree import Condition, columns_of
from holdfast.pipeline.tables.arrow import TYPES
from holdfast.pipeline.tables.listing import ENDED_KINDS, ColumnEnds

_READERS = 2  # files that are read at a time: one partition may be all that there is


def keys_in(table: Table, paths: Iterable[str], condition: Condition) -> pa.ChunkedArray:
    """The keys of all rows of some files that meet a filter, in the order of the files."""
    with ThreadPoolExecutor(_READERS) as readers:
        found = readers.map(lambda path: _keys_in_file(table, path, condition), paths)
        return pa.chunked_array([keys for each in found for keys in each], pa.int64())


def _keys_in_file(table: Table, path: str, condition: Condition) -> list[pa.Array]:
    """By group of rows that has some; keys are read only where a row meets the filter."""
    key, names = table.keys[0], columns_of(condition)
    metadata = pq.read_metadata(path)
    known = set(metadata.schema.names)
    wanted = [column for column in table.columns if column.name in names & known]
    newer = [column for column in table.columns if column.name in names - known]
    texts = [column.name for column in wanted if column.kind is ColumnKind.TEXT]
    found: list[pa.Array] = []
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
        for group in _groups(table, metadata):
            if not may_meet(group, condition):
                continue
            columns = _read(file, group, [column.name for column in wanted])
            for column in newer:  # than the file
                columns[column.name] = pa.nulls(group.rows, TYPES[column.kind])
            mask = mask_of(condition, columns, group.rows)
            if mask.true_count:
                keys = columns[key] if key in columns else _read(file, group, [key])[key]
                found.append(keys.filter(mask))
    return found


class _Group(NamedTuple):
    """A group of rows in a file, and what the file says of its columns."""

    number: int
    rows: int
    ends: dict[str, ColumnEnds]
    nulls: dict[str, int]


def _groups(table: Table, metadata: pq.FileMetaData) -> Iterator[_Group]:
    kinds = {column.name: column.kind for column in table.columns}
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number)
        group = _Group(number, rows.num_rows, {}, {})
        for index in range(rows.num_columns):
            column = rows.column(index)
            name, stats = column.path_in_schema, column.statistics
            if name not in kinds or stats is None:
                continue
            if stats.has_null_count:
                group.nulls[name] = stats.null_count
            if stats.has_min_max and kinds[name] in ENDED_KINDS:
                group.ends[name] = ColumnEnds(stats.min_raw, stats.max_raw)
        yield group


def _read(file: pq.ParquetFile, group: _Group, names: list[str]) -> dict[str, pa.Array]:
    """Columns of a group of rows, each in one piece."""
    if not names:
        return {}
    rows = file.read_row_group(group.number, names, use_threads=False)
    return {name: rows.column(name).combine_chunks() for name in names}
