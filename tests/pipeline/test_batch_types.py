"""Every type of batch operation and every way to steer one: one node, one Spark, typed commands."""

import signal
from collections import Counter
from typing import Any

import msgspec
import pytest
from batch_console import (
    PipelineBeside,
    begun,
    ended,
    outcomes,
    pipeline_beside,
    shown,
    start,
    typed,
    until,
)
from served_node import ServedNode

from holdfast.engine.asker import Asker
from holdfast.engine.batch.values import BatchOperationIntent, BatchOperationType
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.asking import asking
from holdfast.gateway.batch.shapes import BatchOperationReceipt, NewBatchOperation
from holdfast.gateway.identity.shapes import NewAuthorization
from holdfast.gateway.processes.shapes import ProcessInstanceQuery
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobFailure,
    NewTask,
)
from holdfast.model.dsl import Process
from holdfast.pipeline.select.requests import is_open, refuse
from holdfast.records import RecordKind, ValueType

_I, _T = BatchOperationIntent, BatchOperationType


class Console:
    """A node with its pipeline, and what a person finds out about it."""

    def __init__(self, node: ServedNode, pipeline: PipelineBeside) -> None:
        self.node = node
        self.pipeline = pipeline

    def batch(self, *arguments: str, code: int = 0) -> Any:
        """Types a command and waits for the end of the operation."""
        found, view = typed(self.node, *arguments)
        assert found == code, view
        return view

    def fail_all(self, type_: str, count: int, error: str) -> None:
        """Every job of a type is taken by a worker, which fails."""
        failed = 0
        while failed < count:
            request = ActivationRequest([type_], "worker", 100, 60_000)
            jobs = self.node.portal.call(self.node.api.jobs.activate(request))
            failures = [JobFailure(each.job_key, each.lease, error, final=True) for each in jobs]
            self.node.portal.call(self.node.api.jobs.fail(failures))
            failed += len(jobs)
        assert failed == count

    def taken(self, type_: str) -> int:
        """How many jobs of a type a worker gets."""
        request, count = ActivationRequest([type_], "worker", 100, 600_000), 0
        while jobs := self.node.portal.call(self.node.api.jobs.activate(request)):
            count += len(jobs)  # of one partition
        return count

    def open_incidents(self) -> int:
        query = IncidentQuery(limit=1_000)
        return len(self.node.portal.call(self.node.api.incidents.page(query)).items)

    def dead_letters(self, type_: str, count: int) -> None:
        """Tasks that wait for a person, on every partition."""
        for _ in range(count):
            self.node.portal.call(self.node.api.tasks.submit([NewTask(type_, retries=0)]))
        self.fail_all(type_, count, "the bank says no")

    def log_of(self, *keys: str) -> list[list[tuple[str, int]]]:
        """What happened to operations, by partition: the key and the intent, EXECUTED as -1."""
        wanted = set(keys)
        told = {ValueType.BATCH_OPERATION: 0, ValueType.BATCH_OPERATION_EXECUTION: -1}
        return [
            [
                (str(each.key), told[ValueType(each.value_type)] or int(each.intent))
                for each in records
                if each.kind is RecordKind.EVENT
                and each.value_type in told
                and str(each.key) in wanted
            ]
            for records in self.node.records().values()
        ]


def instances_are_canceled_modified_migrated_and_deleted(console: Console) -> None:
    node = console.node
    node.deploy(Process("order").task("charge").task("review"))
    orders = start(node, "order", 30)
    assert outcomes(
        console.batch("modify", "--where", '{"processId":"order"}', "--move", "charge:review")
    ) == ("COMPLETED", 30, 0, 0, 0)
    late = start(node, "order", 12)  # they are at charge, which the next version does not have
    node.deploy(Process("order").task("review").task("ship"))
    where = '{"processId":"order","version":1}'
    plan = ("--to", "order:2", "--map", "review:review")
    first = console.batch("migrate", "--where", where, *plan, code=7)
    assert outcomes(first) == ("PARTIALLY_COMPLETED", 30, 12, 0, 0)
    key = first["batchOperationKey"]

    def failures() -> set[int]:
        page = typed(node, "items", key, "--state", "FAILED")[1]
        assert all("charge" in each["errorMessage"] for each in page["items"])
        return {int(each["itemKey"]) for each in page["items"]}

    until(lambda: failures() == late, "the tables tell which failed, and why")
    assert outcomes(console.batch("modify", "--where", where, "--move", "charge:review")) == (
        "COMPLETED", 12, 0, 0, 0
    )  # fmt: skip
    assert console.batch("retry", key, "--dry-run")["preview"]["items"] == 12
    again = console.batch("retry", key)
    assert outcomes(again) == ("COMPLETED", 12, 0, 0, 0) and again["repeats"] == key
    for each in orders | late:
        assert node.portal.call(node.api.instances.get(str(each))).version == 2

    others = start(node, "order", 5)
    view = console.batch("cancel", "--where", '{"processId":"order","version":{"$gte":2}}')
    assert outcomes(view) == ("COMPLETED", 47, 0, 0, 0)
    view = console.batch("delete", "--where", '{"processId":"order","state":"CANCELED"}')
    assert outcomes(view) == ("COMPLETED", 47, 0, 0, 0)
    view = console.batch("delete", "--where", '{"processId":"order"}')
    assert outcomes(view) == ("COMPLETED", 0, 0, 0, 0), "what is deleted is not chosen again"
    assert len(others) == 5


