"""Which files can have a row that meets a filter, by the ends of their columns."""

from collections.abc import Iterable

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
)
from holdfast.pipeline.tables.listing import ColumnEnds, TableFile


def pruned(files: Iterable[TableFile], condition: Condition) -> list[TableFile]:
    """The files that have to be read; the others have no row that meets the filter."""
    return [file for file in files if _may_meet(file, condition)]


def _may_meet(file: TableFile, condition: Condition) -> bool:
    match condition:
        case All():
            return all(_may_meet(file, part) for part in condition.parts)
        case Any():
            return any(_may_meet(file, part) for part in condition.parts)
        case Exists():
            nulls = file.nulls.get(condition.column)
            return nulls is None or (nulls > 0 if condition.is_not else nulls < file.rows)
        case Compare():
            if condition.comparison is Comparison.NEQ:
                return True
            if _is_empty(file, condition.column):
                return False
            ends = file.ends.get(condition.column)
            return ends is None or _overlaps(ends, condition.comparison, condition.value)
        case OneOf():
            if condition.is_not:
                return True
            ends = file.ends.get(condition.column)
            if ends is None:
                return not _is_empty(file, condition.column)
            return any(_overlaps(ends, Comparison.EQ, value) for value in condition.values)
        case Like() | Within():
            return not _is_empty(file, condition.column)


def _is_empty(file: TableFile, column: str) -> bool:
    return file.nulls.get(column) == file.rows


def _overlaps(ends: ColumnEnds, comparison: Comparison, value: Value) -> bool:
    assert isinstance(value, int), "only numbers and times have ends"
    match comparison:
        case Comparison.GT:
            return ends.high > value
        case Comparison.GTE:
            return ends.high >= value
        case Comparison.LT:
            return ends.low < value
        case Comparison.LTE:
            return ends.low <= value
        case _:
            return ends.low <= value <= ends.high
