"""Rows as Arrow: what changed becomes columns, and is merged into what was there."""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.pipeline.schema import Column, ColumnKind, Table

TYPES: dict[ColumnKind, pa.DataType] = {
    ColumnKind.LONG: pa.int64(),
    ColumnKind.INT: pa.int32(),
    ColumnKind.TEXT: pa.string(),
    ColumnKind.TIME: pa.timestamp("us", tz="UTC"),
    ColumnKind.FLAG: pa.bool_(),
    ColumnKind.BYTES: pa.binary(),
}


def schema_of(table: Table) -> pa.Schema:
    return pa.schema([(column.name, TYPES[column.kind]) for column in table.columns])


def rows_as_arrow(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows that are complete: what they do not name is empty."""
    columns = [_array(column, [row.get(column.name) for row in rows]) for column in table.columns]
    return pa.table(columns, schema=schema_of(table))


def merged(table: Table, existing: pa.Table | None, rows: dict[Any, dict[str, Any]]) -> pa.Table:
    """What was there with the changes in it, in the order of the keys."""
    changes = _with_keys(table, rows)
    if existing is None:
        return rows_as_arrow(table, changes).sort_by([(name, "ascending") for name in table.keys])
    changed_keys = _key_array(rows_as_arrow(table, changes).select(table.keys), table)
    existing_keys = _key_array(existing, table)
    place = pc.index_in(existing_keys, value_set=changed_keys)
    columns = [
        _merged_column(column, _column(existing, column), changes, place)
        for column in table.columns
    ]
    is_new = pc.invert(pc.is_in(changed_keys, value_set=existing_keys)).to_pylist()
    new = [row for row, each in zip(changes, is_new, strict=True) if each]
    result = pa.table(columns, schema=schema_of(table))
    if not new:
        return result
    result = pa.concat_tables([result, rows_as_arrow(table, new)]).combine_chunks()
    return result.sort_by([(name, "ascending") for name in table.keys])


def _with_keys(table: Table, rows: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    if len(table.keys) == 1:
        (name,) = table.keys
        return [{name: key, **row} for key, row in rows.items()]
    return [dict(zip(table.keys, key, strict=True)) | row for key, row in rows.items()]


def _key_array(rows: pa.Table, table: Table) -> pa.Array:
    """The key of each row as one value."""
    first = rows.column(table.keys[0])
    if len(table.keys) == 1:
        return first.combine_chunks() if isinstance(first, pa.ChunkedArray) else first
    texts = [rows.column(name).cast(pa.string()) for name in table.keys]
    joined: Any = pc.binary_join_element_wise(*texts, "/")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _column(rows: pa.Table, column: Column) -> pa.Array:
    """A column of a file; empty where the file is older than the column."""
    if column.name not in rows.column_names:
        return pa.nulls(rows.num_rows, TYPES[column.kind])
    return rows.column(column.name).combine_chunks()


def _merged_column(
    column: Column, existing: pa.Array, changes: list[dict[str, Any]], place: pa.Array
) -> pa.Array:
    name = column.name
    is_set = [name in row for row in changes]
    if not any(is_set):
        return existing
    values = _array(column, [row.get(name) for row in changes]).take(place)
    if column.is_sum:
        values = pc.add(pc.fill_null(existing, 0), values)
    changed = pc.fill_null(pa.array(is_set).take(place), False)
    return pc.if_else(changed, values, existing)


def _array(column: Column, values: list[Any]) -> pa.Array:
    if column.kind is ColumnKind.TIME:
        milliseconds = pa.array(values, pa.int64())
        return pc.multiply(milliseconds, 1000).cast(TYPES[ColumnKind.TIME])
    return pa.array(values, TYPES[column.kind])
