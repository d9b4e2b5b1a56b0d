"""The tables of a node, as searches over HTTP ask for them."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Unavailable
from holdfast.gateway.as_of import AsOf, note_as_of
from holdfast.gateway.rest.tables import FoundRows, Row, no_tables
from holdfast.limits import PAGE_ITEMS_MAX
from holdfast.pipeline.schema import TABLES

if TYPE_CHECKING:
    from holdfast.pipeline.search.search import Search


class FolderTables:
    """The tables in a folder beside the log; they may come while the node runs.

    Each question is answered in a thread, as it takes milliseconds and the loop serves others.
    DuckDB is loaded with the first one: a node that nobody searches does without.
    """

    def __init__(self, root: Path, as_of: Callable[[], AsOf | None] = lambda: None) -> None:
        """`as_of` tells where the tables stand: it is noted, to be sent with the answer."""
        self._root = root
        self._as_of = as_of
        self._lock = threading.Lock()
        self._opened: Search | None = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    async def search(
        self,
        table: str,
        filter: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        note_as_of(self._as_of())  # before they are read: they may be newer, never older
        return await asyncio.to_thread(self._page, table, filter, sort, page)

    async def rows(self, table: str, keys: Sequence[int]) -> dict[int, Row]:
        note_as_of(self._as_of())
        wanted = sorted(set(keys))
        return await asyncio.to_thread(self._rows, table, wanted)

    def _page(
        self,
        table: str,
        filter: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        search = self.opened()
        from holdfast.pipeline.search.paging import read_page, read_sort
        from holdfast.pipeline.select.filters import read_filter

        of = TABLES[table]
        found = search.search(of, read_filter(of, filter), read_sort(of, sort), read_page(page))
        info = found.page
        return FoundRows(
            found.items, info.total_items, info.has_more_total_items, info.start_cursor,
            info.end_cursor,
        )  # fmt: skip

    def _rows(self, table: str, keys: list[int]) -> dict[int, Row]:
        search = self.opened()
        from holdfast.pipeline.search.paging import PageRequest
        from holdfast.pipeline.select.tree import OneOf

        of = TABLES[table]
        key = of.columns[0]
        found: dict[int, Row] = {}
        for start in range(0, len(keys), PAGE_ITEMS_MAX):
            some = tuple(keys[start : start + PAGE_ITEMS_MAX])
            answer = search.search(of, OneOf(key.name, key.kind, some), (), PageRequest(len(some)))
            found |= {row[key.name]: row for row in answer.items}
        return found

    def opened(self) -> "Search":
        """What answers; Unavailable, with what to do, where there are no tables or no DuckDB."""
        with self._lock:
            if self._opened is None:
                if not self._root.is_dir():
                    raise no_tables()
                try:
                    from holdfast.pipeline.search.search import Search
                except ImportError as error:
                    raise Unavailable(
                        f"Expected what reads tables to be installed, but {error};"
                        " pip install 'holdfast[pipeline]'"
                    ) from error
                self._opened = Search(self._root)
            return self._opened
