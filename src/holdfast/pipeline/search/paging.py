"""The order of an answer, and where in it a page is: counted from the start, or from a cursor.

What is empty comes after everything else, or before it when the order is descending: so one order
is the reverse of the other. The key is always the last column, so that no two rows are level. Of a
text the first 256 characters count, which keeps cursors short.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.limits import (
    CURSOR_CHARS_MAX,
    PAGE_ITEMS_MAX,
    PAGE_OFFSET_MAX,
    SORT_COLUMNS_MAX,
    TIMESTAMP_MS_MAX,
    WHOLE_MAX,
)
from holdfast.pipeline.schema import Column, ColumnKind, Table
from holdfast.pipeline.select.filters import fields_of
from holdfast.pipeline.select.sql import Sql, joined, placeholder, quoted
from holdfast.pipeline.select.values import refuse

PAGE_ITEMS = 100  # by default
_TEXT_CHARS = 256
_TIME_US_MAX = TIMESTAMP_MS_MAX * 1_000 + 999
_PAGE_FIELDS = ("limit", "from", "after", "before")
_TYPES: dict[ColumnKind, type] = {
    ColumnKind.LONG: int,
    ColumnKind.INT: int,
    ColumnKind.TIME: int,
    ColumnKind.TEXT: str,
}
_TYPES[ColumnKind.FLAG] = bool

Values = tuple[Any, ...]  # of the columns of an order; a time in microseconds


class By(msgspec.Struct, frozen=True):
    """A column to sort by."""

    column: Column
    descending: bool = False

    @property
    def sql(self) -> str:
        name = quoted(self.column.name)
        return f"left({name}, {_TEXT_CHARS})" if self.column.kind is ColumnKind.TEXT else name

    @property
    def plain(self) -> str:
        """What a cursor keeps of it."""
        return f"epoch_us({self.sql})" if self.column.kind is ColumnKind.TIME else self.sql


class PageRequest(msgspec.Struct, frozen=True):
    """Which rows of an order are wanted; at most one of the last three is given."""

    limit: int = PAGE_ITEMS  # 0: only how many rows there are
    offset: int = 0
    after: str | None = None
    before: str | None = None


def identity_of(table: Table) -> tuple[Column, ...]:
    """The columns that tell every row from every other; positions of partitions are alike."""
    names = (*table.keys, "partition_id") if table.is_history else table.keys
    return tuple(column for column in table.columns if column.name in names)


def read_sort(table: Table, source: Any) -> tuple[By, ...]:
    """The order of a request: a list like `[{"field": "started", "order": "DESC"}]`."""
    if source is not None and not isinstance(source, list | tuple):
        refuse("sort", "a list", source)
    order: list[By] = []
    for each in source or ():
        if not isinstance(each, Mapping) or not set(each) <= {"field", "order"}:
            refuse("sort", "an object with field and order", each)
        order.append(_by(table, each))
    if len(order) > SORT_COLUMNS_MAX:
        refuse("sort", f"at most {SORT_COLUMNS_MAX} fields", source)
    return complete(table, order)


def _by(table: Table, source: Mapping[str, Any]) -> By:
    field, direction = source.get("field"), source.get("order", "ASC")
    direction = direction.upper() if isinstance(direction, str) else direction
    column = fields_of(table).get(field) if isinstance(field, str) else None
    if column is None or column.kind not in _TYPES:
        sortable = (name for name, each in fields_of(table).items() if each.kind in _TYPES)
        refuse("sort", f"one of {', '.join(sortable)}", field)
    if direction not in ("ASC", "DESC"):
        refuse("sort", "ASC or DESC", direction)
    return By(column, direction == "DESC")


def complete(table: Table, order: Sequence[By]) -> tuple[By, ...]:
    """An order in which no two rows are level: it ends with the key, in the same direction."""
    first = {by.column.name: by for by in reversed(order)}
    named = [by for by in order if first[by.column.name] is by]
    descending = named[-1].descending if named else False
    rest = [By(column, descending) for column in identity_of(table) if column.name not in first]
    return (*named, *rest)


def read_page(source: Any) -> PageRequest:
    """The page of a request: limit, and from, after or before."""
    source = {} if source is None else source
    if not isinstance(source, Mapping):
        refuse("page", "an object", source)
    for name in source:
        if name not in _PAGE_FIELDS:
            refuse("page", f"one of {', '.join(_PAGE_FIELDS)}", name)
    if sum(source.get(name) is not None for name in ("from", "after", "before")) > 1:
        refuse("page", "only one of from, after and before", source)
    return PageRequest(
        _whole(source, "limit", PAGE_ITEMS, 0, PAGE_ITEMS_MAX),
        _whole(source, "from", 0, 0, PAGE_OFFSET_MAX),
        _cursor(source, "after"),
        _cursor(source, "before"),
    )


def _whole(source: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    found = source.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
        refuse(name, f"a whole number from {low} to {high}", found)
    return found


def _cursor(source: Mapping[str, Any], name: str) -> str | None:
    found = source.get(name)
    if found is None or (isinstance(found, str) and len(found) <= CURSOR_CHARS_MAX):
        return found
    refuse(name, "a cursor of an earlier page", found)


# --- cursors -----------------------------------------------------------------------------------


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    order: list[tuple[str, bool]]
    values: list[int | str | bool | None]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Cursor).decode


def cursor_of(order: tuple[By, ...], values: Values) -> str:
    """A place in an order, as a text."""
    packed = _encode(_Cursor(_names(order), list(values)))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def place_of(order: tuple[By, ...], field: str, cursor: str) -> Values:
    """The place that a cursor names; it has to be of the same order."""
    try:
        found = _decode(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        refuse(field, "a cursor of an earlier page", cursor)
    if found.order != _names(order):
        refuse(field, "a cursor of an answer in the same order", cursor)
    fitting = len(found.values) == len(order) and all(
        value is None or (type(value) is _TYPES[by.column.kind] and _storable(by, value))
        for by, value in zip(order, found.values, strict=True)
    )
    if not fitting:
        refuse(field, "a cursor of an earlier page", cursor)
    return tuple(found.values)


def _names(order: tuple[By, ...]) -> list[tuple[str, bool]]:
    return [(by.column.name, by.descending) for by in order]


def _storable(by: By, value: Any) -> bool:
    """Whether the column can hold a value."""
    if by.column.kind is ColumnKind.TIME:
        return -_TIME_US_MAX <= value <= _TIME_US_MAX
    return not isinstance(value, int) or -WHOLE_MAX - 1 <= value <= WHOLE_MAX


# --- SQL ---------------------------------------------------------------------------------------


def order_by(order: tuple[By, ...], *, reverse: bool) -> str:
    """What stands after ORDER BY."""
    return ", ".join(
        f"{by.sql} {'DESC NULLS FIRST' if by.descending != reverse else 'ASC NULLS LAST'}"
        for by in order
    )


def beyond(order: tuple[By, ...], place: Values, *, reverse: bool) -> Sql:
    """The rows that come after a place, or with `reverse`, before it."""
    cases: list[Sql] = []
    level: list[Sql] = []
    for by, value in zip(order, place, strict=True):
        past = _past(by, value, descending=by.descending != reverse)
        if past is not None:
            cases.append(joined(" AND ", [*level, past], "TRUE"))
        level.append(_level(by, value))
    first, value = order[0], place[0]
    if value is None or first.descending == reverse:
        return joined(" OR ", cases, "FALSE")
    # Said once more in a form that lets DuckDB leave out most of a file.
    bound = Sql(f"({first.sql} <= {_held(first)})", (value,))
    return joined(" AND ", [bound, joined(" OR ", cases, "FALSE")], "TRUE")


def _past(by: By, value: Any, *, descending: bool) -> Sql | None:
    if value is None:
        return Sql(f"({by.sql} IS NOT NULL)") if descending else None
    sign = "<" if descending else ">"
    text = f"{by.sql} {sign} {_held(by)}"
    return Sql(f"({text})" if descending else f"({text} OR {by.sql} IS NULL)", (value,))


def _level(by: By, value: Any) -> Sql:
    if value is None:
        return Sql(f"({by.sql} IS NULL)")
    return Sql(f"({by.sql} = {_held(by)})", (value,))


def _held(by: By) -> str:
    """The value of a cursor as the column has it."""
    if by.column.kind is ColumnKind.TIME:
        return "make_timestamptz(CAST(? AS BIGINT))"
    return placeholder(by.column.kind)
