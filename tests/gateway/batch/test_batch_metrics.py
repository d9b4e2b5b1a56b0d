"""The numbers about batch operations: what runs, what ended, and items by type and outcome."""

import asyncio

from tests.gateway.batch.test_batches import new, until, with_dead_letters

from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.testing import MemoryNode, run

_S, _T = BatchOperationState, BatchOperationType


async def numbers(node: MemoryNode) -> dict[str, float]:
    """By their names without what they all begin with; what is 0 is left out."""
    lines = (await node.gateway.node.metrics()).decode().splitlines()
    found = (line.removeprefix("holdfast_").split() for line in lines if line[:1] != "#")
    return {
        name: float(value)
        for name, value in found
        if name.startswith("batch_") and "_created" not in name and float(value)
    }


def test_operations_and_items_are_counted_by_type_and_outcome() -> None:
    async def story() -> None:
        node, _ = await with_dead_letters(27)
        gateway = node.gateway
        assert await numbers(node) == {}
        slow = (await gateway.batches.create(new(throttle=6))).batch_operation_key or ""
        await asyncio.sleep(3)
        before = (await gateway.batches.get(slow)).operations_completed_count
        found = await numbers(node)
        done = (await gateway.batches.get(slow)).operations_completed_count
        counted = found['batch_items_total{outcome="completed",type="RETRY_TASK"}']
        assert before <= counted <= done, "it goes on meanwhile"
        assert found == {
            'batch_operations{state="ACTIVE",type="RETRY_TASK"}': 1,
            'batch_items_total{outcome="completed",type="RETRY_TASK"}': counted,
            "batch_items_per_second": found["batch_items_per_second"],
        }
        assert 3 <= found["batch_items_per_second"] <= 12, "about what the throttle lets through"
        await gateway.batches.suspend(slow)
        suspended = await numbers(node)
        assert suspended['batch_operations{state="SUSPENDED",type="RETRY_TASK"}'] == 1
        await gateway.batches.cancel(slow)
        await until(node, slow, _S.CANCELED)
        await asyncio.sleep(1)

        discarding = new(type=_T.DISCARD_TASK)
        key = (await gateway.batches.create(discarding)).batch_operation_key or ""
        end = await until(node, key, _S.PARTIALLY_COMPLETED)
        assert end.operations_failed_count >= done, "what is tried again waits for nobody"
        retried = (await gateway.batches.get(slow)).operations_completed_count
        assert await numbers(node) == {
            'batch_operations_ended_total{state="CANCELED",type="RETRY_TASK"}': 1,
            'batch_operations_ended_total{state="PARTIALLY_COMPLETED",type="DISCARD_TASK"}': 1,
            'batch_items_total{outcome="completed",type="RETRY_TASK"}': retried,
            'batch_items_total{outcome="canceled",type="RETRY_TASK"}': 27 - retried,
            'batch_items_total{outcome="completed",type="DISCARD_TASK"}': 27 - retried,
            'batch_items_total{outcome="failed",type="DISCARD_TASK"}': retried,
        }
        await node.close()

    run(story())
