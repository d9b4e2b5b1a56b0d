"""A filter as a column of Spark."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING
from typing import Any as Json

from pyspark.sql import functions as f

from holdfast.pipeline.schema import ColumnKind
from holdfast.pipeline.select.like import backtracking_regex, prefix_of
from holdfast.pipeline.select.tree import (
    All,
    Any,
    Compare,
    Comparison,
    Condition,
    Exists,
    Like,
    OneOf,
    Value,
    Within,
    misplaced,
)
from holdfast.pipeline.spark_types import NAMES

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARE: dict[Comparison, Callable[[Json, Json], Json]] = {
    Comparison.EQ: operator.eq,
    Comparison.NEQ: lambda column, value: ~column.eqNullSafe(value),
    Comparison.GT: operator.gt,
    Comparison.GTE: operator.ge,
    Comparison.LT: operator.lt,
    Comparison.LTE: operator.le,
}


def column_of(condition: Condition) -> "Column":
    """A filter as what `DataFrame.where` takes."""
    match condition:
        case Compare():
            column = f.col(condition.column)
            return _COMPARE[condition.comparison](column, _literal(condition.kind, condition.value))
        case OneOf():
            return _one_of(condition)
        case Like():
            prefix = prefix_of(condition)
            if prefix is not None:
                return f.col(condition.column).startswith(prefix)
            return f.col(condition.column).rlike(backtracking_regex(condition))
        case Exists():
            column = f.col(condition.column)
            return column.isNull() if condition.is_not else column.isNotNull()
        case All():
            return reduce(operator.and_, map(column_of, condition.parts), f.lit(True))
        case Any():
            return reduce(operator.or_, map(column_of, condition.parts), f.lit(False))
        case Within():
            misplaced(condition)


def _one_of(condition: OneOf) -> "Column":
    if not condition.values:
        return f.lit(condition.is_not)
    column = f.col(condition.column)
    found = column.isin([_literal(condition.kind, value) for value in condition.values])
    return column.isNull() | ~found if condition.is_not else found


def _literal(kind: ColumnKind, value: Value) -> "Column":
    """A value of exactly the column's type, so that Spark need not cast the column."""
    if kind is ColumnKind.TIME:
        return f.timestamp_micros(f.lit(value))
    return f.lit(value).cast(NAMES[kind])
