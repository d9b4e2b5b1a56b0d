"""What partitions write for a batch operation, line by line."""

from itertools import pairwise
from unittest.mock import patch

from batch_cluster import BATCH, BatchCluster, check_end
from batch_transcript import transcript

from holdfast.engine.batch.values import (
    BatchOperationIntent,
    BatchOperationState,
    OperationRef,
    PartitionErrorType,
)
from holdfast.engine.kernel import Command
from holdfast.errors import Code, Forbidden, Unavailable
from holdfast.records import ValueType, partition_of

SUSPEND, RESUME = BatchOperationIntent.SUSPEND, BatchOperationIntent.RESUME
CANCEL = BatchOperationIntent.CANCEL


def small_pages(cluster: BatchCluster, size: int) -> None:
    """Pages with more items are too large for the selector."""
    cluster.pages.items_max = size


# --- to the end -------------------------------------------------------------------------------


def test_an_operation_on_one_partition() -> None:
    cluster = BatchCluster(1)
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 5)}))
    cluster.limit = lambda: 3
    cluster.run(5)
    assert transcript(cluster, 1) == [
        "> CREATE RETRY_TASK",
        "CREATED RETRY_TASK",
        "> START",
        "STARTED",
        "> CHUNK CREATE 0: 5 at ''",
        "CHUNK CREATED 0: 5 at ''",
        "> CONTINUE_INITIALIZATION at '' the last by 10000",
        "INITIALIZATION_CONTINUED at '' the last by 10000",
        "> EXECUTE 3",
        "EXECUTED 3 completed",
        "> EXECUTE 3",
        "EXECUTED 2 completed",
        "PARTITION_COMPLETED of 1: 5=5+0+0+0",
        "COMPLETED COMPLETED 5=5+0+0+0",
    ]
    assert cluster.end_of(key).state is BatchOperationState.COMPLETED
    check_end(cluster)


def test_what_is_done_with_an_item_stands_between_execute_and_executed() -> None:
    cluster = BatchCluster(1)
    cluster.create(1, cluster.select({1: cluster.dead_letters(1, 2)}))
    cluster.run(5)
    lines = transcript(cluster, 1, ValueType.INCIDENT, ValueType.JOB)
    at = lines.index("> EXECUTE")
    assert lines[at : at + 6] == [
        "> EXECUTE",
        "INCIDENT RESOLVED",
        "JOB RETRIED",
        "INCIDENT RESOLVED",
        "JOB RETRIED",
        "EXECUTED 2 completed",
    ]
    records = cluster.nodes[1].records()
    (execute,) = [
        each.position
        for each in records
        if each.value_type == ValueType.BATCH_OPERATION_EXECUTION and each.kind == 0
    ]
    assert sum(each.source_position == execute for each in records) == 6 + 1, "and the two ends"


def test_followers_report_to_the_leader() -> None:
    cluster = BatchCluster(3)
    items = {each: cluster.dead_letters(each, each) for each in cluster.nodes}
    key = cluster.create(2, cluster.select(items))
    cluster.run(5)
    assert transcript(cluster, 3) == [
        "> CREATE RETRY_TASK",
        "CREATED RETRY_TASK",
        "> START",
        "STARTED",
        "> CHUNK CREATE 0: 3 at ''",
        "CHUNK CREATED 0: 3 at ''",
        "> CONTINUE_INITIALIZATION at '' the last by 10000",
        "INITIALIZATION_CONTINUED at '' the last by 10000",
        "> EXECUTE",
        "EXECUTED 3 completed",
        "PARTITION_COMPLETED of 3: 3=3+0+0+0",
    ]
    assert transcript(cluster, 2)[-6:] == [
        "PARTITION_COMPLETED of 2: 2=2+0+0+0",
        "> COMPLETE_PARTITION of 1: 1=1+0+0+0",
        "PARTITION_COMPLETED of 1: 1=1+0+0+0",
        "> COMPLETE_PARTITION of 3: 3=3+0+0+0",
        "PARTITION_COMPLETED of 3: 3=3+0+0+0",
        "COMPLETED COMPLETED 6=6+0+0+0",
    ]
    end = cluster.end_of(key)
    assert [report.counts.completed for report in end.reports] == [1, 2, 3]
    check_end(cluster)


def test_no_match_ends_completed_with_zero_counts() -> None:
    cluster = BatchCluster(2)
    cluster.create(1, cluster.select({}))
    cluster.run(5)
    assert transcript(cluster, 1)[-2:] == [
        "PARTITION_COMPLETED of 2: 0=0+0+0+0",
        "COMPLETED COMPLETED 0=0+0+0+0",
    ]
    check_end(cluster)


