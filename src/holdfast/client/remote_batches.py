"""What a remote node is asked about batch operations."""

from holdfast.client.wire import Wire, quoted
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
from holdfast.limits import BATCH_SELECTION_WAIT_MS

_OPERATIONS = "/v2/batch-operations"


class RemoteBatches:
    """The part of the remote Api that is about batch operations."""

    async def create_batch_operation(self: Wire, new: NewBatchOperation) -> BatchOperationReceipt:
        return await self._post(_OPERATIONS, new, BatchOperationReceipt, _wait_ms(new.dry_run))

    async def batch_operation(self: Wire, batch_operation_key: str) -> BatchOperationView:
        path = f"{_OPERATIONS}/{quoted(batch_operation_key)}/details"
        return await self._get(path, BatchOperationView)

    async def batch_operations(self: Wire, query: BatchOperationQuery) -> BatchOperationPage:
        return await self._post(f"{_OPERATIONS}/listing", query, BatchOperationPage)

    async def batch_operation_items(self: Wire, query: BatchItemQuery) -> BatchItemPage:
        return await self._post("/v2/batch-operation-items/listing", query, BatchItemPage)

    async def suspend_batch_operation(self: Wire, batch_operation_key: str) -> None:
        await self._send("POST", f"{_OPERATIONS}/{quoted(batch_operation_key)}/suspension")

    async def resume_batch_operation(self: Wire, batch_operation_key: str) -> None:
        await self._send("POST", f"{_OPERATIONS}/{quoted(batch_operation_key)}/resumption")

    async def cancel_batch_operation(self: Wire, batch_operation_key: str) -> None:
        await self._send("POST", f"{_OPERATIONS}/{quoted(batch_operation_key)}/cancellation")

    async def change_batch_operation(
        self: Wire, batch_operation_key: str, change: BatchChange
    ) -> None:
        await self._send("POST", f"{_OPERATIONS}/{quoted(batch_operation_key)}/change", change)

    async def retry_batch_operation(
        self: Wire, batch_operation_key: str, retry: BatchRetry
    ) -> BatchOperationReceipt:
        path = f"{_OPERATIONS}/{quoted(batch_operation_key)}/retry"
        return await self._post(path, retry, BatchOperationReceipt, _wait_ms(retry.dry_run))


def _wait_ms(dry_run: bool) -> int:
    """A dry run takes as long as the pipeline needs to select."""
    return BATCH_SELECTION_WAIT_MS if dry_run else 0
