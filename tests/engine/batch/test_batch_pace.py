"""Which operation is next, and how fast it may be."""

from collections import Counter

import pytest
from batch_cluster import EXECUTION, BatchCluster, check_end
from batch_transcript import transcript

from holdfast.engine.batch.values import (
    BatchOperationExecutionIntent,
    BatchOperationIntent,
    Execute,
)
from holdfast.engine.kernel import Command
from holdfast.errors import Code
from holdfast.records import RecordKind

EXECUTE = BatchOperationExecutionIntent.EXECUTE
SUSPEND, RESUME = BatchOperationIntent.SUSPEND, BatchOperationIntent.RESUME


def done_by(cluster: BatchCluster, partition: int) -> list[tuple[int, int, int]]:
    """(time, operation, how many) of each step that did items."""
    return [
        (record.timestamp_ms, record.key, len(record.value.completed))
        for record in cluster.nodes[partition].records()
        if record.value_type == EXECUTION and record.kind is RecordKind.EVENT
    ]


def test_the_higher_priority_comes_first_and_then_the_older() -> None:
    cluster = BatchCluster(1)
    cluster.limit = lambda: 1
    dead = cluster.dead_letters(1, 12)
    cluster.is_driven = False
    keys = [
        cluster.create(1, cluster.select({1: dead[at : at + 4]}), priority=priority)
        for at, priority in ((0, -1), (4, 7), (8, -1))
    ]
    cluster.is_driven = True
    cluster.page_ms = lambda: 0
    cluster.run(5)
    order = [key for _, key, _ in done_by(cluster, 1)]
    assert order == [keys[1]] * 4 + [keys[0]] * 4 + [keys[2]] * 4
    check_end(cluster)


def test_a_priority_that_is_changed_counts_from_the_next_step_on() -> None:
    cluster = BatchCluster(1)
    cluster.limit = lambda: 1
    dead = cluster.dead_letters(1, 40)
    first = cluster.create(1, cluster.select({1: dead[:20]}), throttle=10)
    second = cluster.create(1, cluster.select({1: dead[20:]}), throttle=10, priority=-5)
    cluster.run(0.5)
    cluster.change(second, priority=5)
    cluster.change(first, throttle=0)
    cluster.change(second, throttle=0)
    cluster.run(5)
    order = [key for _, key, _ in done_by(cluster, 1)]
    assert order[-1] == first
    assert order[order.index(second, 12) :].count(first) >= 10
    check_end(cluster)


def test_a_suspended_operation_blocks_no_other() -> None:
    cluster = BatchCluster(2)
    dead = {each: cluster.dead_letters(each, 6) for each in cluster.nodes}
    urgent = cluster.create(1, cluster.select({1: dead[1][:3]}), priority=9)
    cluster.control(SUSPEND, urgent)
    other = cluster.create(2, cluster.select({1: dead[1][3:], 2: dead[2]}))
    cluster.run(5)
    assert cluster.end_of(other).counts.completed == 9
    assert cluster.end_of(urgent) is None
    cluster.control(RESUME, urgent)
    cluster.run(5)
    assert cluster.end_of(urgent).counts.completed == 3
    check_end(cluster)


def test_an_operation_whose_pages_fail_blocks_no_other() -> None:
    cluster = BatchCluster(1)
    dead = cluster.dead_letters(1, 2)
    cluster.pages.broken = {1: TimeoutError("slow")}
    cluster.create(1, cluster.select({1: dead[:1]}), priority=9)
    cluster.run(40)
    cluster.pages.broken = {}
    other = cluster.create(1, cluster.select({1: dead[1:]}))
    cluster.run(0)
    assert cluster.end_of(other).counts.completed == 1


