"""A filter as SQL of DuckDB: names come from the schema, values go beside it as parameters."""

from typing import Any as Parameter

import msgspec

from holdfast.pipeline.schema import ColumnKind
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
    Value,
    Within,
    misplaced,
)
from holdfast.pipeline.select.values import moment_of

TYPES = {
    ColumnKind.LONG: "BIGINT",
    ColumnKind.INT: "INTEGER",
    ColumnKind.TEXT: "VARCHAR",
    ColumnKind.TIME: "TIMESTAMPTZ",
    ColumnKind.FLAG: "BOOLEAN",
    ColumnKind.BYTES: "BLOB",
}
_SIGNS = {
    Comparison.EQ: "=",
    Comparison.NEQ: "IS DISTINCT FROM",
    Comparison.GT: ">",
    Comparison.GTE: ">=",
    Comparison.LT: "<",
    Comparison.LTE: "<=",
}
_LISTED_MAX = 64  # longer lists are joined to the rows: cheaper to plan and to look up in


class Sql(msgspec.Struct, frozen=True):
    """A piece of SQL and the values for its question marks."""

    text: str
    parameters: tuple[Parameter, ...] = ()


def sql_of(condition: Condition) -> Sql:
    """A filter as what stands after WHERE."""
    match condition:
        case Compare():
            sign = _SIGNS[condition.comparison]
            text = f"{quoted(condition.column)} {sign} {placeholder(condition.kind)}"
            return Sql(f"({text})", (parameter_of(condition.kind, condition.value),))
        case OneOf():
            return _one_of(condition)
        case Like():
            prefix = prefix_of(condition)
            if prefix is not None:
                return Sql(f"starts_with({quoted(condition.column)}, ?)", (prefix,))
            text = f"regexp_full_match({quoted(condition.column)}, ?)"
            return Sql(text, (automaton_regex(condition),))
        case Exists():
            negation = "" if condition.is_not else "NOT "
            return Sql(f"({quoted(condition.column)} IS {negation}NULL)")
        case All():
            return joined(" AND ", [sql_of(part) for part in condition.parts], "TRUE")
        case Any():
            return joined(" OR ", [sql_of(part) for part in condition.parts], "FALSE")
        case Within():
            misplaced(condition)


def joined(word: str, parts: list[Sql], empty: str) -> Sql:
    """Pieces with a word between them."""
    if not parts:
        return Sql(empty)
    text = word.join(part.text for part in parts)
    return Sql(f"({text})", tuple(value for part in parts for value in part.parameters))


def quoted(column: str) -> str:
    return f'"{column}"'


def placeholder(kind: ColumnKind) -> str:
    return f"CAST(? AS {TYPES[kind]})"


def parameter_of(kind: ColumnKind, value: Value) -> Parameter:
    """A value as DuckDB takes it."""
    return moment_of(int(value)) if kind is ColumnKind.TIME else value


def _one_of(condition: OneOf) -> Sql:
    column = quoted(condition.column)
    if not condition.values:
        return Sql("TRUE" if condition.is_not else "FALSE")
    values = [parameter_of(condition.kind, value) for value in condition.values]
    if len(values) <= _LISTED_MAX:
        listed = ", ".join([placeholder(condition.kind)] * len(values))
        parameters = tuple(values)
    else:
        listed = f"SELECT unnest(CAST(? AS {TYPES[condition.kind]}[]))"
        parameters = (values,)
    if condition.is_not:
        return Sql(f"({column} IS NULL OR {column} NOT IN ({listed}))", parameters)
    return Sql(f"({column} IN ({listed}))", parameters)
