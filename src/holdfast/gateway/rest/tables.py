"""The port to the tables beside the log, which searches are answered from.

The gateway knows neither the tables' files nor who reads them: the code that puts the node together
gives it something that keeps this protocol.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.errors import Unavailable

Row = dict[str, Any]  # by the names of the columns; a time is a datetime in UTC


class FoundRows(msgspec.Struct, frozen=True):
    """A page of rows."""

    rows: list[Row]
    total: int
    has_more: bool
    start: str | None = None
    end: str | None = None


class SearchTables(Protocol):
    """What can be asked of the tables. They follow the log: what was just written comes later."""

    async def search(
        self,
        table: str,
        filter: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        """A page of the rows that meet a filter; fields are columns in camelCase."""
        ...

    async def rows(self, table: str, keys: Sequence[int]) -> dict[int, Row]:
        """The rows of some keys, as far as there are any."""
        ...

    def close(self) -> None: ...


class TablesMissing(Unavailable):
    """There are no tables beside the node."""


class NoTables:
    """A node without tables: says how to get them."""

    async def search(
        self,
        table: str,
        filter: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        raise no_tables()

    async def rows(self, table: str, keys: Sequence[int]) -> dict[int, Row]:
        raise no_tables()

    def close(self) -> None:
        """There is nothing to let go of."""


async def row_of(tables: SearchTables, table: str, key: int) -> Row | None:
    """The row of a key. Where there are no tables, nothing is known of what has ended."""
    try:
        return (await tables.rows(table, [key])).get(key)
    except TablesMissing:
        return None


def no_tables() -> TablesMissing:
    """The error of a search without tables."""
    return TablesMissing(
        "Expected tables to answer this from, but this node has none yet: start it with"
        " `holdfast start --pipeline`, or run `holdfast pipeline run` on its folder"
    )
