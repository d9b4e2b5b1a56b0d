"""A partition ends at any step of a batch operation, on either side: every item is done once."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from batch_checks import check_operations
from batch_cluster import BATCH, BatchCluster, check_end
from distribution_cluster import Fall, Node

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
    OperationRef,
)
from holdfast.engine.kernel import Command

PARTITIONS, ITEMS = 2, 5
FALLS = [
    Fall(is_durable, is_written, has_store, down_ms)
    for is_durable, (is_written, has_store), down_ms in product(
        (True, False), ((True, True), (False, True), (False, False)), (0, 15_000)
    )
]
Falls = Callable[[Node], Fall | None]
_I = BatchOperationIntent
SUSPEND_RESUME, CANCEL = (_I.SUSPEND, _I.RESUME), (_I.CANCEL,)


def tell(falls: Falls, decisions: tuple[BatchOperationIntent, ...] = ()) -> BatchCluster:
    """Five items on each of two partitions, in pages of two, three at a time; then decisions.

    The client asks again until it is heard.
    """
    cluster = BatchCluster(PARTITIONS)
    cluster.latency_ms = lambda sender, to: 5
    cluster.pages.size, cluster.limit = 2, lambda: 3
    cluster.page_ms = cluster.execute_ms = lambda: 3
    items = {each: cluster.dead_letters(each, ITEMS) for each in cluster.nodes}
    filter_ = cluster.select(items)
    for node in cluster.nodes.values():
        node.steps = 0
    cluster.falls = falls
    node = cluster.nodes[1]

    def events() -> list[int]:
        found = [each for each in node.records() if each.value_type == BATCH and each.kind == 1]
        return [each.intent for each in found]

    def create() -> None:
        if node.is_down or _I.CREATED not in events():
            operation = BatchOperation(BatchOperationType.RETRY_TASK, filter_)
            cluster.submit(1, Command(BATCH, _I.CREATE, 0, operation))
            cluster.later(1_000, create)

    def decide(intent: BatchOperationIntent) -> None:
        if node.is_down or intent + 1 not in events():  # its event is the next number
            keys = [key for key, _ in node.view.batches.operations.scan()]
            if keys and not node.is_down:
                cluster.submit(1, Command(BATCH, intent, keys[0], OperationRef()))
            if keys or node.is_down or _I.CREATED not in events():
                cluster.later(1_000, partial(decide, intent))

    cluster.later(0, create)
    for number, intent in enumerate(decisions):
        cluster.later(22 + 40 * number, partial(decide, intent))
    cluster.run(600)
    for key, stored in list(node.view.batches.operations.scan()):
        if stored.state is BatchOperationState.SUSPENDED:  # it was suspended after it was resumed
            cluster.control(_I.RESUME, key)
    cluster.run(60)
    (end,) = check_operations(cluster, {filter_: items}).values()
    if decisions == CANCEL:
        assert end.state in (BatchOperationState.CANCELED, BatchOperationState.COMPLETED)
    else:
        assert end.state is BatchOperationState.COMPLETED
        assert end.counts.completed == PARTITIONS * ITEMS
    check_end(cluster)
    return cluster


def _steps(decisions: tuple[BatchOperationIntent, ...] = ()) -> list[tuple[int, int]]:
    """Every (partition, step) of a calm day."""
    nodes = tell(lambda node: None, decisions).nodes
    return [(number, step) for number, node in nodes.items() for step in range(node.steps)]


def falls_at(moment: tuple[int, int], fall: Fall) -> Falls:
    return lambda node: fall if (node.number, node.steps) == moment else None


STEPS = _steps()


def test_a_calm_day_has_steps_on_either_side() -> None:
    assert {number for number, _ in STEPS} == {1, 2}
    assert len(STEPS) >= 16, "pages, items and reports are steps of their own"


@pytest.mark.parametrize("moment", STEPS, ids=str)
def test_a_partition_that_ends_at_a_step_and_begins_again_changes_nothing(
    moment: tuple[int, int],
) -> None:
    for fall in FALLS:
        cluster = tell(falls_at(moment, fall))
        assert sum(len(node.downtimes) for node in cluster.nodes.values()) == 1


@pytest.mark.parametrize("decisions", [SUSPEND_RESUME, CANCEL], ids=["suspend", "cancel"])
@pytest.mark.parametrize("is_durable", [True, False])
def test_nor_does_one_that_ends_while_people_decide(
    decisions: tuple[BatchOperationIntent, ...], is_durable: bool
) -> None:
    for moment in _steps(decisions):
        tell(falls_at(moment, Fall(is_durable, down_ms=15_000)), decisions)


@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("number", range(1, PARTITIONS + 1))
def test_a_partition_that_ends_at_its_first_ten_steps_gets_on_in_the_end(
    number: int, is_durable: bool
) -> None:
    def falls(node: Node) -> Fall | None:
        is_falling = node.number == number and node.steps < 10
        return Fall(is_durable, is_written=node.steps % 2 == 0) if is_falling else None

    tell(falls)
