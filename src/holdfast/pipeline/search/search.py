"""Searching the tables with DuckDB: over the files of one moment, at most a few of them.

A page is found in two steps: first the keys of its rows, by the columns that the filter and the
order need; then the rows, from the files that have these keys. The only module that imports duckdb.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from holdfast.errors import Unavailable
from holdfast.limits import TOTAL_ITEMS_MAX
from holdfast.pipeline.schema import Column, ColumnKind, Table
from holdfast.pipeline.search.nearest import can_come_before, in_order, prefixes
from holdfast.pipeline.search.paging import (
    By,
    PageRequest,
    Values,
    beyond,
    complete,
    cursor_of,
    identity_of,
    order_by,
    place_of,
)
from holdfast.pipeline.select.prune import pruned
from holdfast.pipeline.select.sql import TYPES, Sql, joined, quoted, sql_of
from holdfast.pipeline.select.tree import (
    EVERYTHING,
    All,
    Compare,
    Comparison,
    Condition,
    OneOf,
)
from holdfast.pipeline.select.values import moment_of
from holdfast.pipeline.tables.listing import TableFile
from holdfast.pipeline.tables.versions import Versions

_TOTALS_MAX = 1_024  # filters whose totals are remembered, for those who turn pages
_FILES_APART_MAX = 64  # a page whose rows are in more is read in one go
_GROUPS_MAX = 50  # the largest; a person reads no more
_MISSING_COLUMN = (duckdb.BinderException, duckdb.InvalidInputException)

Item = dict[str, Any]  # a row by the names of its columns; a time is a datetime in UTC


class PageInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The position of a page in the whole result."""

    total_items: int
    has_more_total_items: bool  # there are more than totalItems
    start_cursor: str | None = None
    end_cursor: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """A page of rows."""

    items: list[Item]
    page: PageInfo


class RowGroup(msgspec.Struct, frozen=True):
    """Rows with the same code and the same text, but for the long numbers in it."""

    code: str | None
    text: str  # with # for each long number
    rows: int
    example: str  # the text of one of them
    key: int  # of that one


