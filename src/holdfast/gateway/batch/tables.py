"""What batch operations need of the tables: a port that the builder of the node fills."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec

from holdfast.engine.batch.selector import ItemPage, Selector
from holdfast.engine.batch.values import BatchOperation
from holdfast.errors import Unavailable
from holdfast.gateway.batch.shapes import (
    BatchFailureGroups,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationView,
)


class Chosen(msgspec.Struct, frozen=True):
    """What a filter chooses."""

    counts: dict[int, int]  # by partition
    sample: list[int]


class PastOperation(msgspec.Struct, frozen=True):
    """An operation that has ended: what it was, and how it ended."""

    operation: BatchOperation
    view: BatchOperationView


class BatchTables(Selector, Protocol):
    """Tables of what happened, and somebody who selects from them."""

    def check(self, operation: BatchOperation) -> None:
        """InvalidArgument, which names the field, for a filter that chooses nothing ever."""
        ...

    async def preview(self, operation: BatchOperation) -> Chosen:
        """What an operation would do; nothing of it stays."""
        ...

    def drop(self, operation: BatchOperation) -> None:
        """Nobody will ask for a page of it again."""
        ...

    def keep_only(self, operations: Collection[BatchOperation]) -> None:
        """What was selected for any others is not needed any more."""
        ...

    async def past(self, key: int, as_of: Mapping[int, int]) -> PastOperation | None:
        """An operation that has ended, once the tables are as far; None if they have none."""
        ...

    async def operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        """Operations as the tables have them, the newest first."""
        ...

    async def items(self, query: BatchItemQuery) -> BatchItemPage: ...

    async def failures(self, key: int) -> BatchFailureGroups:
        """Why items of an operation failed, the most frequent reason first."""
        ...


OpenTables = Callable[[], Awaitable[BatchTables]]


async def no_tables() -> BatchTables:
    """Where no tables are kept."""
    raise Unavailable(
        "This node keeps no tables to select items from; start it with --pipeline", lasting=1
    )


class TablesSelector:
    """Selects from the tables, which are opened when the first page is asked for."""

    def __init__(self, open_tables: OpenTables) -> None:
        self._open_tables = open_tables

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        """A page of the snapshot that was made for the operation."""
        tables = await self._open_tables()
        return await tables.page(key, operation, partition, cursor, limit)


_OF_INSTANCES = "processInstance"


def of_instances(filter_: bytes) -> bytes:
    """The filter of incidents that chooses those of the process instances a filter chooses."""
    return b'{"%s":%s}' % (_OF_INSTANCES.encode(), filter_)


def instances_in(filter_: Any) -> tuple[Any, Any]:
    """A filter of incidents, and that of their process instances; None where it has none."""
    if not isinstance(filter_, dict) or _OF_INSTANCES not in filter_:
        return filter_, None
    rest = {name: asked for name, asked in filter_.items() if name != _OF_INSTANCES}
    return rest, filter_[_OF_INSTANCES]


_FAILED = b'{"batchOperationKey":"%d","state":"FAILED"}'


def failed_items(key: int) -> bytes:
    """The filter that chooses the failed items of an operation."""
    return _FAILED % key


def is_of_items(operation: BatchOperation) -> bool:
    """Whether an operation chooses among the items of another."""
    return operation.repeats > 0 and operation.filter.startswith(_FAILED.partition(b"%d")[0])
