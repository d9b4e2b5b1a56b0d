"""The tables beside a node, as its batch operations need them."""

import asyncio
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from holdfast.clock import Clock
from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import BatchOperation
from holdfast.errors import Unavailable
from holdfast.gateway.as_of import AsOf, note_as_of
from holdfast.gateway.batch.shapes import (
    BatchFailureGroup,
    BatchFailureGroups,
    BatchItemPage,
    BatchItemQuery,
    BatchItemState,
    BatchOperationPage,
    BatchOperationQuery,
    BatchPageInfo,
)
from holdfast.gateway.batch.tables import Chosen, PastOperation
from holdfast.limits import (
    BATCH_SAMPLE_ITEMS,
    BATCH_SELECTION_LOOK_MS,
    BATCH_TABLES_WAIT_MS,
    TOTAL_ITEMS_MAX,
)
from holdfast.pipeline.batch.past import item_view, operation_of, operation_view
from holdfast.pipeline.batch.selector import PipelineSelector
from holdfast.pipeline.batch.sources import condition_of
from holdfast.pipeline.schema import BATCH_OPERATION_ITEMS, BATCH_OPERATIONS, Table
from holdfast.pipeline.search.paging import By, PageRequest
from holdfast.pipeline.search.search import Answer, PageInfo, Search
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.requests import withdraw_all
from holdfast.pipeline.tables.versions import Versions

_OPERATION, _DRY_RUN = "batch-", "dry-run-"  # how the selections of batch operations are named


class PipelineTables:
    """Searched by this process, selected from by the one that keeps them fresh."""

    def __init__(
        self,
        root: Path,
        search: Search,
        clock: Clock,
        as_of: Callable[[], AsOf | None] = lambda: None,
    ) -> None:
        """`as_of` tells where the tables stand: it is noted, to be sent with the answer."""
        self._root = root
        self._clock = clock
        self._versions = Versions(root)
        self._search = search
        self._as_of = as_of
        self._selector = PipelineSelector(self._versions, clock)

    # --- selecting ----------------------------------------------------------------------------

    def check(self, operation: BatchOperation) -> None:
        """InvalidArgument, which names the field, for a filter that is none."""
        condition_of(operation)

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        """A page of the snapshot that was made for the operation."""
        return await self._selector.page(key, operation, partition, cursor, limit)

    async def preview(self, operation: BatchOperation) -> Chosen:
        """What an operation would do: its selection is made, counted and dropped."""
        name = _DRY_RUN + uuid.uuid4().hex
        try:
            snapshot = await self._selector.preview(name, operation)
            asked = operation.partitions or snapshot.manifest.runs
            counts = {each: snapshot.count(each) for each in asked}
            return Chosen(counts, await asyncio.to_thread(snapshot.sample, BATCH_SAMPLE_ITEMS))
        finally:
            self._selector.drop(name)

    def drop(self, operation: BatchOperation) -> None:
        """Nobody will ask for a page of it again."""
        self._selector.drop(operation.selection.name)

    def keep_only(self, operations: Collection[BatchOperation]) -> None:
        """What was selected for any others, by a node before this one, goes."""
        withdraw_all(self._root, _OPERATION, {each.selection.name for each in operations})
        withdraw_all(self._root, _DRY_RUN)

    # --- looking ------------------------------------------------------------------------------

    async def past(self, key: int, as_of: Mapping[int, int]) -> PastOperation | None:
        """An operation as the tables have it, once they are as far."""
        await self._reach(as_of)
        note_as_of(self._as_of())
        row = await asyncio.to_thread(self._search.get, BATCH_OPERATIONS, key)
        return None if row is None else PastOperation(operation_of(row), operation_view(row))

    async def operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        """Operations as the tables have them, the newest first."""
        asked = query.filter
        note_as_of(self._as_of())
        created = BATCH_OPERATIONS.column("created")
        assert created is not None
        found = await asyncio.to_thread(
            self._found,
            BATCH_OPERATIONS,
            {"state": asked.state, "type": asked.operation_type},
            (By(created, descending=True),),
            PageRequest(query.page.limit, after=query.page.after),
        )
        return BatchOperationPage([operation_view(row) for row in found.items], _info(found.page))

    async def items(self, query: BatchItemQuery) -> BatchItemPage:
        """Items as the tables have them, in the order of their keys."""
        asked = query.filter
        wanted = {
            "batchOperationKey": asked.batch_operation_key,
            "itemKey": asked.item_key,
            "processInstanceKey": asked.process_instance_key,
            "state": asked.state,
        }
        page = PageRequest(query.page.limit, after=query.page.after)
        note_as_of(self._as_of())
        found = await asyncio.to_thread(self._found, BATCH_OPERATION_ITEMS, wanted, (), page)
        return BatchItemPage([item_view(row) for row in found.items], _info(found.page))

    async def failures(self, key: int) -> BatchFailureGroups:
        """Why items of an operation failed, the most frequent reason first."""
        wanted = {"batchOperationKey": str(key), "state": BatchItemState.FAILED.value}
        note_as_of(self._as_of())
        counted = await asyncio.to_thread(
            self._search.grouped,
            BATCH_OPERATION_ITEMS,
            read_filter(BATCH_OPERATION_ITEMS, wanted),
            "error_code",
            "error",
            "item_key",
        )
        groups = [
            BatchFailureGroup(each.code, each.text, each.rows, each.example, str(each.key))
            for each in counted
        ]
        return BatchFailureGroups(groups, sum(each.items for each in groups) < TOTAL_ITEMS_MAX)

    def _found(
        self, table: Table, wanted: dict[str, str | None], order: tuple[By, ...], page: PageRequest
    ) -> Answer:
        given = {name: str(value) for name, value in wanted.items() if value is not None}
        return self._search.search(table, read_filter(table, given), order, page)

    async def _reach(self, as_of: Mapping[int, int]) -> None:
        """Waits until the tables are as far; Unavailable if they do not get there."""
        deadline = self._clock.monotonic() + BATCH_TABLES_WAIT_MS / 1_000
        while True:
            positions = self._versions.progress().positions
            if all(positions.get(each, 0) >= wanted for each, wanted in as_of.items()):
                return
            if self._clock.monotonic() >= deadline:
                raise Unavailable("Expected the tables to be as far as the log, but they are not")
            await asyncio.sleep(BATCH_SELECTION_LOOK_MS / 1_000)


def _info(page: PageInfo) -> BatchPageInfo:
    return BatchPageInfo(
        page.total_items, page.has_more_total_items, page.start_cursor, page.end_cursor
    )
