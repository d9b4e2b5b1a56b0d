"""Tables that are a list of keys, for batch operations without a pipeline."""

from collections.abc import Collection, Mapping

from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import BatchOperation
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway.batch.shapes import (
    BatchFailureGroup,
    BatchFailureGroups,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchPageInfo,
)
from holdfast.gateway.batch.tables import BatchTables, Chosen, PastOperation
from holdfast.records import partition_of


class FakeTables:
    """Chooses all of `keys`, whatever the filter; keeps what it was told."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.failing: set[int] = set()  # partitions that cannot select
        self.asked: list[BatchOperation] = []
        self.dropped: list[str] = []
        self.kept: list[list[str]] = []
        self.past_operations: dict[int, PastOperation] = {}
        self.failure_groups: list[BatchFailureGroup] = []
        self.is_there = True
        self.is_behind = False  # the log

    async def open(self) -> BatchTables:
        if not self.is_there:
            raise Unavailable("Expected tables, but there are none")
        return self

    def check(self, operation: BatchOperation) -> None:
        if b"nonsense" in operation.filter:
            raise InvalidArgument("Expected a field, but found nonsense", field="nonsense")

    async def preview(self, operation: BatchOperation) -> Chosen:
        self.asked.append(operation)
        counts: dict[int, int] = {}
        for key in self.keys:
            counts[partition_of(key)] = counts.get(partition_of(key), 0) + 1
        return Chosen(counts, self.keys[:2])

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        self.asked.append(operation)
        if partition in self.failing:
            raise InvalidArgument("Expected the disk to be there, but it is not")
        found = [each for each in self.keys if partition_of(each) == partition]
        at = int(cursor or 0)
        end = at + min(3, limit)
        return ItemPage(tuple(found[at:end]), (), str(end) if end < len(found) else None)

    def drop(self, operation: BatchOperation) -> None:
        self.dropped.append(operation.selection.name)

    def keep_only(self, operations: Collection[BatchOperation]) -> None:
        self.kept.append([each.selection.name for each in operations])

    async def past(self, key: int, as_of: Mapping[int, int]) -> PastOperation | None:
        if as_of and self.is_behind:
            raise Unavailable("Expected the tables to be as far as the log, but they are not")
        return self.past_operations.get(key)

    async def operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        views = [each.view for each in self.past_operations.values()]
        return BatchOperationPage(views, BatchPageInfo(len(views)))

    async def items(self, query: BatchItemQuery) -> BatchItemPage:
        return BatchItemPage([], BatchPageInfo(0))

    async def failures(self, key: int) -> BatchFailureGroups:
        return BatchFailureGroups(self.failure_groups)
