"""Which rows can meet a filter: files, or groups of rows in them, by the ends of their columns."""

from collections.abc import Iterable, Mapping
from typing import Protocol

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


class SomeRows(Protocol):
    """What is known of rows that are stored together."""

    @property
    def rows(self) -> int: ...

    @property
    def ends(self) -> Mapping[str, ColumnEnds]:
        """Of columns of which they are known."""
        ...

    @property
    def nulls(self) -> Mapping[str, int]:
        """By column, how many rows have it empty; of columns where it is known."""
        ...


def pruned(files: Iterable[TableFile], condition: Condition) -> list[TableFile]:
    """The files that have to be read; the others have no row that meets the filter."""
    return [file for file in files if may_meet(file, condition)]


def may_meet(some: SomeRows, condition: Condition) -> bool:
    """Whether one of the rows can meet a filter."""
    match condition:
        case All():
            return all(may_meet(some, part) for part in condition.parts)
        case Any():
            return any(may_meet(some, part) for part in condition.parts)
        case Exists():
            nulls = some.nulls.get(condition.column)
            return nulls is None or (nulls > 0 if condition.is_not else nulls < some.rows)
        case Compare():
            if condition.comparison is Comparison.NEQ:
                return True
            if _is_empty(some, condition.column):
                return False
            ends = some.ends.get(condition.column)
            return ends is None or _overlaps(ends, condition.comparison, condition.value)
        case OneOf():
            if condition.is_not:
                return True
            ends = some.ends.get(condition.column)
            if ends is None:
                return not _is_empty(some, condition.column)
            return any(_overlaps(ends, Comparison.EQ, value) for value in condition.values)
        case Like() | Within():
            return not _is_empty(some, condition.column)


def _is_empty(some: SomeRows, column: str) -> bool:
    return some.nulls.get(column) == some.rows


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
