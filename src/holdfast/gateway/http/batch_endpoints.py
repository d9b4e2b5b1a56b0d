"""The endpoints about batch operations."""

from holdfast.engine.batch.values import BatchOperationType
from holdfast.gateway.api import Api
from holdfast.gateway.batch_shapes import (
    BatchChange,
    BatchItemPage,
    BatchItemQuery,
    BatchMigration,
    BatchModification,
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


_Body = BatchRequest | BatchResolution | BatchModification | BatchMigration


def _new(type_: BatchOperationType, body: _Body) -> NewBatchOperation:
    return NewBatchOperation(
        type=type_,
        filter=body.filter,
        modification=body.plan if isinstance(body, BatchModification) else None,
        migration=body.plan if isinstance(body, BatchMigration) else None,
        retries=body.retries if isinstance(body, BatchResolution) else 0,
        throttle=body.throttle,
        priority=body.priority,
        dry_run=body.dry_run,
    )


@endpoint("POST", "/v2/batch-operations")
async def create_batch_operation(api: Api, body: NewBatchOperation) -> BatchOperationReceipt:
    """Begin a batch operation of any type."""
    return await api.create_batch_operation(body)


@endpoint("POST", "/v2/process-instances/cancellation")
async def cancel_process_instances(api: Api, body: BatchRequest) -> BatchOperationReceipt:
    """Cancel all process instances that a filter chooses."""
    return await api.create_batch_operation(_new(_T.CANCEL_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/modification")
async def modify_process_instances(api: Api, body: BatchModification) -> BatchOperationReceipt:
    """Modify all process instances that a filter chooses."""
    return await api.create_batch_operation(_new(_T.MODIFY_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/migration")
async def migrate_process_instances(api: Api, body: BatchMigration) -> BatchOperationReceipt:
    """Migrate all process instances that a filter chooses."""
    return await api.create_batch_operation(_new(_T.MIGRATE_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/deletion")
async def delete_process_instances(api: Api, body: BatchRequest) -> BatchOperationReceipt:
    """Delete all process instances that have ended and that a filter chooses."""
    return await api.create_batch_operation(_new(_T.DELETE_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/incident-resolution")
async def resolve_incidents(api: Api, body: BatchResolution) -> BatchOperationReceipt:
    """Resolve all incidents that a filter chooses."""
    return await api.create_batch_operation(_new(_T.RESOLVE_INCIDENT, body))


@endpoint("POST", "/v2/tasks/retry")
async def retry_tasks(api: Api, body: BatchResolution) -> BatchOperationReceipt:
    """Try all tasks again that wait for a person and that a filter chooses."""
    return await api.create_batch_operation(_new(_T.RETRY_TASK, body))


@endpoint("POST", "/v2/tasks/discard")
async def discard_tasks(api: Api, body: BatchRequest) -> BatchOperationReceipt:
    """Give up all tasks that wait for a person and that a filter chooses."""
    return await api.create_batch_operation(_new(_T.DISCARD_TASK, body))


@endpoint("GET", "/v2/batch-operations/{batch_operation_key}")
async def get_batch_operation(api: Api, batch_operation_key: str) -> BatchOperationView:
    """Show a batch operation and how far it is."""
    return await api.batch_operation(batch_operation_key)


@endpoint("POST", "/v2/batch-operations/search")
async def search_batch_operations(api: Api, body: BatchOperationQuery) -> BatchOperationPage:
    """List batch operations."""
    return await api.batch_operations(body)


@endpoint("POST", "/v2/batch-operation-items/search")
async def search_batch_operation_items(api: Api, body: BatchItemQuery) -> BatchItemPage:
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
    create_batch_operation, cancel_process_instances, modify_process_instances,
    migrate_process_instances, delete_process_instances, resolve_incidents, retry_tasks,
    discard_tasks,
    get_batch_operation, search_batch_operations, search_batch_operation_items,
    suspend_batch_operation, resume_batch_operation, cancel_batch_operation,
    change_batch_operation, retry_batch_operation,
)  # fmt: skip