def incidents_are_resolved(console: Console) -> None:
    node = console.node
    node.deploy(Process("bill").task("pay", retries=0))
    start(node, "bill", 25)
    console.fail_all("pay", 25, "the bank says no")
    where = '{"processId":"bill","error":{"$like":"*bank*"}}'
    assert outcomes(console.batch("resolve", "--where", where)) == ("COMPLETED", 25, 0, 0, 0)
    assert console.open_incidents() == 0
    assert console.taken("pay") == 25, "they are tried again"


def dead_letters_are_retried_and_discarded(console: Console) -> None:
    console.dead_letters("send", 20)
    where = ("--where", '{"type":"send"}')
    view = console.batch("retry-tasks", *where, "--retries", "2")
    assert outcomes(view) == ("COMPLETED", 20, 0, 0, 0)
    console.fail_all("send", 20, "still no")
    assert outcomes(console.batch("discard-tasks", *where)) == ("COMPLETED", 20, 0, 0, 0)
    assert console.taken("send") == 0 and console.open_incidents() == 0


def only_the_failed_partitions_are_tried_again(console: Console) -> None:
    """A partition is told that nothing can be selected; the others ask again, and get theirs."""
    node = console.node
    console.dead_letters("pack", 30)
    root = node.folder / "tables"
    console.pipeline.signal(signal.SIGSTOP)
    key = begun(node, "retry-tasks", "--where", '{"type":"pack"}', "--retries", "3")
    until(lambda: is_open(root, f"batch-{key}"), "the node asks")
    refuse(root, f"batch-{key}", InvalidArgument("Expected a table, but the disk is gone"))
    until(lambda: not (root / "_selections" / f"batch-{key}.error").exists(), "it is heard")
    console.pipeline.signal(signal.SIGCONT)
    first = ended(node, key)
    [error] = first["errors"]
    state, completed, failed, skipped, canceled = outcomes(first)
    assert (state, failed, skipped, canceled) == ("PARTIALLY_COMPLETED", 0, 0, 0)
    assert error["type"] == "QUERY_FAILED" and "the disk is gone" in error["message"]
    second = console.batch("retry", key, "--partitions")
    assert outcomes(second) == ("COMPLETED", 30 - completed, 0, 0, 0) and 0 < completed < 30
    assert [each["partitionId"] for each in second["partitions"]] == [error["partitionId"]]
    assert console.taken("pack") == 30


def the_pace_is_changed_while_it_runs(console: Console) -> None:
    node = console.node
    console.dead_letters("slow", 60)
    key = begun(node, "retry-tasks", "--where", '{"type":"slow"}', "--throttle", "6")
    until(lambda: shown(node, key)["operationsCompletedCount"] > 0, "the first items")
    assert shown(node, key)["operationsCompletedCount"] < 40
    typed(node, "change", key, "--throttle", "0")
    assert outcomes(ended(node, key)) == ("COMPLETED", 60, 0, 0, 0)