@pytest.mark.parametrize(("throttle", "partitions"), [(1, 3), (7, 2), (20, 2), (300, 4)])
def test_a_throttle_is_never_exceeded_and_mostly_used(throttle: int, partitions: int) -> None:
    cluster = BatchCluster(partitions)
    share = throttle / partitions
    count = max(5, round(share * 5))
    items = {each: cluster.dead_letters(each, count) for each in cluster.nodes}
    start_ms = cluster.now_ms
    key = cluster.create(1, cluster.select(items), throttle=throttle)
    cluster.run(60)
    assert cluster.end_of(key).counts.completed == count * partitions
    in_second = Counter[int]()
    last_ms = 0
    for partition in cluster.nodes:
        for at_ms, _, done in done_by(cluster, partition):
            in_second[(at_ms - start_ms) // 1_000] += done
            last_ms = max(last_ms, at_ms)
    burst = partitions * max(1, round(share / 10))
    assert max(in_second.values()) <= throttle + burst
    assert (last_ms - start_ms) / 1_000 <= count / share + 1, "it was used"
    check_end(cluster)


def test_a_throttle_can_be_changed_while_it_runs() -> None:
    cluster = BatchCluster(2)
    items = {each: cluster.dead_letters(each, 500) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items), throttle=2)
    cluster.run(10)
    assert 18 <= sum(len(cluster.resolved(each)) for each in cluster.nodes) <= 24
    assert cluster.change(key, throttle=200).rejection is None
    cluster.run(1)
    assert 200 <= sum(len(cluster.resolved(each)) for each in cluster.nodes) <= 270
    cluster.change(key, throttle=0)
    cluster.run(0.1)
    assert cluster.end_of(key).counts.completed == 1_000
    assert transcript(cluster, 2)[-2].startswith("EXECUTED")
    check_end(cluster)


def test_another_priority_leaves_the_throttle_and_its_pauses_alone() -> None:
    """Changed ten times a second: as many items come through as without."""
    cluster = BatchCluster(2)
    items = {each: cluster.dead_letters(each, 500) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items), throttle=2)
    for priority in range(100):
        cluster.change(key, priority=priority)
        cluster.run(0.1)
    assert 18 <= sum(len(cluster.resolved(each)) for each in cluster.nodes) <= 24
    stored = cluster.nodes[2].view.batches.operations.get(key)
    assert (stored.operation.throttle, stored.operation.priority) == (2, 99)


@pytest.mark.parametrize(("throttle", "priority"), [(-1, None), (None, 2_000_000)])
def test_a_pace_that_makes_no_sense_is_refused(throttle: int | None, priority: int | None) -> None:
    cluster = BatchCluster(1)
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}), throttle=1)
    cluster.is_driven = False
    rejection = cluster.change(key, throttle, priority).rejection
    assert rejection is not None and rejection.code is Code.INVALID_ARGUMENT


def test_items_are_refused_that_nobody_may_do_now() -> None:
    cluster = BatchCluster(1)
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 30)}), throttle=10)
    ask = Command(EXECUTION, EXECUTE, key, Execute(1))

    def code() -> Code:
        rejection = cluster.ask(1, ask).rejection
        assert rejection is not None
        return rejection.code

    cluster.is_driven = False
    assert code() is Code.INVALID_STATE, "they are not known yet"
    cluster.is_driven = True
    cluster.run(0.5)
    cluster.is_driven = False
    assert code() is Code.INVALID_STATE, "the throttle lets none through"
    cluster.control(SUSPEND, key)
    cluster.run(10)
    assert code() is Code.INVALID_STATE, "it is suspended"
    assert cluster.ask(1, Command(EXECUTION, EXECUTE, 999, Execute(1))).rejection
    before = len(cluster.resolved(1))
    assert 0 < before < 30


def test_a_large_step_ends_with_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.batch.executing.BATCH_EXECUTE_RECORDS_MAX", 5)
    cluster = BatchCluster(1)
    cluster.create(1, cluster.select({1: cluster.dead_letters(1, 10)}))
    cluster.run(5)
    assert [count for _, _, count in done_by(cluster, 1)] == [3, 3, 3, 1]
    check_end(cluster)