def test_only_the_partitions_that_are_named_take_part() -> None:
    cluster = BatchCluster(3)
    items = {each: cluster.dead_letters(each, 2) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items), partitions=(3,))
    cluster.run(5)
    assert transcript(cluster, 1) == [
        "> CREATE RETRY_TASK",
        "CREATED RETRY_TASK",
        "> COMPLETE_PARTITION of 3: 2=2+0+0+0",
        "PARTITION_COMPLETED of 3: 2=2+0+0+0",
        "COMPLETED COMPLETED 2=2+0+0+0",
    ]
    assert transcript(cluster, 2) == []
    assert [report.partition for report in cluster.end_of(key).reports] == [3]
    check_end(cluster)


def test_items_that_fail_or_are_gone_do_so_alone() -> None:
    cluster = BatchCluster(1)
    dead, calm = cluster.dead_letters(1, 3), cluster.waiting_task(1)
    key = cluster.create(1, cluster.select({1: [dead[0], calm, 99_999, *dead[1:]]}))
    cluster.run(5)
    assert "EXECUTED 3 completed 1 failed 1 skipped" in transcript(cluster, 1)
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.PARTIALLY_COMPLETED
    (executed,) = [r.value for r in cluster.nodes[1].records() if hasattr(r.value, "skipped")]
    assert executed.skipped == (99_999,)
    (failure,) = executed.failed
    assert (failure.key, failure.code) == (calm, Code.INVALID_STATE)
    assert failure.message == f"Expected task {calm} to wait for a person, but it does not"
    assert cluster.resolved(1) == dead
    check_end(cluster)


def test_an_item_that_throws_fails_alone_and_leaves_nothing() -> None:
    cluster = BatchCluster(1)
    dead = cluster.dead_letters(1, 3)
    queue = cluster.nodes[1].view.jobs.waiting
    applier = queue.add

    def add(type_: str, priority: int, key: int) -> None:
        applier(type_, priority, key)
        assert key != dead[1], "a bug"

    with patch.object(queue, "add", add):
        cluster.create(1, cluster.select({1: dead}))
        cluster.run(5)
    (executed,) = [r.value for r in cluster.nodes[1].records() if hasattr(r.value, "skipped")]
    assert executed.completed == (dead[0], dead[2])
    (failure,) = executed.failed
    assert (failure.key, failure.code) == (dead[1], Code.INTERNAL)
    assert failure.message.startswith("AssertionError: a bug")
    assert cluster.resolved(1) == [dead[0], dead[2]]
    view = cluster.nodes[1].view
    assert view.incidents.open.get(view.jobs.jobs.get(dead[1]).incident_key) is not None
    check_end(cluster)


# --- selecting --------------------------------------------------------------------------------


def test_a_page_that_is_too_large_is_halved_and_its_size_stays_on_the_log() -> None:
    cluster = BatchCluster(1)
    small_pages(cluster, 3)
    cluster.create(1, cluster.select({1: cluster.dead_letters(1, 5)}))
    cluster.run(5)
    lines = transcript(cluster, 1)
    pages = [line for line in lines if line.startswith("INITIALIZATION_CONTINUED")]
    assert pages[0] == "INITIALIZATION_CONTINUED at '' then '' by 5000"
    assert pages[-4:] == [
        "INITIALIZATION_CONTINUED at '' then '' by 2",
        "INITIALIZATION_CONTINUED at '' then '2' by 2",
        "INITIALIZATION_CONTINUED at '2' then '4' by 2",
        "INITIALIZATION_CONTINUED at '4' the last by 2",
    ]
    assert [line for line in lines if line.startswith("CHUNK CREATED")] == [
        "CHUNK CREATED 0: 2 at ''",
        "CHUNK CREATED 1: 2 at '2'",
        "CHUNK CREATED 2: 1 at '4'",
    ]
    assert lines[-1] == "COMPLETED COMPLETED 5=5+0+0+0"
    check_end(cluster)


def test_a_page_of_one_that_is_too_large_fails_the_partition() -> None:
    cluster = BatchCluster(2)
    small_pages(cluster, 0)
    key = cluster.create(1, cluster.select({2: cluster.dead_letters(2, 1)}))
    cluster.run(5)
    assert transcript(cluster, 2)[-3:] == [
        "> FAIL RESULT_BUFFER_SIZE_EXCEEDED",
        "FAILED RESULT_BUFFER_SIZE_EXCEEDED for ever",
        "PARTITION_FAILED of 2: 0=0+0+0+0 RESULT_BUFFER_SIZE_EXCEEDED",
    ]
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.PARTIALLY_COMPLETED
    assert end.reports[1].error.type is PartitionErrorType.RESULT_BUFFER_SIZE_EXCEEDED
    check_end(cluster)


