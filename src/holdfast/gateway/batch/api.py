"""What can be asked of a node about batch operations."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import of_batch, one
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchFailureGroups,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.operation import Namespace, operation
from holdfast.limits import BATCH_SELECTION_WAIT_MS

_READ = one(ResourceType.BATCH, Permission.READ)
_UPDATE = one(ResourceType.BATCH, Permission.UPDATE)
_ONE = "/v2/batch-operations/{batch_operation_key}"


def _selection_ms(body: NewBatchOperation | BatchRetry) -> int:
    """A dry run takes as long as the pipeline needs to select."""
    return BATCH_SELECTION_WAIT_MS if body.dry_run else 0


class BatchApi(Namespace, Protocol):
    """Batch operations: begin them, look at them, steer them."""

    @operation(
        "create_batch_operation", "POST", "/v2/batch-operations", of_batch(),
        takes_ms=_selection_ms,
    )  # fmt: skip
    async def create(self, new: NewBatchOperation) -> BatchOperationReceipt:
        """Start a batch operation of any type.

        Durable when it returns; a dry run only tells what would be chosen.
        """
        ...

    @operation("get_batch_operation_details", "GET", f"{_ONE}/details", _READ)
    async def get(self, batch_operation_key: str) -> BatchOperationView:
        """Show a batch operation with its partitions, its pace and its estimated end."""
        ...

    @operation("list_batch_operations", "POST", "/v2/batch-operations/listing", _READ)
    async def page(self, query: BatchOperationQuery) -> BatchOperationPage:
        """List batch operations, running ones first."""
        ...

    @operation("list_batch_operation_items", "POST", "/v2/batch-operation-items/listing", _READ)
    async def items(self, query: BatchItemQuery) -> BatchItemPage:
        """List items of batch operations with their outcomes.

        As far as the tables are.
        """
        ...

    @operation("list_batch_operation_failures", "GET", f"{_ONE}/failures", _READ)
    async def failures(self, batch_operation_key: str) -> BatchFailureGroups:
        """List the reasons why items of a batch operation failed, with counts.

        As far as the tables are.
        """
        ...

    @operation("suspend_batch_operation", "POST", f"{_ONE}/suspension", _UPDATE)
    async def suspend(self, batch_operation_key: str) -> None:
        """Suspend a batch operation."""

    @operation("resume_batch_operation", "POST", f"{_ONE}/resumption", _UPDATE)
    async def resume(self, batch_operation_key: str) -> None:
        """Resume a batch operation."""

    @operation("cancel_batch_operation", "POST", f"{_ONE}/cancellation", _UPDATE)
    async def cancel(self, batch_operation_key: str) -> None:
        """Cancel a batch operation."""

    @operation("change_batch_operation", "POST", f"{_ONE}/change", _UPDATE)
    async def change(self, batch_operation_key: str, change: BatchChange) -> None:
        """Change the throttle or the priority of a batch operation."""

    @operation("retry_batch_operation", "POST", f"{_ONE}/retry", of_batch(), takes_ms=_selection_ms)
    async def retry(self, batch_operation_key: str, retry: BatchRetry) -> BatchOperationReceipt:
        """Retry what failed in a batch operation, by a new one."""
        ...