class Search:
    """The tables in one folder, open for questions from any thread."""

    def __init__(self, root: Path) -> None:
        self._versions = Versions(root)
        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")
        self._database.execute("SET preserve_insertion_order = false")
        self._lock = threading.Lock()
        self._totals: dict[tuple[str, int, Condition], int] = {}

    def close(self) -> None:
        self._database.close()

    def get(self, table: Table, *key: int | str) -> Item | None:
        """The row of a key; that of a history is its position and its partition."""
        identity = identity_of(table)
        assert len(key) == len(identity), f"{table.name} is known by {len(identity)} columns"
        parts = [
            Compare(column.name, column.kind, Comparison.EQ, value)
            for column, value in zip(identity, key, strict=True)
        ]
        version = self._versions.progress().versions.get(table.name)
        if version is None:
            return None
        rows = self._rows(table, self._versions.files(table, version), All(tuple(parts)))
        return rows[0] if rows else None

    def search(
        self,
        table: Table,
        condition: Condition = EVERYTHING,
        order: Sequence[By] = (),
        page: PageRequest | None = None,
    ) -> Answer:
        """A page of the rows that meet a filter, and how many there are."""
        order, page = complete(table, order), page or PageRequest()
        bounds = _bounds(order, page)
        version = self._versions.progress().versions.get(table.name)
        if version is None:
            return Answer([], PageInfo(0, False))
        files = pruned(self._versions.files(table, version), condition)
        total, places = self._found(table, version, files, condition, bounds, order, page)
        if total == 0:
            return Answer([], PageInfo(0, False))
        info = PageInfo(
            min(total, TOTAL_ITEMS_MAX),
            total > TOTAL_ITEMS_MAX,
            cursor_of(order, places[0]) if places else None,
            cursor_of(order, places[-1]) if places else None,
        )
        return Answer(self._items(table, files, order, places), info)

    def grouped(
        self, table: Table, condition: Condition, code: str, text: str, key: str
    ) -> list[RowGroup]:
        """Rows that meet a filter, by a code and a text; the largest groups first.

        As many rows are looked at as are counted for a page.
        """
        version = self._versions.progress().versions.get(table.name)
        if version is None:
            return []
        where = sql_of(condition)
        code, text, key = quoted(code), quoted(text), quoted(key)
        query = (
            f"WITH chosen AS (SELECT {code} AS code, coalesce({text}, '') AS told, {key} AS k"
            f" FROM {{source}} WHERE {where.text} LIMIT {TOTAL_ITEMS_MAX})"
            " SELECT code, regexp_replace(told, '[0-9][0-9][0-9]+', '#', 'g') AS reason,"
            " count(*) AS many, arg_min(told, k), min(k)"
            f" FROM chosen GROUP BY code, reason ORDER BY many DESC, reason LIMIT {_GROUPS_MAX}"
        )
        files = pruned(self._versions.files(table, version), condition)
        found = self._ask(table, files, Sql(query, where.parameters))
        return [RowGroup(*row) for row in found]

    def _found(
        self,
        table: Table,
        version: int,
        files: list[TableFile],
        condition: Condition,
        bounds: Sql,
        order: tuple[By, ...],
        page: PageRequest,
    ) -> tuple[int, list[Values]]:
        """How many rows meet a filter, and the places of a page of them in the order."""
        key = (table.name, version, condition)
        with self._lock:
            total = self._totals.get(key)
        if condition == EVERYTHING:
            total = sum(file.rows for file in files)
        if total is not None and not page.limit:
            return total, []
        if total is None:
            total, places = self._counted(table, files, condition, bounds, order, page)
            with self._lock:
                while len(self._totals) >= _TOTALS_MAX:
                    del self._totals[next(iter(self._totals))]
                self._totals[key] = total
            if total <= TOTAL_ITEMS_MAX or not page.limit:
                return total, places
        where = joined(" AND ", [sql_of(condition), bounds], "TRUE")
        if total > TOTAL_ITEMS_MAX:
            return total, self._first_places(table, files, where, order, page)
        return total, self._places(table, files, where, order, page)

    def _counted(
        self,
        table: Table,
        files: list[TableFile],
        condition: Condition,
        bounds: Sql,
        order: tuple[By, ...],
        page: PageRequest,
    ) -> tuple[int, list[Values]]:
        """How many rows meet a filter, counted as far as one more than the limit.

        If they are not more, the page is among those that were counted: files are read only once.
        """
        where = sql_of(condition)
        names = ", ".join(quoted(by.column.name) for by in order)
        plain = ", ".join(by.plain for by in order)
        by = order_by(order, reverse=page.before is not None)
        text = (
            f"WITH counted AS MATERIALIZED (SELECT {names} FROM {{source}} WHERE {where.text}"
            f" LIMIT {TOTAL_ITEMS_MAX + 1}), page AS (SELECT * FROM counted WHERE {bounds.text}"
            f" ORDER BY {by} LIMIT {page.limit} OFFSET {page.offset})"
            f" SELECT (SELECT count(*) FROM counted), {plain}"
            " FROM (SELECT 1) LEFT JOIN page ON TRUE"
            f" ORDER BY {by}"
        )
        rows = self._ask(table, files, Sql(text, (*where.parameters, *bounds.parameters)))
        if not rows:
            return 0, []
        places = [row[1:] for row in rows if row[-1] is not None]  # a key is never empty
        return rows[0][0], places[::-1] if page.before is not None else places

    def _first_places(
        self,
        table: Table,
        files: list[TableFile],
        where: Sql,
        order: tuple[By, ...],
        page: PageRequest,
    ) -> list[Values]:
        """The places of a page of very many rows: found in a few files where that is possible."""
        first, backwards = order[0], page.before is not None
        descending = first.descending != backwards
        near = in_order(files, first, descending=descending) or []
        for count in prefixes(near):
            places = self._places(table, near[:count], where, order, page)
            if len(places) == page.limit:
                last = places[0 if backwards else -1][0]
                more = [
                    file
                    for file in near[count:]
                    if can_come_before(file, first, last, descending=descending)
                ]
                if more:
                    return self._places(table, near[:count] + more, where, order, page)
                return places
        return self._places(table, files, where, order, page)

    def _places(
        self,
        table: Table,
        files: list[TableFile],
        where: Sql,
        order: tuple[By, ...],
        page: PageRequest,
    ) -> list[Values]:
        """The places of a page's rows in the order."""
        columns = ", ".join(by.plain for by in order)
        reverse = page.before is not None
        text = (
            f"SELECT {columns} FROM {{source}} WHERE {where.text}"
            f" ORDER BY {order_by(order, reverse=reverse)} LIMIT {page.limit} OFFSET {page.offset}"
        )
        found = self._ask(table, files, Sql(text, where.parameters))
        return found[::-1] if reverse else found

    def _items(
        self, table: Table, files: list[TableFile], order: tuple[By, ...], places: list[Values]
    ) -> list[Item]:
        """The rows of a page, in its order."""
        identity = [column.name for column in identity_of(table)]
        names = [by.column.name for by in order]
        at = [names.index(name) for name in identity]
        keys = [tuple(place[each] for each in at) for place in places]
        rows = self._keyed(table, files, sorted({key[0] for key in keys}))
        by_key = {tuple(row[name] for name in identity): row for row in rows}
        return [by_key[key] for key in keys]

    def _rows(self, table: Table, files: list[TableFile], condition: Condition) -> list[Item]:
        where = sql_of(condition)
        text = f"SELECT {_columns(table)} FROM {{source}} WHERE {where.text}"
        found = self._ask(table, pruned(files, condition), Sql(text, where.parameters))
        return [_item(table, row) for row in found]

    def _keyed(self, table: Table, files: list[TableFile], keys: list[int]) -> list[Item]:
        """The rows of some keys: of each file as little as it takes."""
        key = table.columns[0]
        wanted = [(file, some) for file in files if (some := _keys_in(file, key.name, keys))]
        if len(wanted) > _FILES_APART_MAX:
            return self._rows(table, [file for file, _ in wanted], _with_keys(key, keys))
        found: list[Item] = []
        for file, some in wanted:
            found += self._rows(table, [file], _with_keys(key, some))
        return found

    def _ask(self, table: Table, files: list[TableFile], query: Sql) -> list[Values]:
        if not files:
            return []
        paths = [file.path for file in files]
        cursor = self._database.cursor()
        try:
            return _answers(cursor, table, paths, query)
        except duckdb.IOException as error:
            raise Unavailable(
                f"Expected the files of the tables to stay while they are read, but {error}"
            ) from error
        finally:
            cursor.close()


