"""Filters in plain Python: what SQL and Spark have to agree with; and the rows that they share."""

import operator
from typing import Any as Json

import pyarrow as pa

from holdfast.pipeline.schema import Column, ColumnKind, Table
from holdfast.pipeline.select.tree import (
    All,
    Any,
    Compare,
    Comparison,
    Condition,
    Exists,
    Like,
    OneOf,
    Within,
)
from holdfast.pipeline.tables.arrow import rows_as_arrow

THINGS = Table(
    "things",
    "a column of each kind",
    (
        Column("thing_key", ColumnKind.LONG, "names it"),
        Column("partition_id", ColumnKind.INT, "where it is"),
        Column("parent_key", ColumnKind.LONG, "a key that may be empty"),
        Column("some_count", ColumnKind.INT, "a number"),
        Column("process_id", ColumnKind.TEXT, "a text"),
        Column("is_open", ColumnKind.FLAG, "yes or no"),
        Column("ended", ColumnKind.TIME, "a time"),
        Column("content", ColumnKind.BYTES, "bytes"),
    ),
)

Row = dict[str, Json]

_COMPARE = {
    Comparison.EQ: operator.eq,
    Comparison.GT: operator.gt,
    Comparison.GTE: operator.ge,
    Comparison.LT: operator.lt,
    Comparison.LTE: operator.le,
}


def meets(row: Row, condition: Condition) -> bool:
    """Whether a row is what a filter asks for. Times of rows are in milliseconds."""
    match condition:
        case All():
            return all(meets(row, part) for part in condition.parts)
        case Any():
            return any(meets(row, part) for part in condition.parts)
        case Exists():
            return (row.get(condition.column) is None) == condition.is_not
        case Compare(comparison=Comparison.NEQ):
            return _value(row, condition) != condition.value
        case Compare():
            value = _value(row, condition)
            return value is not None and _COMPARE[condition.comparison](value, condition.value)
        case OneOf():
            return (_value(row, condition) in condition.values) != condition.is_not
        case Like():
            text = row.get(condition.column)
            return text is not None and _fits(text, _tokens(condition))
        case Within():
            raise AssertionError("one row does not tell of another table")


def _value(row: Row, condition: Compare | OneOf) -> Json:
    value = row.get(condition.column)
    return value * 1000 if condition.kind is ColumnKind.TIME and value is not None else value


STAR = object()


def _tokens(like: Like) -> list[object]:
    tokens: list[object] = []
    for number, piece in enumerate(like.pieces):
        tokens += [STAR] * (number > 0)
        for each in piece:
            tokens += [None] if each is None else list(each)
    return tokens


def _fits(text: str, tokens: list[object]) -> bool:
    """By the table of which beginnings of the text fit which beginnings of the pattern."""
    fitting = {0}
    for token in tokens:
        if token is STAR:
            fitting = set(range(min(fitting), len(text) + 1)) if fitting else fitting
        else:
            fitting = {
                at + 1 for at in fitting if at < len(text) and token in (None, text[at])
            }  # fmt: skip
    return len(text) in fitting


def arrow_of(rows: list[Row]) -> pa.Table:
    return rows_as_arrow(THINGS, rows)
