"""Batch operations and their items: get and search, with the counts of this moment.

The API has fewer words than there are things here. The batch operations of tasks update jobs. An
item whose target was gone is completed: nothing is left to do, and a client that waits until the
counts reach the total does not wait for ever. `GET /v2/batch-operations/{key}/details` tells them
apart.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.engine.batch.values import (
    BatchOperationState,
    BatchOperationType,
    PartitionErrorType,
)
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import one
from holdfast.gateway.api import Api
from holdfast.gateway.batch.shapes import BatchErrorView, BatchItemState, BatchOperationView
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.rest.common import PageAnswer, RestApi, SearchQuery
from holdfast.gateway.rest.fields import KEY, TIME, Resource, page_of, plain, search, word
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row
from holdfast.gateway.shapes import Shape

_TASKS = "UPDATE_JOB"
_TYPES: dict[str, tuple[str, ...]] = {
    **{
        name: (name,)
        for name in BatchOperationType
        if name not in (BatchOperationType.RETRY_TASK, BatchOperationType.DISCARD_TASK)
    },
    _TASKS: (BatchOperationType.RETRY_TASK, BatchOperationType.DISCARD_TASK),
    # there are no such operations here
    "ADD_VARIABLE": (),
    "DELETE_DECISION_DEFINITION": (),
    "DELETE_DECISION_INSTANCE": (),
    "DELETE_PROCESS_DEFINITION": (),
    "RESUME_PROCESS_INSTANCE": (),
    "SUSPEND_PROCESS_INSTANCE": (),
    "UPDATE_VARIABLE": (),
}
_TYPE_OF = {column: name for name, columns in _TYPES.items() for column in columns}
_STATES = {str(name): (str(name),) for name in BatchOperationState}
_ITEM_STATES: dict[str, tuple[str, ...]] = {
    "ACTIVE": (BatchItemState.ACTIVE,),
    "COMPLETED": (BatchItemState.COMPLETED, BatchItemState.SKIPPED),
    "FAILED": (BatchItemState.FAILED,),
    "CANCELED": (BatchItemState.CANCELED,),
}
_ITEM_STATE_OF = {column: name for name, columns in _ITEM_STATES.items() for column in columns}
_ACTOR_TYPES: dict[str, tuple[str, ...]] = {
    "CLIENT": (OwnerType.CLIENT,),
    "USER": (OwnerType.USER,),
    "ANONYMOUS": (),  # there are no such actors here
    "UNKNOWN": (),
}
_GONE = "There was nothing left to do: it was gone"

# --- shapes -----------------------------------------------------------------------------------


class OperationError(Shape, frozen=True):
    """Why a partition could not select its items."""

    partition_id: int
    type: str
    message: str


class OperationResult(Shape, frozen=True):
    """A batch operation."""

    batch_operation_key: str
    state: str
    batch_operation_type: str
    start_date: datetime | None
    end_date: datetime | None
    actor_id: str | None
    operations_total_count: int  # selected so far
    operations_failed_count: int
    operations_completed_count: int  # including items whose target no longer existed
    errors: list[OperationError]
    operations_canceled_count: int  # an extension of the API: canceled items
    actor_type: str | None = None


class OperationSearchResult(Shape, frozen=True):
    """A page of batch operations."""

    items: list[OperationResult]
    page: PageAnswer


class ItemResult(Shape, frozen=True):
    """An item of a batch operation."""

    operation_type: str
    batch_operation_key: str
    item_key: str
    process_instance_key: str | None
    state: str
    processed_date: datetime | None
    error_message: str | None
    root_process_instance_key: str | None = None


class ItemSearchResult(Shape, frozen=True):
    """A page of items of batch operations."""

    items: list[ItemResult]
    page: PageAnswer


# --- operations -------------------------------------------------------------------------------

OPERATIONS = Resource(
    "batch_operations",
    "batchOperationKey",
    {
        "batchOperationKey": plain("batchOperationKey", KEY),
        "operationType": word("type", _TYPES),
        "state": word("state", _STATES),
        "actorType": word("actorType", _ACTOR_TYPES),
        "actorId": plain("actor"),
        "startDate": plain("created", TIME),
        "endDate": plain("ended", TIME),
    },
)


class OperationQuery(SearchQuery, frozen=True):
    """Which batch operations to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(OPERATIONS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(OPERATIONS)] = msgspec.field(default_factory=list)


