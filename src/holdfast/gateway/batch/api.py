"""What can be asked of a node about batch operations."""

from typing import Protocol

from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchRetry,
    NewBatchOperation,
)


class BatchApi(Protocol):
    """The part of the Api that is about batch operations."""

    async def create_batch_operation(self, new: NewBatchOperation) -> BatchOperationReceipt:
        """Durable when it returns; a dry run only tells what would be chosen."""
        ...

    async def batch_operation(self, batch_operation_key: str) -> BatchOperationView: ...

    async def batch_operations(self, query: BatchOperationQuery) -> BatchOperationPage: ...

    async def batch_operation_items(self, query: BatchItemQuery) -> BatchItemPage:
        """Items with their outcomes, as far as the tables are."""
        ...

    async def suspend_batch_operation(self, batch_operation_key: str) -> None: ...

    async def resume_batch_operation(self, batch_operation_key: str) -> None: ...

    async def cancel_batch_operation(self, batch_operation_key: str) -> None: ...

    async def change_batch_operation(
        self, batch_operation_key: str, change: BatchChange
    ) -> None: ...

    async def retry_batch_operation(
        self, batch_operation_key: str, retry: BatchRetry
    ) -> BatchOperationReceipt:
        """A new operation for what failed in one that has ended."""
        ...