def _answers(
    cursor: duckdb.DuckDBPyConnection, table: Table, paths: list[str], query: Sql
) -> list[Values]:
    text = query.text.format(source="read_parquet(?)")
    try:
        return cursor.execute(text, [paths, *query.parameters]).fetchall()
    except _MISSING_COLUMN:
        # A file that is older than a column: it costs a look into all of them.
        text = query.text.format(source=_with_all_columns(table))
        return cursor.execute(text, [paths, *query.parameters]).fetchall()


def _with_all_columns(table: Table) -> str:
    empty = ", ".join(
        f"CAST(NULL AS {TYPES[column.kind]}) AS {quoted(column.name)}" for column in table.columns
    )
    return (
        "(SELECT * FROM read_parquet(?, union_by_name = true)"
        f" UNION ALL BY NAME SELECT {empty} WHERE FALSE)"
    )


def _bounds(order: tuple[By, ...], page: PageRequest) -> Sql:
    """What a cursor leaves of the rows."""
    if page.after is not None:
        return beyond(order, place_of(order, "after", page.after), reverse=False)
    if page.before is not None:
        return beyond(order, place_of(order, "before", page.before), reverse=True)
    return Sql("TRUE")


def _keys_in(file: TableFile, column: str, keys: list[int]) -> list[int]:
    """Those of some sorted keys that a file can have."""
    ends = file.ends.get(column)
    return (
        keys if ends is None else keys[bisect_left(keys, ends.low) : bisect_right(keys, ends.high)]
    )


def _with_keys(key: Column, keys: list[int]) -> Condition:
    """Rows with one of some sorted keys; the ends let DuckDB leave out parts of a file."""
    return All(
        (
            Compare(key.name, key.kind, Comparison.GTE, keys[0]),
            Compare(key.name, key.kind, Comparison.LTE, keys[-1]),
            OneOf(key.name, key.kind, tuple(keys)),
        )
    )


def _columns(table: Table) -> str:
    return ", ".join(
        f"epoch_us({quoted(column.name)})"
        if column.kind is ColumnKind.TIME
        else quoted(column.name)
        for column in table.columns
    )


def _item(table: Table, row: Values) -> Item:
    return {
        column.name: moment_of(value)
        if column.kind is ColumnKind.TIME and value is not None
        else value
        for column, value in zip(table.columns, row, strict=True)
    }
