"""A filter as a checked tree: what DuckDB, Arrow, Spark and the pruning of files are told from.

A column that is empty meets no condition but these: `$exists: false`, `$neq` and `$notIn`. So
`$neq` takes exactly the rows that `$eq` leaves, and `$notIn` those that `$in` leaves. No condition
is ever unknown: it holds for a row or it does not.
"""

from enum import StrEnum
from typing import NoReturn

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.pipeline.schema import ColumnKind

# What a column is compared with. A time is in microseconds since the epoch.
Value = int | str | bool


class Comparison(StrEnum):
    """How a column relates to a value."""

    EQ = "$eq"
    NEQ = "$neq"
    GT = "$gt"
    GTE = "$gte"
    LT = "$lt"
    LTE = "$lte"


class Compare(msgspec.Struct, frozen=True, tag=True):
    """A column against one value."""

    column: str
    kind: ColumnKind
    comparison: Comparison
    value: Value


class OneOf(msgspec.Struct, frozen=True, tag=True):
    """A column that has one of some values, or with `is_not`, none of them."""

    column: str
    kind: ColumnKind
    values: tuple[Value, ...]
    is_not: bool = False


class Like(msgspec.Struct, frozen=True, tag=True):
    """A text that fits a pattern: the pieces between its stars, in which None is any character."""

    column: str
    pieces: tuple[tuple[str | None, ...], ...]


class Exists(msgspec.Struct, frozen=True, tag=True):
    """A column that has a value, or with `is_not`, is empty."""

    column: str
    is_not: bool = False


class All(msgspec.Struct, frozen=True, tag=True):
    """Every one of these holds; of none, that is every row."""

    parts: tuple["Condition", ...]


class Any(msgspec.Struct, frozen=True, tag=True):
    """At least one of these holds; of none, that is no row."""

    parts: tuple["Condition", ...]


class Within(msgspec.Struct, frozen=True, tag=True):
    """A column that names a row of another table, which meets a filter of its own.

    Only selections have it, on the first level: Spark joins the tables for it.
    """

    column: str  # of this table; the other one's key has the same name
    table: str
    condition: "Condition"


Condition = Compare | OneOf | Like | Exists | All | Any | Within

EVERYTHING = All(())


def columns_of(condition: Condition) -> set[str]:
    """The columns that a filter looks at."""
    if isinstance(condition, All | Any):
        return set().union(*(columns_of(part) for part in condition.parts))
    return {condition.column}


def apart(condition: Condition) -> tuple[Condition, list[Within]]:
    """What a filter says of its own table, and what beside it of others."""
    if isinstance(condition, Within):
        return EVERYTHING, [condition]
    if not isinstance(condition, All):
        _check_own(condition)
        return condition, []
    parts = [apart(part) for part in condition.parts]
    return All(tuple(own for own, _ in parts)), [each for _, others in parts for each in others]


def _check_own(condition: Condition) -> None:
    """Refuses a condition on another table below the first level, before any work is begun."""
    if isinstance(condition, Within):
        misplaced(condition)
    if isinstance(condition, All | Any):
        for part in condition.parts:
            _check_own(part)


def misplaced(condition: Within) -> NoReturn:
    """A condition on another table where none can be: below the first level, or in a search."""
    raise InvalidArgument(
        f"Expected conditions on {condition.table} only beside the others of a selection,"
        " but found one elsewhere",
        field=condition.column,
    )
