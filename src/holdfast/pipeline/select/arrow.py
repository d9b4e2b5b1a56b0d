"""A filter over rows of Arrow: which of them meet it."""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any as Json

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.pipeline.select.like import automaton_regex, prefix_of
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
    misplaced,
)
from holdfast.pipeline.tables.arrow import TYPES

Columns = Mapping[str, pa.Array]

_COMPARE: dict[Comparison, Callable[[Json, Json], pa.Array]] = {
    Comparison.EQ: pc.equal,
    Comparison.NEQ: pc.not_equal,
    Comparison.GT: pc.greater,
    Comparison.GTE: pc.greater_equal,
    Comparison.LT: pc.less,
    Comparison.LTE: pc.less_equal,
}


def mask_of(condition: Condition, columns: Columns, rows: int) -> pa.Array:
    """By row, whether it meets a filter; texts may come as dictionaries."""
    match condition:
        case All():
            parts = [mask_of(part, columns, rows) for part in condition.parts]
            return reduce(pc.and_, parts) if parts else pa.repeat(True, rows)
        case Any():
            parts = [mask_of(part, columns, rows) for part in condition.parts]
            return reduce(pc.or_, parts) if parts else pa.repeat(False, rows)
        case Exists():
            column = columns[condition.column]
            return column.is_null() if condition.is_not else column.is_valid()
        case Within():
            misplaced(condition)
        case _:
            return _of_column(condition, columns[condition.column])


def _of_column(condition: Compare | OneOf | Like, column: pa.Array) -> pa.Array:
    """Of a dictionary each value is looked at once, however many rows have it."""
    if isinstance(column, pa.DictionaryArray):
        met = _met(condition, column.dictionary).take(column.indices)
    else:
        met = _met(condition, column)
    return met.fill_null(_is_met_by_nothing(condition))


def _met(condition: Compare | OneOf | Like, values: pa.Array) -> pa.Array:
    match condition:
        case Compare():
            value = pa.scalar(condition.value, TYPES[condition.kind])
            return _COMPARE[condition.comparison](values, value)
        case OneOf():
            wanted = pa.array(condition.values, TYPES[condition.kind])
            found = pc.is_in(values, value_set=wanted)
            return pc.invert(found) if condition.is_not else found
        case Like():
            prefix = prefix_of(condition)
            if prefix is not None:
                return pc.starts_with(values, prefix)
            return pc.match_substring_regex(values, rf"\A(?:{automaton_regex(condition)})\z")


def _is_met_by_nothing(condition: Compare | OneOf | Like) -> bool:
    """Whether an empty column meets a condition."""
    match condition:
        case Compare():
            return condition.comparison is Comparison.NEQ
        case OneOf():
            return condition.is_not
        case Like():
            return False
