"""A node drives its batch operations by itself, over crashes too, and lets live work go first."""

import asyncio
from typing import Any

from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
    OperationEnd,
    OperationRef,
)
from holdfast.engine.families import Tag
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import Unavailable
from holdfast.gateway.tasks.shapes import ActivationRequest, JobFailure, NewTask
from holdfast.limits import BATCH_EXECUTE_ITEMS_MAX
from holdfast.records import Record, RecordKind, ValueType, partition_of
from holdfast.runtime import batch_driver
from holdfast.testing import MemoryNode, SimulatedDisk, run

BATCH, EXECUTION = ValueType.BATCH_OPERATION, ValueType.BATCH_OPERATION_EXECUTION
_I = BatchOperationIntent


class Keys:
    """Selects from a list, in small pages, now and then not at all."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.keys: list[int] = []
        self.seconds = seconds
        self.size = 7
        self.errors: list[Exception] = []
        self.cancelled = 0

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.errors:
            raise self.errors.pop()
        found = [each for each in self.keys if partition_of(each) == partition]
        at = int(cursor or 0)
        end = at + min(self.size, limit)
        return ItemPage(tuple(found[at:end]), (), str(end) if end < len(found) else None)


async def dead_letters(node: MemoryNode, count: int) -> list[int]:
    """Tasks that wait for a person, on all partitions."""
    keys: list[int] = []
    while len(keys) < count:
        await asyncio.gather(
            *(node.gateway.tasks.submit([NewTask("send", retries=0)] * 5) for _ in range(8))
        )
        jobs = await node.gateway.jobs.activate(
            ActivationRequest(["send"], "worker", 1_000, 60_000)
        )
        await node.gateway.jobs.fail([JobFailure(job.job_key, job.lease, "broken") for job in jobs])
        keys += [int(job.job_key) for job in jobs]
    return keys


async def create(node: MemoryNode, **rest: Any) -> int:
    operation = BatchOperation(BatchOperationType.RETRY_TASK, b'{"type":"send"}', **rest)
    (reply,) = await node.node.runner.submit(2, [Command(BATCH, _I.CREATE, 0, operation)])
    assert reply.rejection is None, reply.rejection
    return reply.key


async def control(node: MemoryNode, intent: BatchOperationIntent, key: int) -> None:
    command = Command(BATCH, intent, key, OperationRef())
    (reply,) = await node.node.runner.submit(partition_of(key), [command])
    assert reply.rejection is None, reply.rejection


def records(node: MemoryNode) -> list[Record]:
    """All records of all partitions."""
    found: list[Record] = []
    for partition in range(1, node.partitions + 1):
        at = node.journal.bounds(TOPIC, partition).earliest
        while entries := node.journal.read_now(TOPIC, partition, at, 1_000_000):
            found += DISPATCH.codec.decode_many([entry.payload for entry in entries])
            at = entries[-1].offset + 1
    return found


async def end_of(node: MemoryNode, key: int, seconds: float = 120) -> OperationEnd:
    for _ in range(round(seconds / 0.05)):
        for record in records(node):
            is_end = (record.value_type, record.intent) == (BATCH, _I.COMPLETED)
            if is_end and record.kind is RecordKind.EVENT and record.key == key:
                return record.value
        await asyncio.sleep(0.05)
    raise AssertionError("it does not end")


def check_gone(node: MemoryNode) -> None:
    for partition in range(1, node.partitions + 1):
        tags = {raw[2] for raw, _ in node.dump(partition)}
        batch = range(Tag.BATCH_OPERATION, Tag.BATCH_OPERATIONS_LED + 1)
        assert not {each for each in tags if each in batch}, "left behind"


def test_a_node_does_an_operation_by_itself() -> None:
    async def story() -> None:
        keys = Keys()
        node = await MemoryNode(partitions=4, selector=keys).start()
        keys.keys = await dead_letters(node, 100)
        key = await create(node)
        end = await end_of(node, key)
        assert end.state is BatchOperationState.COMPLETED
        assert end.counts.completed == len(keys.keys)
        assert len(end.reports) == 4
        check_gone(node)
        await node.close()

    run(story())


def test_without_anybody_who_selects_an_operation_fails_and_says_why() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=2).start()
        end = await end_of(node, await create(node), 900)
        assert end.state is BatchOperationState.FAILED
        error = end.reports[0].error
        assert error is not None and "keeps no tables" in error.message
        check_gone(node)
        await node.close()

    run(story())


def test_pages_that_fail_are_tried_again() -> None:
    async def story() -> None:
        keys = Keys()
        keys.errors = [Unavailable("away"), ValueError("a bug"), TimeoutError()]
        node = await MemoryNode(partitions=2, selector=keys).start()
        keys.keys = await dead_letters(node, 20)
        end = await end_of(node, await create(node))
        assert end.counts.completed == len(keys.keys)
        await node.close()

    run(story())


def test_an_operation_goes_on_where_it_was_when_a_node_comes_back() -> None:
    async def story(seconds: float) -> int:
        keys = Keys()
        node = await MemoryNode(partitions=3, selector=keys, disk=SimulatedDisk()).start()
        keys.keys = await dead_letters(node, 60)
        key = await create(node, throttle=60)
        falls = 0
        for _ in range(4):
            await asyncio.sleep(seconds)
            if partition_of(key) and node.node.runner.processors[2].view.batches.led():
                falls += 1
            await node.crash()
            await node.restart()
        end = await end_of(node, key)
        assert end.counts.completed == end.counts.total == len(keys.keys)
        resolved = [each.key for each in records(node) if each.value_type == ValueType.INCIDENT]
        assert len(resolved) == 2 * len(set(resolved)), "each was opened once and resolved once"
        check_gone(node)
        await node.close()
        return falls

    assert sum(run(story(each / 100)) for each in (1, 3, 10, 29)) > 6


def test_a_suspended_operation_asks_for_no_page_and_goes_on_when_it_is_resumed() -> None:
    async def story() -> None:
        keys = Keys(seconds=5)
        node = await MemoryNode(partitions=2, selector=keys).start()
        keys.keys = await dead_letters(node, 20)
        key = await create(node)
        await asyncio.sleep(1)
        await control(node, _I.SUSPEND, key)
        await asyncio.sleep(60)
        assert keys.cancelled == 2, "pages under way are given up"
        assert not [each for each in records(node) if each.value_type == EXECUTION]
        await control(node, _I.RESUME, key)
        assert (await end_of(node, key)).counts.completed == len(keys.keys)
        await node.close()

    run(story())


# --- live work first --------------------------------------------------------------------------


def steps_of(node: MemoryNode) -> list[int]:
    """How many items each step did."""
    return [
        len(record.value.completed)
        for record in records(node)
        if record.value_type == EXECUTION and record.kind is RecordKind.EVENT
    ]


def test_portions_grow_while_nobody_else_wants_anything() -> None:
    async def story() -> None:
        keys = Keys()
        keys.size = 10_000
        node = await MemoryNode(partitions=1, selector=keys).start()
        keys.keys = await dead_letters(node, 2_000)
        await asyncio.sleep(10)
        operation = BatchOperation(BatchOperationType.RETRY_TASK, b'{"type":"send"}')
        (reply,) = await node.node.runner.submit(1, [Command(BATCH, _I.CREATE, 0, operation)])
        keys.seconds = 5  # so that its creation is long ago
        await end_of(node, reply.key)
        assert max(steps_of(node)) == BATCH_EXECUTE_ITEMS_MAX
        await node.close()

    run(story())


def test_a_portion_waits_while_live_commands_do_but_not_for_ever() -> None:
    async def story() -> None:
        keys = Keys()
        node = await MemoryNode(partitions=1, selector=keys).start()
        keys.keys = await dead_letters(node, 40)
        runner, driver = node.node.runner, node.node.runtime.batches
        waiting = {"live": 1}
        load = runner.load
        runner.load = lambda: (load()[0], load()[1] + waiting["live"])  # type: ignore[method-assign]
        operation = BatchOperation(BatchOperationType.RETRY_TASK, b'{"type":"send"}')
        (reply,) = await runner.submit(1, [Command(BATCH, _I.CREATE, 0, operation)])
        while not driver._executing:  # noqa: ASYNC110 - nobody else tells
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.04)
        assert not steps_of(node), "live commands are waiting"
        await asyncio.sleep(0.02)
        assert len(steps_of(node)) == 1, "it has waited long enough"
        await asyncio.sleep(1)
        assert len(steps_of(node)) <= 1_000 / batch_driver.BATCH_GAP_WAIT_MS + 1
        waiting["live"] = 0
        assert (await end_of(node, reply.key)).counts.completed == len(keys.keys)
        await node.close()

    run(story())
