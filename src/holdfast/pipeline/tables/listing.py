"""Which files a version of a table consists of, and which of them a reader can leave out."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from holdfast.pipeline.schema import ColumnKind, Table

_ROUNDING_US = 999  # the ends of a column of times are told in whole milliseconds, rounded down
ENDED_KINDS = (ColumnKind.LONG, ColumnKind.INT, ColumnKind.TIME)


class ColumnEnds(msgspec.Struct, frozen=True):
    """What a column of a file holds; times are in microseconds since the epoch."""

    low: int
    high: int


class TableFile(msgspec.Struct, frozen=True):
    """A file of a table."""

    path: str
    rows: int
    size_bytes: int
    ends: dict[str, ColumnEnds]  # of columns of which they are known
    nulls: dict[str, int]  # by column, how many rows have it empty; of columns where it is known


def files_of(folder: Path, table: Table, actions: pa.Table) -> list[TableFile]:
    """The files that a table's log names, in the order of their keys."""
    files = [_file(folder, table, row) for row in _plain(actions).to_pylist()]
    return sorted(files, key=lambda file: _first(file, table))


def _plain(actions: pa.Table) -> pa.Table:
    """Times as numbers."""
    fields = [
        pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field
        for field in actions.schema
    ]
    return actions.cast(pa.schema(fields))


def _file(folder: Path, table: Table, row: dict[str, Any]) -> TableFile:
    ends: dict[str, ColumnEnds] = {}
    nulls: dict[str, int] = {}
    for column in table.columns:
        count = row.get(f"null_count.{column.name}")
        if count is not None:
            nulls[column.name] = count
        low, high = row.get(f"min.{column.name}"), row.get(f"max.{column.name}")
        if column.kind in ENDED_KINDS and low is not None and high is not None:
            rounding = _ROUNDING_US if column.kind is ColumnKind.TIME else 0
            ends[column.name] = ColumnEnds(low, high + rounding)
    return TableFile(str(folder / row["path"]), row["num_records"], row["size_bytes"], ends, nulls)


def _first(file: TableFile, table: Table) -> tuple[int, str]:
    ends = file.ends.get(table.keys[0])
    return (ends.low if ends is not None else 0, file.path)
