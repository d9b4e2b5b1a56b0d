"""The list of operations: those that the node itself knows, then those that only the tables know.

A node knows the operations that run and the last ones that ended; the tables know the others, and
what they know of the first is older. An operation is on one page only, even if it ends while
somebody turns the pages: it is taken for what it was when the list began.
"""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway.batch.shapes import (
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationView,
    BatchPageInfo,
    BatchPageQuery,
)
from holdfast.gateway.batch.tables import BatchTables, OpenTables
from holdfast.limits import PAGE_ITEMS_MAX

Place = tuple[bool, float, str]  # whether it has ended, how long ago it started, its key


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended."""

    began_ms: int  # the list
    place: Place | None = None  # among those that the node knows; None: they are all listed
    after: str | None = None  # the cursor in the tables
    total: int | None = None  # how many there were when the list began


_FIRST: Place = (False, -1e18, "")  # before all others
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Cursor).decode


async def page_of(
    query: BatchOperationQuery,
    known: Iterable[BatchOperationView],
    open_tables: OpenTables,
    now_ms: int,
) -> BatchOperationPage:
    """One page of the list; `known` is all that the node knows, whatever is asked for."""
    cursor = _read(query.page.after) or _Cursor(now_ms, _FIRST)
    ours = {each.batch_operation_key: each for each in known}
    matching = _matching(ours.values(), query, cursor)
    found: list[BatchOperationView] = []
    if cursor.place is not None:
        found = [view for place, view in matching if place > cursor.place][: query.page.limit]
    place = _place(found[-1], cursor.began_ms) if found else cursor.place
    after, total = cursor.after, cursor.total
    try:
        tables = await open_tables()
        if total is None:
            total = await _total(tables, query, ours, len(matching))
        if left := query.page.limit - len(found):
            rows, after = await _rows(tables, query, after, left, ours)
            found, place = [*found, *rows], None
    except Unavailable:  # there are none: then this is all
        total = len(matching) if total is None else total
    end = _text(_Cursor(cursor.began_ms, place, after, total)) if found else None
    return BatchOperationPage(found, BatchPageInfo(total, end_cursor=end))


async def _total(
    tables: BatchTables,
    query: BatchOperationQuery,
    ours: dict[str, BatchOperationView],
    matching: int,
) -> int:
    """How many there are in all: what the node knows is among the newest in the tables."""
    page = await tables.operations(_asked(query, min(max(matching, 1), PAGE_ITEMS_MAX), None))
    in_both = sum(each.batch_operation_key in ours for each in page.items)
    return page.page.total_items + matching - in_both


def _matching(
    known: Iterable[BatchOperationView], query: BatchOperationQuery, cursor: _Cursor
) -> list[tuple[Place, BatchOperationView]]:
    """Those that are asked for, in the order of the list: what runs first, the newest first."""
    return sorted(
        (
            (_place(each, cursor.began_ms), each)
            for each in known
            if query.filter.state in (None, each.state)
            and query.filter.operation_type in (None, each.batch_operation_type)
        ),
        key=lambda pair: pair[0],
    )


async def _rows(
    tables: BatchTables,
    query: BatchOperationQuery,
    after: str | None,
    wanted: int,
    ours: dict[str, BatchOperationView],
) -> tuple[list[BatchOperationView], str | None]:
    """So many that only the tables know, and the cursor behind them."""
    rows: list[BatchOperationView] = []
    while len(rows) < wanted:
        page = await tables.operations(_asked(query, wanted - len(rows), after))
        rows += [each for each in page.items if each.batch_operation_key not in ours]
        if page.page.end_cursor is None or not page.items:
            break
        after = page.page.end_cursor
    return rows, after


def _place(view: BatchOperationView, began_ms: int) -> Place:
    ended, started = view.end_date, view.start_date
    has_ended = ended is not None and ended.timestamp() * 1_000 < began_ms
    return has_ended, 0.0 if started is None else -started.timestamp(), view.batch_operation_key


def _asked(query: BatchOperationQuery, limit: int, after: str | None) -> BatchOperationQuery:
    return BatchOperationQuery(query.filter, BatchPageQuery(limit, after))


def _text(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(_encode(cursor)).decode()


def _read(text: str | None) -> _Cursor | None:
    if text is None:
        return None
    try:
        return _decode(base64.b64decode(text, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidArgument(
            f"Expected the end cursor of a page, but found {text!r}", field="after"
        ) from error
