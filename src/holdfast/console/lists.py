"""Lists over millions: from the tables where they are kept, from the node's own state where not.

The tables filter and sort by anything. The state is as of now and in the order of keys; a filter
that fits few of its rows is given up after a moment, so that no page keeps the node busy.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.console.page import PageAsk
from holdfast.errors import Forbidden, InvalidArgument
from holdfast.gateway.as_of import AsOf, noted_as_of
from holdfast.gateway.rest.tables import Row, TablesMissing
from holdfast.limits import CONSOLE_LIST_ITEMS, CONSOLE_LIST_MS_MAX

T = TypeVar("T")

STATE, TABLES = "state", "tables"


class ListedPage(NamedTuple, Generic[T]):
    """A page of a list, and what is known of where it comes from."""

    items: list[T]
    after: str | None = None  # the cursor of the next page
    total: int | None = None
    has_more_total: bool = False  # there are more than were counted
    as_of: AsOf | None = None
    ended_since: datetime | None = None
    from_tables: bool = False
    gave_up: bool = False  # few of many rows fit


class TableList(NamedTuple, Generic[T]):
    """How a list is asked of the tables."""

    table: str
    filter: Mapping[str, Any]
    sortable: Mapping[str, str]  # what a column of the page is called in the table
    default: str  # of them, what is sorted by, the latest first
    item: Callable[[Row], T]


async def listed(
    ask: PageAsk, tables: TableList[T], from_state: Callable[[], Awaitable[ListedPage[T]]]
) -> ListedPage[T]:
    """The page that the address asks for: `from`, `sort`, `order` and `after`."""
    wanted = ask.query.get("from", "")
    if wanted != STATE:
        try:
            return await _from_tables(ask, tables)
        except (TablesMissing, Forbidden):  # the state knows whose a job is, the table does not
            if wanted == TABLES:
                raise
    try:
        async with asyncio.timeout(CONSOLE_LIST_MS_MAX / 1_000):
            return await from_state()
    except TimeoutError:
        return ListedPage([], gave_up=True)


async def _from_tables(ask: PageAsk, tables: TableList[T]) -> ListedPage[T]:
    by = ask.query.get("sort", tables.default)
    if by not in tables.sortable:
        raise InvalidArgument(f"Expected one of {', '.join(tables.sortable)} to sort by", sort=by)
    order = "ASC" if ask.query.get("order") == "asc" else "DESC"
    page: dict[str, Any] = {"limit": CONSOLE_LIST_ITEMS}
    if "after" in ask.query:
        page["after"] = ask.query["after"]
    sort = [{"field": tables.sortable[by], "order": order}]
    found = await ask.api.tables.search(tables.table, tables.filter, sort, page)
    is_full = len(found.rows) == CONSOLE_LIST_ITEMS
    return ListedPage(
        [tables.item(row) for row in found.rows], found.end if is_full else None, found.total,
        found.has_more, noted_as_of(), from_tables=True,
    )  # fmt: skip


def time_in(ask: PageAsk, name: str) -> datetime | None:
    """A time that a filter names, as a browser's field gives it; UTC."""
    text = ask.query.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArgument(f"Expected a time for {name}, but found {text!r}") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def between(ask: PageAsk, since: str, until: str) -> dict[str, Any]:
    """A condition for a time in the tables."""
    start, end = time_in(ask, since), time_in(ask, until)
    condition: dict[str, Any] = {}
    if start is not None:
        condition["$gte"] = start.isoformat()
    if end is not None:
        condition["$lt"] = end.isoformat()
    return condition