def test_a_page_that_cannot_be_had_is_tried_again_after_doubling_pauses() -> None:
    cluster = BatchCluster(1)
    cluster.pages.broken = {1: Unavailable("no tables")}
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}))
    cluster.run(600)
    times = [
        record.timestamp_ms
        for record in cluster.nodes[1].records()
        if (record.value_type, record.intent)
        == (ValueType.BATCH_OPERATION, BatchOperationIntent.FAILED)
    ]
    pauses = [round((b - a) / 1_000) for a, b in pairwise(times)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.FAILED
    assert end.reports[0].error.type is PartitionErrorType.QUERY_FAILED
    assert end.reports[0].error.message == "no tables"
    check_end(cluster)


def test_attempts_are_counted_anew_after_a_page_that_came() -> None:
    cluster = BatchCluster(1)
    small_pages(cluster, 2)
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 9)}))
    cluster.pages.errors = [Unavailable("now and then") for _ in range(8)]
    cluster.run(300)
    assert cluster.end_of(key).state is BatchOperationState.COMPLETED
    check_end(cluster)


def test_what_is_forbidden_fails_at_once_and_the_others_go_on() -> None:
    cluster = BatchCluster(3)
    cluster.pages.broken = {3: Forbidden("not yours")}
    items = {each: cluster.dead_letters(each, 2) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items))
    cluster.run(5)
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.PARTIALLY_COMPLETED
    assert (end.counts.total, end.counts.completed) == (4, 4)
    lines = transcript(cluster, 1)
    at = lines.index("> FAIL_PARTITION of 3: 0=0+0+0+0 QUERY_FAILED")
    assert lines[at + 1] == "PARTITION_FAILED of 3: 0=0+0+0+0 QUERY_FAILED"
    assert lines[-1] == "COMPLETED PARTIALLY_COMPLETED 4=4+0+0+0"
    check_end(cluster)


def test_items_of_a_partition_that_fails_later_are_counted_as_canceled() -> None:
    cluster = BatchCluster(1)
    small_pages(cluster, 2)
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 9)}))
    cluster.page_ms = lambda: 100
    cluster.run(1.55)
    cluster.pages.broken = {1: ValueError("a bug")}
    cluster.run(600)
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.FAILED
    assert end.counts.canceled == end.counts.total > 0
    assert end.reports[0].error.type is PartitionErrorType.UNKNOWN
    assert end.reports[0].error.message == "ValueError: a bug"
    assert cluster.resolved(1) == []
    check_end(cluster)


def test_a_page_that_comes_twice_is_taken_once() -> None:
    cluster = BatchCluster(1)
    cluster.pages.size, cluster.page_doubling = 2, 1.0
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 3)}))
    cluster.run(5)
    lines = transcript(cluster, 1)
    assert lines.count("! CHUNK CREATE ALREADY_EXISTS") == 1
    assert lines.count("! CHUNK CREATE NOT_FOUND") == 1, "of the last, after which none comes"
    assert cluster.end_of(key).counts.completed == 3
    check_end(cluster)


# --- people decide ----------------------------------------------------------------------------


def test_nothing_is_done_while_an_operation_is_suspended() -> None:
    cluster = BatchCluster(2)
    cluster.limit = lambda: 2
    items = {each: cluster.dead_letters(each, 6) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items), throttle=20)
    cluster.run(0.3)
    assert cluster.control(SUSPEND, key).rejection is None
    cluster.run(0)
    before = [cluster.resolved(each) for each in cluster.nodes]
    assert all(0 < len(done) < 6 for done in before)
    cluster.run(60)
    assert [cluster.resolved(each) for each in cluster.nodes] == before
    rejection = cluster.control(SUSPEND, key).rejection
    assert rejection is not None and rejection.code is Code.INVALID_STATE
    assert rejection.reason == (
        f"Expected operation {key} to be ACTIVE or CREATED, but it is SUSPENDED"
    )
    assert cluster.control(RESUME, key).rejection is None
    rejection = cluster.control(RESUME, key).rejection
    assert rejection is not None and rejection.code is Code.INVALID_STATE
    cluster.run(60)
    assert cluster.end_of(key).counts.completed == 12
    check_end(cluster)


def test_an_operation_that_is_suspended_before_it_starts_starts_when_it_is_resumed() -> None:
    cluster = BatchCluster(2)
    cluster.is_driven = False
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}))
    cluster.control(SUSPEND, key)
    cluster.is_driven = True
    cluster.run(60)
    assert transcript(cluster, 1)[-1] == "SUSPENDED"
    cluster.control(RESUME, key)
    cluster.run(60)
    lines = transcript(cluster, 1)
    assert lines[lines.index("RESUMED") + 1 : lines.index("RESUMED") + 3] == ["> START", "STARTED"]
    assert cluster.end_of(key).counts.completed == 1
    check_end(cluster)


