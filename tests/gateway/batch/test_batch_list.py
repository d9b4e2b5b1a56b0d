"""The list of batch operations: each on one page, whatever happens while the pages are turned."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from tests.gateway.fake_tables import FakeTables

from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.errors import InvalidArgument
from holdfast.gateway.batch.listing import page_of
from holdfast.gateway.batch.shapes import (
    BatchOperationFilter,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationView,
    BatchPageInfo,
    BatchPageQuery,
)

_S = BatchOperationState
NOW_MS = 1_000_000


def moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC)


def view(key: int, started_ms: int, ended_ms: int | None = None) -> BatchOperationView:
    return BatchOperationView(
        batch_operation_key=str(key),
        batch_operation_type=BatchOperationType.RETRY_TASK,
        state=_S.ACTIVE if ended_ms is None else _S.COMPLETED,
        start_date=moment(started_ms),
        end_date=None if ended_ms is None else moment(ended_ms),
        filter=msgspec.Raw(b"{}"),
    )


def _started(view: BatchOperationView) -> float:
    assert view.start_date is not None
    return view.start_date.timestamp()


class Rows(FakeTables):
    """Tables with rows of operations, in pages."""

    def __init__(self, *rows: BatchOperationView) -> None:
        super().__init__()
        self.rows = list(rows)

    async def operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        wanted = query.filter.state
        found = [each for each in self.rows if wanted in (None, each.state)]
        found.sort(key=_started, reverse=True)
        after = query.page.after
        items = [each for each in found if after is None or _started(each) < float(after)]
        items = items[: query.page.limit]
        end = str(_started(items[-1])) if items else None
        return BatchOperationPage(items, BatchPageInfo(len(found), end_cursor=end))


def listed(
    tables: Rows,
    known: list[BatchOperationView],
    limit: int,
    after: str | None = None,
    state: BatchOperationState | None = None,
) -> BatchOperationPage:
    query = BatchOperationQuery(BatchOperationFilter(state), BatchPageQuery(limit, after))
    return asyncio.run(page_of(query, known, tables.open, NOW_MS))


def keys(page: BatchOperationPage) -> list[int]:
    return [int(each.batch_operation_key) for each in page.items]


def test_one_that_ended_just_now_is_listed_before_the_tables_have_it() -> None:
    tables = Rows(view(1, 10, 20), view(2, 30))  # they do not know yet that 2 has ended, nor of 3
    known = [view(2, 30, 999_000), view(3, 40, 999_500), view(4, 50)]
    page = listed(tables, known, 10)
    assert keys(page) == [4, 3, 2, 1]
    assert page.page.total_items == 4
    assert [each.state for each in page.items] == [_S.ACTIVE] + [_S.COMPLETED] * 3
    assert keys(listed(tables, known, 10, state=_S.ACTIVE)) == [4]
    assert keys(listed(tables, known, 10, state=_S.COMPLETED)) == [3, 2, 1]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("ends", [False, True])
def test_each_is_on_one_page_and_no_page_is_too_long(limit: int, ends: bool) -> None:
    """Some end while the pages are turned, and get into the tables."""
    running = [view(100 + n, 500 + n) for n in range(7)]
    ended = [view(200 + n, 400 + n, 600 + n) for n in range(4)]
    old = [view(300 + n, 100 + n, 200 + n) for n in range(9)]
    tables, known, after, found = Rows(*old, *ended[:2], *running[:3]), [*running, *ended], None, []
    for _ in range(40):
        page = listed(tables, known, limit, after)
        assert len(page.items) <= limit and page.page.total_items == 20
        found += keys(page)
        after = page.page.end_cursor
        if after is None:
            break
        if ends and running:
            late = msgspec.structs.replace(
                running.pop(), state=_S.COMPLETED, end_date=moment(NOW_MS + 5)
            )
            key = late.batch_operation_key
            tables.rows = [each for each in tables.rows if each.batch_operation_key != key]
            tables.rows.append(late)
            ended = [*ended, late]
            known = [*running, *ended]
    assert sorted(found) == [*range(100, 107), *range(200, 204), *range(300, 309)]
    assert len(found) == 20
    if not ends:
        assert found[:7] == [*range(106, 99, -1)], "what runs comes first, the newest first"


def test_without_tables_it_is_what_the_node_knows() -> None:
    tables = Rows()
    tables.is_there = False
    page = listed(tables, [view(1, 10), view(2, 20, 30)], 1)
    assert keys(page) == [1] and page.page.total_items == 2
    page = listed(tables, [view(1, 10), view(2, 20, 30)], 1, page.page.end_cursor)
    assert keys(page) == [2]
    assert listed(tables, [], 1).page.end_cursor is None


@pytest.mark.parametrize("text", ["", "nonsense", "bm9uc2Vuc2U="])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="Expected the end cursor of a page"):
        listed(Rows(), [], 1, text)