@endpoint(
    "GET", "/v2/batch-operations/{batch_operation_key}", one(ResourceType.BATCH, Permission.READ)
)
async def get_batch_operation(api: Api, batch_operation_key: str) -> OperationResult:
    """Show a batch operation and how far it is."""
    return _of_view(await api.batches.get(batch_operation_key))


@endpoint("POST", "/v2/batch-operations/search", one(ResourceType.BATCH, Permission.READ))
async def search_batch_operations(
    api: RestApi, body: OperationQuery | None
) -> OperationSearchResult:
    """Search batch operations, running or ended."""
    found = await search(api.tables, OPERATIONS, body)
    return OperationSearchResult([await _current(api, row) for row in found.rows], page_of(found))


async def _current(api: RestApi, row: Row) -> OperationResult:
    """An operation that was found; with the counts of this moment, if it still is as found.

    The tables count what partitions are done with. One that has changed since is told as it was
    found, because a search is for what meets its filter.
    """
    told = _of_row(row)
    if row["ended"] is not None:
        return told
    try:
        now = _of_view(await api.batches.get(told.batch_operation_key))
    except NotFound:
        return told
    return now if now.state == told.state else told


def _of_view(view: BatchOperationView) -> OperationResult:
    return OperationResult(
        view.batch_operation_key, view.state, _TYPE_OF[view.batch_operation_type],
        view.start_date, view.end_date, view.actor_id, view.operations_total_count,
        view.operations_failed_count,
        view.operations_completed_count + view.operations_skipped_count,
        [_error(each) for each in view.errors], view.operations_canceled_count, view.actor_type,
    )  # fmt: skip


def _of_row(row: Row) -> OperationResult:
    errors = msgspec.json.decode(row["errors"] or b"[]", type=list[_StoredError])
    return OperationResult(
        str(row["batch_operation_key"]), row["state"], _TYPE_OF[row["type"]], row["created"],
        row["ended"], row["actor"], row["total"], row["failed"],
        row["completed"] + row["skipped"],
        [_error(BatchErrorView(each.partition, each.type, each.message)) for each in errors],
        row["canceled"], row["actor_type"],
    )  # fmt: skip


class _StoredError(msgspec.Struct):
    """An error as the tables have it."""

    partition: int
    type: str
    message: str


def _error(view: BatchErrorView) -> OperationError:
    known = view.type != PartitionErrorType.UNKNOWN
    type_ = view.type if known else PartitionErrorType.QUERY_FAILED
    return OperationError(view.partition_id, type_, view.message)


# --- items ------------------------------------------------------------------------------------

ITEMS = Resource(
    "batch_operation_items",
    "itemKey",
    {
        "batchOperationKey": plain("batchOperationKey", KEY),
        "itemKey": plain("itemKey", KEY),
        "processInstanceKey": plain("processInstanceKey", KEY),
        "state": word("state", _ITEM_STATES),
        "operationType": word("type", _TYPES),
        "processedDate": plain("processed", TIME),
    },
)


class ItemQuery(SearchQuery, frozen=True):
    """Which items of batch operations to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(ITEMS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(ITEMS)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/batch-operation-items/search", one(ResourceType.BATCH, Permission.READ))
async def search_batch_operation_items(api: RestApi, body: ItemQuery | None) -> ItemSearchResult:
    """Search items of batch operations with their outcomes."""
    found = await search(api.tables, ITEMS, body)
    roots = await api.look.roots([row["process_instance_key"] for row in found.rows])
    return ItemSearchResult([_item(row, roots) for row in found.rows], page_of(found))


def _item(row: Row, roots: Mapping[int | None, str | None]) -> ItemResult:
    instance = row["process_instance_key"]
    is_gone = row["state"] == BatchItemState.SKIPPED
    return ItemResult(
        _TYPE_OF[row["type"]], str(row["batch_operation_key"]), str(row["item_key"]),
        str(instance) if instance else None, _ITEM_STATE_OF[row["state"]], row["processed"],
        row["error"] or (_GONE if is_gone else None), roots[instance],
    )  # fmt: skip


BATCH_LOOK_ENDPOINTS: tuple[Endpoint, ...] = (
    get_batch_operation, search_batch_operations, search_batch_operation_items,
)  # fmt: skip
