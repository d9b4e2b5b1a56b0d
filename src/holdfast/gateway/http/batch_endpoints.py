"""The endpoints about batch operations that the REST API has no word for.

Those that it has are in the room beside this one: a path for each type, and searches. Here is an
operation of any type with the columns of the tables in its filter, and all that is known of one.
"""

from holdfast.engine.batch.values import BatchOperationType
from holdfast.gateway.api import Api
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchRequest,
    BatchResolution,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.http.endpoint import Endpoint, endpoint

_T = BatchOperationType


def _new(type_: BatchOperationType, body: BatchRequest | BatchResolution) -> NewBatchOperation:
    return NewBatchOperation(
        type=type_,
        filter=body.filter,
        retries=body.retries if isinstance(body, BatchResolution) else 0,
        throttle=body.throttle,
        priority=body.priority,
        dry_run=body.dry_run,
    )


@endpoint("POST", "/v2/batch-operations")
async def create_batch_operation(api: Api, body: NewBatchOperation) -> BatchOperationReceipt:
    """Begin a batch operation of any type."""
    return await api.create_batch_operation(body)


@endpoint("POST", "/v2/tasks/retry")
async def retry_tasks(api: Api, body: BatchResolution) -> BatchOperationReceipt:
    """Try all tasks again that wait for a person and that a filter chooses."""
    return await api.create_batch_operation(_new(_T.RETRY_TASK, body))


@endpoint("POST", "/v2/tasks/discard")
async def discard_tasks(api: Api, body: BatchRequest) -> BatchOperationReceipt:
    """Give up all tasks that wait for a person and that a filter chooses."""
    return await api.create_batch_operation(_new(_T.DISCARD_TASK, body))


@endpoint("GET", "/v2/batch-operations/{batch_operation_key}/details")
async def get_batch_operation_details(api: Api, batch_operation_key: str) -> BatchOperationView:
    """Show a batch operation with its partitions, its pace and its estimated end."""
    return await api.batch_operation(batch_operation_key)


@endpoint("POST", "/v2/batch-operations/listing")
async def list_batch_operations(api: Api, body: BatchOperationQuery) -> BatchOperationPage:
    """List batch operations, those that run first."""
    return await api.batch_operations(body)


@endpoint("POST", "/v2/batch-operation-items/listing")
async def list_batch_operation_items(api: Api, body: BatchItemQuery) -> BatchItemPage:
    """List items of batch operations with their outcomes."""
    return await api.batch_operation_items(body)


@endpoint("POST", "/v2/batch-operations/{batch_operation_key}/suspension")
async def suspend_batch_operation(api: Api, batch_operation_key: str) -> None:
    """Suspend a batch operation."""
    await api.suspend_batch_operation(batch_operation_key)


@endpoint("POST", "/v2/batch-operations/{batch_operation_key}/resumption")
async def resume_batch_operation(api: Api, batch_operation_key: str) -> None:
    """Let a batch operation go on."""
    await api.resume_batch_operation(batch_operation_key)


@endpoint("POST", "/v2/batch-operations/{batch_operation_key}/cancellation")
async def cancel_batch_operation(api: Api, batch_operation_key: str) -> None:
    """Give up what a batch operation has not done yet."""
    await api.cancel_batch_operation(batch_operation_key)


@endpoint("POST", "/v2/batch-operations/{batch_operation_key}/change")
async def change_batch_operation(api: Api, batch_operation_key: str, body: BatchChange) -> None:
    """Change the throttle or the priority of a batch operation."""
    await api.change_batch_operation(batch_operation_key, body)


@endpoint("POST", "/v2/batch-operations/{batch_operation_key}/retry")
async def retry_batch_operation(
    api: Api, batch_operation_key: str, body: BatchRetry
) -> BatchOperationReceipt:
    """Try again what failed in a batch operation, by a new one."""
    return await api.retry_batch_operation(batch_operation_key, body)


BATCH_ENDPOINTS: tuple[Endpoint, ...] = (
    create_batch_operation, retry_tasks, discard_tasks,
    get_batch_operation_details, list_batch_operations, list_batch_operation_items,
    suspend_batch_operation, resume_batch_operation, cancel_batch_operation,
    change_batch_operation, retry_batch_operation,
)  # fmt: skip