def one_is_suspended_resumed_and_aborted(console: Console) -> None:
    node = console.node
    console.fail_all("slow", 60, "again")
    key = begun(node, "discard-tasks", "--where", '{"type":"slow"}', "--throttle", "9")
    until(lambda: shown(node, key)["operationsCompletedCount"] > 0, "the first items")
    typed(node, "suspend", key)
    until(lambda: _all_have(console, key, _I.SUSPENDED), "every partition knows")
    done = shown(node, key)["operationsCompletedCount"]
    typed(node, "resume", key)
    until(lambda: shown(node, key)["operationsCompletedCount"] > done, "it continues")
    typed(node, "abort", key)
    view = ended(node, key)
    state, completed, failed, skipped, canceled = outcomes(view)
    assert (state, failed, skipped) == ("CANCELED", 0, 0) and completed > done and canceled > 0
    for log in console.log_of(key):
        seen = [intent for _, intent in log]
        suspended, resumed = seen.index(_I.SUSPENDED), seen.index(_I.RESUMED)
        assert -1 not in seen[suspended:resumed], "nothing is done while it is suspended"
    assert console.open_incidents() == canceled, "what was given up still waits for a person"
    listed = typed(node, "list", "--limit", "1")[1]
    assert [each["batchOperationKey"] for each in listed["items"]] == [key], "it has just ended"


def _all_have(console: Console, key: str, intent: BatchOperationIntent) -> bool:
    return all((key, intent) in log for log in console.log_of(key))


def the_more_urgent_one_goes_first(console: Console) -> None:
    """Both are selected and suspended; as soon as a partition knows both, one is done first."""
    node = console.node
    keys: list[str] = []
    for type_, priority in (("low", "0"), ("high", "5")):
        console.dead_letters(type_, 90)
        where = f'{{"type":"{type_}"}}'
        options = ("--throttle", "1", "--priority", priority)
        keys.append(begun(node, "retry-tasks", "--where", where, *options))
    low, high = keys
    for key in keys:
        until(lambda key=key: shown(node, key)["isSelected"], "its items are known")
        typed(node, "suspend", key)
        typed(node, "change", key, "--throttle", "0")
    for key in keys:
        until(lambda key=key: _all_have(console, key, _I.CHANGED), "every partition knows")
        typed(node, "resume", key)
    for key in keys:
        assert outcomes(ended(node, key)) == ("COMPLETED", 90, 0, 0, 0)
    for log in console.log_of(low, high):
        both = log.index((high, _I.RESUMED))
        last = max(at for at, found in enumerate(log) if found == (high, -1))
        between = Counter(log[both:last])
        assert between[low, -1] <= 1, "only a step that was on its way already"


def what_the_creator_may_not_read_is_never_chosen(console: Console) -> None:
    """Everything may be canceled, but only one process may be read: nothing else is an item."""
    node = console.node
    for process in ("ours", "theirs"):
        node.deploy(Process(process).task("wait-for-it"))
    ours, theirs = start(node, "ours", 7), start(node, "theirs", 5)
    for resource, id_, permission in (
        (ResourceType.BATCH, "*", Permission.CREATE),
        (ResourceType.PROCESS_DEFINITION, "*", Permission.CANCEL_PROCESS_INSTANCE),
        (ResourceType.PROCESS_DEFINITION, "ours", Permission.READ_PROCESS_INSTANCE),
    ):
        new = NewAuthorization(OwnerType.USER, "clerk", resource, id_, [permission])
        node.portal.call(node.api.identity.create_authorization(new))
    where = msgspec.Raw(b'{"processId":{"$in":["ours","theirs"]}}')

    async def cancel(*, dry_run: bool) -> BatchOperationReceipt:
        asked = NewBatchOperation(type=_T.CANCEL_PROCESS_INSTANCE, filter=where, dry_run=dry_run)
        with asking(Asker("clerk")):
            return await node.api.batches.create(asked)

    preview = node.portal.call(cancel(dry_run=True)).preview
    assert preview is not None and {int(each) for each in preview.sample} == ours
    key = node.portal.call(cancel(dry_run=False)).batch_operation_key
    assert key is not None
    assert outcomes(ended(node, key)) == ("COMPLETED", 7, 0, 0, 0)
    running = node.portal.call(node.api.instances.page(ProcessInstanceQuery("theirs"))).items
    assert {int(each.process_instance_key) for each in running} == theirs


@pytest.mark.timeout(400)
@pytest.mark.soak  # test_batch_end_to_end is the short version
@pytest.mark.xdist_group("spark-processes")
def test_every_type_works_and_every_one_can_be_steered(node: ServedNode) -> None:
    with pipeline_beside(node.folder) as pipeline:
        console = Console(node, pipeline)
        instances_are_canceled_modified_migrated_and_deleted(console)
        incidents_are_resolved(console)
        dead_letters_are_retried_and_discarded(console)
        only_the_failed_partitions_are_tried_again(console)
        the_pace_is_changed_while_it_runs(console)
        one_is_suspended_resumed_and_aborted(console)
        the_more_urgent_one_goes_first(console)
        what_the_creator_may_not_read_is_never_chosen(console)
