"""Reading a filter: the object that a request brings becomes a tree, or an error names its field.

    {"state": "ACTIVE", "started": {"$gte": "2026-01-01T00:00:00Z"}, "$or": [{...}, {...}]}

A field is a column in camelCase. A plain value is what the column has to equal; an object has
operators, which all have to hold. `$or` holds when one of its filters does, beside the other
fields.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any as Json

from holdfast.limits import (
    FILTER_CONDITIONS_MAX,
    FILTER_DEPTH_MAX,
    FILTER_PATTERN_CHARS_MAX,
    FILTER_VALUES_MAX,
)
from holdfast.pipeline.schema import Column, ColumnKind, Table
from holdfast.pipeline.select.like import pieces_of
from holdfast.pipeline.select.tree import (
    All,
    Any,
    Compare,
    Comparison,
    Condition,
    Exists,
    Like,
    OneOf,
)
from holdfast.pipeline.select.values import refuse, text_of, value_of

_ORDERED = {ColumnKind.LONG, ColumnKind.INT, ColumnKind.TIME}
_EQUAL = ("$eq", "$neq", "$in", "$notIn")
_ORDER = ("$gt", "$gte", "$lt", "$lte")


def camel(name: str) -> str:
    """A column's name as requests and answers have it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def fields_of(table: Table) -> Mapping[str, Column]:
    """The columns of a table by the names that requests have for them."""
    return {camel(column.name): column for column in table.columns}


def read_filter(table: Table, source: Json) -> Condition:
    """The tree of a filter; an object without fields is met by every row."""
    return _Reading(table).conditions("filter", source, 0)


class _Reading:
    """One filter while it is read, and how much of it was seen."""

    def __init__(self, table: Table) -> None:
        self._fields = fields_of(table)
        self._conditions = 0
        self._values = 0

    def conditions(self, path: str, source: Json, depth: int) -> Condition:
        if not isinstance(source, Mapping):
            refuse(path, "an object", source)
        parts: list[Condition] = []
        for name, asked in source.items():
            if name == "$or":
                parts.append(self._any(asked, depth + 1))
                continue
            column = self._fields.get(name) if isinstance(name, str) else None
            if column is None:
                expected = f"one of {', '.join(self._fields)} or $or"
                refuse(name if isinstance(name, str) else path, expected, name)
            parts += self._of_column(name, column, asked)
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _any(self, source: Json, depth: int) -> Condition:
        if depth > FILTER_DEPTH_MAX:
            refuse("$or", f"at most {FILTER_DEPTH_MAX} levels", depth)
        if not isinstance(source, list | tuple) or not source:
            refuse("$or", "a list of filters", source)
        for each in source:
            if not each:
                refuse("$or", "at least one field in each filter", each)
        return Any(tuple(self.conditions("$or", each, depth) for each in source))

    def _of_column(self, field: str, column: Column, asked: Json) -> list[Condition]:
        if not isinstance(asked, Mapping):
            asked = {"$eq": asked}
        if not asked:
            refuse(field, "a value or operators", asked)
        found: list[Condition] = []
        for operator, operand in asked.items():
            self._conditions += 1
            if self._conditions > FILTER_CONDITIONS_MAX:
                refuse(field, f"at most {FILTER_CONDITIONS_MAX} conditions", self._conditions)
            allowed = _operators(column.kind)
            read = _READERS.get(operator) if isinstance(operator, str) else None
            if read is None or operator not in allowed:
                refuse(field, f"one of {', '.join(allowed)}", operator)
            if isinstance(operand, list | tuple):
                self._values += len(operand)
                if self._values > FILTER_VALUES_MAX:
                    refuse(field, f"at most {FILTER_VALUES_MAX} values in lists", operand)
            found.append(read(field, column, operator, operand))
        return found


def _operators(kind: ColumnKind) -> tuple[str, ...]:
    if kind is ColumnKind.BYTES:
        return ("$exists",)
    more = _ORDER if kind in _ORDERED else ("$like",) if kind is ColumnKind.TEXT else ()
    return (*_EQUAL, "$exists", *more)


def _compare(field: str, column: Column, operator: str, operand: Json) -> Condition:
    if operand is None:
        refuse(field, "a value, or $exists to find what is empty,", operand)
    value = value_of(field, column.kind, operand)
    return Compare(column.name, column.kind, Comparison(operator), value)


def _one_of(field: str, column: Column, operator: str, operand: Json) -> Condition:
    if not isinstance(operand, list | tuple):
        refuse(field, f"a list for {operator}", operand)
    values = dict.fromkeys(value_of(field, column.kind, each) for each in operand)
    return OneOf(column.name, column.kind, tuple(values), operator == "$notIn")


def _exists(field: str, column: Column, _operator: str, operand: Json) -> Condition:
    if not isinstance(operand, bool):
        refuse(field, "true or false for $exists", operand)
    return Exists(column.name, not operand)


def _like(field: str, column: Column, _operator: str, operand: Json) -> Condition:
    pieces = pieces_of(text_of(field, operand, FILTER_PATTERN_CHARS_MAX))
    if pieces is None:
        refuse(field, "a character after the last \\", operand)
    return Like(column.name, pieces)


_READERS: dict[str, Callable[[str, Column, str, Json], Condition]] = {
    **dict.fromkeys(Comparison, _compare),
    "$in": _one_of,
    "$notIn": _one_of,
    "$exists": _exists,
    "$like": _like,
}