def test_a_page_that_comes_while_an_operation_is_suspended_is_asked_for_again() -> None:
    cluster = BatchCluster(1)
    cluster.page_ms = lambda: 1_000
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 3)}))
    cluster.run(0.5)
    cluster.control(SUSPEND, key)
    cluster.run(10)
    lines = transcript(cluster, 1)
    assert lines[-4:] == [
        "> CHUNK CREATE 0: 3 at ''",
        "! CHUNK CREATE INVALID_STATE",
        "> CONTINUE_INITIALIZATION at '' the last by 10000",
        "! CONTINUE_INITIALIZATION INVALID_STATE",
    ]
    cluster.control(RESUME, key)
    cluster.run(10)
    assert cluster.end_of(key).counts.completed == 3
    check_end(cluster)


def test_what_is_left_when_an_operation_is_canceled_is_counted_and_not_done() -> None:
    cluster = BatchCluster(2)
    cluster.limit = lambda: 2
    items = {each: cluster.dead_letters(each, 6) for each in cluster.nodes}
    key = cluster.create(1, cluster.select(items), throttle=20)
    cluster.run(0.3)
    assert cluster.control(CANCEL, key).rejection is None
    rejection = cluster.control(CANCEL, key).rejection
    assert rejection is not None and rejection.code is Code.NOT_FOUND
    cluster.run(5)
    lines = transcript(cluster, 2)
    at = lines.index("CANCELED")
    assert lines[at + 1] == "> EXECUTE 2"
    assert lines[at + 2].endswith(" canceled") and "completed" not in lines[at + 2]
    assert lines[at + 3].startswith("PARTITION_COMPLETED of 2: 6=")
    end = cluster.end_of(key)
    assert end.state is BatchOperationState.CANCELED
    assert end.counts.completed == sum(len(cluster.resolved(each)) for each in cluster.nodes)
    assert end.counts.total == 12 == end.counts.completed + end.counts.canceled
    for intent in (CANCEL, SUSPEND, RESUME):
        rejection = cluster.control(intent, key).rejection
        assert rejection is not None and rejection.code is Code.NOT_FOUND
    check_end(cluster)


def test_an_operation_can_be_canceled_while_it_is_suspended_and_before_it_starts() -> None:
    cluster = BatchCluster(3)
    cluster.is_driven = False
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}))
    cluster.control(SUSPEND, key)
    cluster.control(CANCEL, key)
    cluster.run(60)
    end = cluster.end_of(key)
    assert (end.state, end.counts.total) == (BatchOperationState.CANCELED, 0)
    assert transcript(cluster, 3) == [
        "> CREATE RETRY_TASK",
        "CREATED RETRY_TASK",
        "> SUSPEND",
        "SUSPENDED",
        "> CANCEL",
        "CANCELED",
        "PARTITION_COMPLETED of 3: 0=0+0+0+0",
    ]
    check_end(cluster)


def test_an_operation_ends_though_a_partition_never_hears_of_it() -> None:
    """A person skips its creation there: the others are enough, and the end says what failed."""
    cluster = BatchCluster(3)
    cluster.dark = {3}
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}))
    cluster.run(5)
    assert cluster.end_of(key) is None
    cluster.skip(key, 3)
    cluster.run(60)
    end = cluster.end_of(key)
    assert (end.state, end.counts.completed) == (BatchOperationState.PARTIALLY_COMPLETED, 1)
    (failed,) = [report for report in end.reports if report.error is not None]
    assert failed.partition == 3 and "skipped the creation" in failed.error.message
    cluster.dark = set()
    cluster.run(600)
    check_end(cluster)


def test_a_canceled_operation_ends_though_its_creation_is_skipped_afterwards() -> None:
    cluster = BatchCluster(3)
    cluster.dark = {3}
    key = cluster.create(1, cluster.select({1: cluster.dead_letters(1, 1)}))
    cluster.run(5)
    cluster.control(CANCEL, key)
    cluster.skip(key, 3)
    cluster.dark = set()
    cluster.run(600)
    end = cluster.end_of(key)
    assert (end.state, end.counts.completed) == (BatchOperationState.CANCELED, 1)
    check_end(cluster)


def test_only_the_leader_is_asked() -> None:
    cluster = BatchCluster(2)
    key = cluster.create(1, cluster.select({}))
    reply = cluster.ask(2, Command(BATCH, SUSPEND, key, OperationRef()))
    assert reply.rejection is not None and reply.rejection.code is Code.NOT_FOUND
    assert partition_of(key) == 1
