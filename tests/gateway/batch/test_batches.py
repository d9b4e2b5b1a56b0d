"""Batch operations as people ask for them: exact counts while they run and after, and steering."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_tables import FakeTables

from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import BatchOperation, BatchOperationState, BatchOperationType
from holdfast.errors import InvalidArgument, InvalidState, NotFound, Unavailable
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchFailures,
    BatchItemFilter,
    BatchItemQuery,
    BatchOperationFilter,
    BatchOperationQuery,
    BatchOperationView,
    BatchPageQuery,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.batch.tables import PastOperation, is_of_items
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobFailure,
    NewTask,
)
from holdfast.records import partition_of
from holdfast.testing import MemoryNode, SimulatedDisk, run

_S, _T = BatchOperationState, BatchOperationType
WHERE = msgspec.Raw(b'{"type":"send"}')
UNKNOWN = str((1 << 51) + 999_999)


def new(**rest: Any) -> NewBatchOperation:
    return NewBatchOperation(**({"type": _T.RETRY_TASK, "filter": WHERE} | rest))


async def with_dead_letters(count: int, **options: Any) -> tuple[MemoryNode, FakeTables]:
    tables = FakeTables()
    node = await MemoryNode(partitions=3, open_tables=tables.open, **options).start()
    while len(tables.keys) < count:
        await asyncio.gather(
            *(node.gateway.tasks.submit([NewTask("send", retries=0)]) for _ in range(9))
        )
        jobs = await node.gateway.jobs.activate(ActivationRequest(["send"], "worker", 100, 60_000))
        await node.gateway.jobs.fail([JobFailure(job.job_key, job.lease, "broken") for job in jobs])
        tables.keys += [int(job.job_key) for job in jobs]
    return node, tables


async def until(node: MemoryNode, key: str, *states: BatchOperationState) -> BatchOperationView:
    for _ in range(4_000):
        view = await node.gateway.batches.get(key)
        if view.state in states:
            return view
        await asyncio.sleep(0.05)
    raise AssertionError(f"it stays {view}")


def share(tables: FakeTables, partition: int) -> int:
    return sum(partition_of(key) == partition for key in tables.keys)


def done(view: BatchOperationView) -> int:
    return sum(
        (
            view.operations_completed_count, view.operations_failed_count,
            view.operations_skipped_count, view.operations_canceled_count,
        )
    )  # fmt: skip


def test_an_operation_runs_to_its_end_and_is_known_after_it() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(27)
        receipt = await node.gateway.batches.create(new(priority=3))
        key = receipt.batch_operation_key
        assert key is not None and receipt.preview is None
        end = await until(node, key, _S.COMPLETED)
        assert (end.operations_total_count, end.operations_completed_count) == (27, 27)
        assert end.start_date is not None and end.end_date is not None
        shares = [each.operations_completed_count for each in end.partitions]
        assert shares == [share(tables, each) for each in (1, 2, 3)]
        assert (end.priority, bytes(end.filter), end.is_selected) == (3, b'{"type":"send"}', True)
        assert not (await node.gateway.incidents.page(IncidentQuery())).items
        assert tables.dropped == [f"batch-{key}"], "its selection is not kept"
        positions = tables.asked[0].selection.positions
        assert set(positions) == {1, 2, 3} and min(positions.values()) > 2, "as of its creation"
        await node.close()

    run(story())


def test_counts_are_exact_at_every_moment() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(60)
        receipt = await node.gateway.batches.create(new(throttle=30))
        key = receipt.batch_operation_key or ""
        last, rates, ends = 0, 0, 0
        while True:
            view = await node.gateway.batches.get(key)
            assert done(view) >= last, "what was counted stays counted"
            if view.partitions:
                assert sum(each.operations_total_count for each in view.partitions) == (
                    view.operations_total_count
                )
            last = done(view)
            left = len((await node.gateway.incidents.page(IncidentQuery())).items)
            now = await node.gateway.batches.get(key)
            assert done(view) <= len(tables.keys) - left <= done(now)
            rates += view.items_per_second is not None and 10 < view.items_per_second < 60
            ends += view.estimated_end is not None
            if view.state is _S.COMPLETED:
                break
            await asyncio.sleep(0.01)
        assert last == len(tables.keys)
        assert rates > 20 and ends > 20
        await node.close()

    run(story())


def test_a_page_that_is_refused_is_asked_for_again_with_pauses() -> None:
    """Whatever else happens on the partition in between; and in the end the partition fails."""

    async def story() -> None:
        node, tables = await with_dead_letters(9)
        tables.page = broken_page(tables)  # type: ignore[method-assign]
        key = (await node.gateway.batches.create(new())).batch_operation_key or ""
        for _ in range(100):
            await node.gateway.tasks.submit([NewTask("send")] * 3)
            node.node.runtime.batches.look(1)
            await asyncio.sleep(0.1)
        assert 3 * 2 <= len(tables.asked) <= 3 * 6, "three partitions, after 0, 1, 3 and 7 s"
        await asyncio.sleep(300)
        end = await until(node, key, _S.FAILED)
        assert len(end.errors) == 3
        await node.close()

    run(story())


def broken_page(tables: FakeTables) -> Any:
    async def page(
        key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        tables.asked.append(operation)
        return ItemPage((-1,), (), None)  # no key at all: the command that brings it throws

    return page


def test_a_dry_run_counts_and_begins_nothing() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(9)
        receipt = await node.gateway.batches.create(new(dry_run=True))
        assert receipt.batch_operation_key is None and receipt.preview is not None
        assert receipt.preview.items == 9
        counts = {each.partition_id: each.items for each in receipt.preview.partitions}
        assert counts == {each: share(tables, each) for each in counts} and len(counts) > 1
        assert receipt.preview.sample == [str(key) for key in tables.keys[:2]]
        assert (await node.gateway.batches.page(BatchOperationQuery())).items == []
        assert len((await node.gateway.incidents.page(IncidentQuery())).items) == 9
        await node.close()

    run(story())


def test_one_is_suspended_changed_resumed_and_given_up() -> None:
    async def story() -> None:
        node, _ = await with_dead_letters(60)
        gateway = node.gateway
        key = (await gateway.batches.create(new(throttle=20))).batch_operation_key or ""
        await asyncio.sleep(0.5)
        await gateway.batches.suspend(key)
        with pytest.raises(InvalidState):
            await gateway.batches.suspend(key)
        await asyncio.sleep(0.2)
        before = await gateway.batches.get(key)
        assert before.state is _S.SUSPENDED and 0 < done(before) < 60
        await asyncio.sleep(5)
        assert done(await gateway.batches.get(key)) == done(before)
        await gateway.batches.change(key, BatchChange(40, 7))
        await gateway.batches.resume(key)
        await asyncio.sleep(0.3)
        after = await gateway.batches.get(key)
        assert (after.state, after.throttle, after.priority) == (_S.ACTIVE, 40, 7)
        with pytest.raises(InvalidArgument):
            await gateway.batches.change(key, BatchChange(throttle=-1))
        await gateway.batches.cancel(key)
        with pytest.raises(NotFound):
            await gateway.batches.cancel(key)
        await asyncio.sleep(1)
        end = await gateway.batches.get(key)
        assert end.state is _S.CANCELED and end.end_date is not None
        assert end.operations_completed_count + end.operations_canceled_count == 63
        assert end.operations_canceled_count > 0
        await node.close()

    run(story())


def test_what_is_wrong_is_refused_before_anything_begins() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(9)
        gateway = node.gateway
        for bad, field in (
            (new(filter=msgspec.Raw(b'{"nonsense":1}')), "nonsense"),
            (new(throttle=-1), "throttle"),
            (new(priority=10_000_000), "priority"),
            (new(retries=5_000), "retries"),
            (new(filter=msgspec.Raw(b"{}")), None),
            (new(filter=msgspec.Raw(b"[]")), None),
            (new(type=_T.MIGRATE_PROCESS_INSTANCE), None),
        ):
            with pytest.raises(InvalidArgument) as raised:
                await gateway.batches.create(bad)
            assert raised.value.fields.get("field") == field
        assert (await gateway.batches.page(BatchOperationQuery())).items == []
        for question in (
            gateway.batches.get, gateway.batches.suspend,
            gateway.batches.resume, gateway.batches.cancel,
        ):  # fmt: skip
            with pytest.raises(NotFound):
                await question(UNKNOWN)
            with pytest.raises(InvalidArgument, match="the key of a batch operation"):
                await question("nine")
        with pytest.raises(InvalidArgument, match="the key of an item"):
            await gateway.batches.items(BatchItemQuery(BatchItemFilter(item_key="x")))
        with pytest.raises(InvalidArgument, match="limit"):
            await gateway.batches.page(BatchOperationQuery(page=BatchPageQuery(0)))
        assert len(tables.kept) == 1
        await node.close()

    run(story())


def test_without_tables_none_is_created_and_it_is_said_why() -> None:
    async def story() -> None:
        tables = FakeTables()
        tables.is_there = False
        node = await MemoryNode(partitions=2, open_tables=tables.open).start()
        with pytest.raises(Unavailable, match="Expected tables"):
            await node.gateway.batches.create(new())
        with pytest.raises(NotFound, match="never given out"):
            await node.gateway.batches.get(UNKNOWN)
        assert (await node.gateway.batches.page(BatchOperationQuery())).items == []
        await node.close()

    run(story())


def test_running_ones_are_listed_first_and_ended_ones_as_they_ended() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(30)
        gateway = node.gateway
        first = (await gateway.batches.create(new())).batch_operation_key or ""
        end = await until(node, first, _S.COMPLETED)
        # The tables are behind: they think that it has not begun.
        old = msgspec.structs.replace(end, state=_S.CREATED, end_date=None)
        tables.past_operations[int(first)] = PastOperation(tables.asked[0], old)
        second = (await gateway.batches.create(new(throttle=1))).batch_operation_key
        page = await gateway.batches.page(BatchOperationQuery())
        assert [each.batch_operation_key for each in page.items] == [second, first]
        assert page.items[1] == end and page.page.total_items == 2
        running = BatchOperationQuery(BatchOperationFilter(_S.SUSPENDED))
        assert (await gateway.batches.page(running)).items == []
        await node.close()

    run(story())


def test_a_node_that_comes_back_goes_on_and_drops_what_nobody_needs() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(30, disk=SimulatedDisk())
        first = (await node.gateway.batches.create(new())).batch_operation_key or ""
        await until(node, first, _S.COMPLETED)
        key = (await node.gateway.batches.create(new(throttle=3))).batch_operation_key
        await asyncio.sleep(1)
        await node.crash()
        await node.restart()
        await asyncio.sleep(0.5)
        page = await node.gateway.batches.page(BatchOperationQuery())
        assert [each.batch_operation_key for each in page.items] == [key]
        assert tables.kept == [[], [f"batch-{key}"]], "that of the first is not kept"
        await node.gateway.batches.change(key or "", BatchChange(throttle=0))
        end = await until(node, key or "", _S.PARTIALLY_COMPLETED)
        assert end.operations_total_count == end.operations_failed_count == len(tables.keys), (
            "the first has done them all"
        )
        with pytest.raises(NotFound):
            await node.gateway.batches.get(first)
        await node.close()

    run(story())


def test_an_operation_that_existed_is_never_unknown() -> None:
    """Neither while the tables lag nor without them: that is a matter of waiting."""

    async def story() -> None:
        node, tables = await with_dead_letters(9)
        gateway = node.gateway
        key = (await gateway.batches.create(new())).batch_operation_key or ""
        end = await until(node, key, _S.COMPLETED)
        gateway.batches._ended.clear()  # as after a restart
        tables.is_behind = True
        for known, is_there in ((None, True), (None, False), (_S.ACTIVE, True)):
            if known is not None:
                running = msgspec.structs.replace(end, state=known, end_date=None)
                tables.past_operations[int(key)] = PastOperation(tables.asked[0], running)
            tables.is_there = is_there
            gateway.batches._tables = None
            with pytest.raises(Unavailable, match="Ask again"):
                await gateway.batches.get(key)
            with pytest.raises(Unavailable, match="Ask again"):
                await gateway.batches.retry(key, BatchRetry())
            with pytest.raises(NotFound, match="never given out"):
                await gateway.batches.get(UNKNOWN)
        tables.past_operations[int(key)] = PastOperation(tables.asked[0], end)
        assert await gateway.batches.get(key) == end, "its end is known, whatever else is not"
        tables.is_behind = False
        tables.past_operations.clear()
        with pytest.raises(NotFound, match="the tables have none"):
            await gateway.batches.get(key)
        await node.close()

    run(story())


def test_what_failed_is_tried_again_by_a_new_operation() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(27)
        gateway = node.gateway
        tables.failing = {2}
        first = (await gateway.batches.create(new(retries=4))).batch_operation_key or ""
        end = await until(node, first, _S.PARTIALLY_COMPLETED)
        assert [(each.partition_id, each.type) for each in end.errors] == [(2, "QUERY_FAILED")]
        with pytest.raises(InvalidState, match="has no failed items"):
            await gateway.batches.retry(first, BatchRetry())
        tables.failing = set()
        again = BatchRetry(BatchFailures.PARTITIONS, priority=2)
        receipt = await gateway.batches.retry(first, again)
        second = await until(node, receipt.batch_operation_key or "", _S.COMPLETED)
        assert (second.repeats, second.priority) == (first, 2)
        assert tables.asked[-1].retries == 4, "as in the operation before"
        assert [each.partition_id for each in second.partitions] == [2]
        assert second.operations_completed_count == share(tables, 2)
        assert bytes(second.filter) == bytes(end.filter)
        with pytest.raises(NotFound):
            await gateway.batches.retry(UNKNOWN, BatchRetry())

        # As the tables tell of one whose items failed.
        failed = msgspec.structs.replace(end, operations_failed_count=5, errors=[])
        known = PastOperation(tables.asked[0], failed)
        gateway.batches._ended[int(first)] = known
        receipt = await gateway.batches.retry(first, BatchRetry(retries=1, throttle=5))
        with pytest.raises(InvalidState, match="has not ended"):
            await gateway.batches.retry(receipt.batch_operation_key or "", BatchRetry())
        view = await gateway.batches.get(receipt.batch_operation_key or "")
        assert bytes(view.filter) == b'{"batchOperationKey":"%s","state":"FAILED"}' % first.encode()
        await asyncio.sleep(1)
        assert is_of_items(tables.asked[-1]) and tables.asked[-1].repeats == int(first)
        assert tables.asked[-1].retries == 1
        await node.close()

    run(story())


def test_what_a_partition_has_reported_counts_while_the_report_is_on_its_way() -> None:
    async def story() -> None:
        node, tables = await with_dead_letters(27)
        post = node.node.runtime.post
        post._say = lambda *_: None  # type: ignore[method-assign]
        key = (await node.gateway.batches.create(new())).batch_operation_key or ""
        await asyncio.sleep(2)
        view = await node.gateway.batches.get(key)
        assert view.state is _S.ACTIVE, "the leader has not heard of the others"
        assert view.operations_completed_count == len(tables.keys) and view.is_selected
        assert {each.state for each in view.partitions} == {_S.COMPLETED}
        await node.close()

    run(story())
