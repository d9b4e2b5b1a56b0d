"""What each type of operation does with its items, and what is refused at its creation."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from batch_cluster import BATCH, BatchCluster, check_end
from process_talk import deployment

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
)
from holdfast.engine.identity.values import (
    Authorization,
    AuthorizationIntent,
    OwnerType,
    Permission,
    ResourceType,
)
from holdfast.engine.jobs.values import (
    Activation,
    Completion,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobState,
)
from holdfast.engine.kernel import Command
from holdfast.engine.processes.values import (
    Activate,
    InstanceIntent,
    Migration,
    Modification,
    NewInstance,
    ProcessIntent,
)
from holdfast.errors import Code
from holdfast.model.dsl import Process
from holdfast.records import ValueType

_I, _T = BatchOperationIntent, BatchOperationType
_DEFINITION = ResourceType.PROCESS_DEFINITION
KEEP_MS = 3_600_000


@pytest.fixture
def cluster() -> BatchCluster:
    cluster = BatchCluster(1)
    process = Process("order").task("pack").task("ship")
    ask(cluster, ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(process))
    return cluster


def ask(cluster: BatchCluster, value_type: Any, intent: Any, key: int, value: Any) -> Any:
    reply = cluster.ask(1, Command(value_type, intent, key, value))
    assert reply.rejection is None, reply.rejection
    return reply


def let(
    cluster: BatchCluster, who: str, resource: ResourceType, id_: str, *permissions: Permission
) -> None:
    """Gives somebody a permission."""
    new = Authorization(OwnerType.USER, who, resource, id_, permissions)
    ask(cluster, ValueType.AUTHORIZATION, AuthorizationIntent.CREATE, 0, new)


def start(cluster: BatchCluster, count: int) -> list[int]:
    new = NewInstance("order", keep_ms=KEEP_MS)
    return [
        ask(cluster, ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, new).key
        for _ in range(count)
    ]


def work(cluster: BatchCluster, type_: str, *, fails: bool = False) -> None:
    value = Activation((type_,), "worker", 100, 60_000)
    reply = ask(cluster, ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)
    for job in reply.value:
        if fails:
            failure = Failure(job.lease, "broken", True)
            ask(cluster, ValueType.JOB, JobIntent.FAIL, job.key, failure)
        else:
            done = Completion(job.lease, b"{}")
            ask(cluster, ValueType.JOB, JobIntent.COMPLETE, job.key, done)


def run(cluster: BatchCluster, type_: BatchOperationType, items: list[int], **rest: Any) -> Any:
    key = cluster.create(1, cluster.select({1: items}), type=type_, **rest)
    cluster.run(5)
    check_end(cluster)
    return cluster.end_of(key)


def counts(end: Any) -> tuple[int, int, int]:
    return end.counts.completed, end.counts.failed, end.counts.skipped


def test_instances_are_canceled(cluster: BatchCluster) -> None:
    keys = start(cluster, 3)
    end = run(cluster, _T.CANCEL_PROCESS_INSTANCE, [*keys[:2], 7])
    assert counts(end) == (2, 0, 1)
    view = cluster.nodes[1].view
    assert [key for key, _ in view.processes.instances.scan()] == keys[2:]
    assert view.jobs.outcome(keys[0]).state is JobState.CANCELED


def test_instances_are_modified(cluster: BatchCluster) -> None:
    keys = start(cluster, 2)
    plan = Modification(activate=(Activate("ship"),), terminate_ids=("pack",))
    end = run(cluster, _T.MODIFY_PROCESS_INSTANCE, [*keys, 7], modification=plan)
    assert counts(end) == (2, 0, 1)
    view = cluster.nodes[1].view
    assert len(view.jobs.waiting.next("ship", 9)) == 2
    assert not view.jobs.waiting.next("pack", 9)


def test_a_step_ends_when_its_items_have_written_much(
    cluster: BatchCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.batch.executing.BATCH_EXECUTE_BYTES_MAX", 25_000)
    keys = start(cluster, 5)
    plan = Modification(variables=b'{"note":"%s"}' % (b"x" * 10_000))
    assert counts(run(cluster, _T.MODIFY_PROCESS_INSTANCE, keys, modification=plan)) == (5, 0, 0)
    done = [each.value for each in cluster.nodes[1].records() if hasattr(each.value, "skipped")]
    assert [len(each.completed) for each in done] == [3, 2]


def test_a_modification_that_does_not_fit_fails_with_its_reason(cluster: BatchCluster) -> None:
    keys = start(cluster, 1)
    plan = Modification(activate=(Activate("no such step"),))
    assert counts(run(cluster, _T.MODIFY_PROCESS_INSTANCE, keys, modification=plan)) == (0, 1, 0)
    (done,) = [r.value for r in cluster.nodes[1].records() if hasattr(r.value, "skipped")]
    assert done.failed[0].code == Code.INVALID_ARGUMENT
    assert "no such step" in done.failed[0].message


def test_instances_are_migrated(cluster: BatchCluster) -> None:
    keys = start(cluster, 2)
    newer = Process("order").task("pack").task("send")
    ask(cluster, ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(newer))
    view = cluster.nodes[1].view
    definition = view.processes.definition_of("order", 2)
    plan = Migration(definition, (("pack", "pack"),))
    assert counts(run(cluster, _T.MIGRATE_PROCESS_INSTANCE, [*keys, 7], migration=plan)) == (
        2,
        0,
        1,
    )
    assert {view.processes.instances.get(key).definition for key in keys} == {definition}


def test_a_migration_to_what_is_not_there_fails_and_is_not_skipped(cluster: BatchCluster) -> None:
    keys = start(cluster, 1)
    end = run(cluster, _T.MIGRATE_PROCESS_INSTANCE, keys, migration=Migration(77, ()))
    assert counts(end) == (0, 1, 0)


def test_instances_that_have_ended_are_deleted(cluster: BatchCluster) -> None:
    keys = start(cluster, 3)
    work(cluster, "pack")
    work(cluster, "ship")
    running = start(cluster, 1)
    view = cluster.nodes[1].view
    assert all(view.jobs.outcome(key) for key in keys)
    end = run(cluster, _T.DELETE_PROCESS_INSTANCE, [*keys[:2], *running, 10**15])
    assert counts(end) == (2, 1, 1)
    assert [bool(view.jobs.outcome(key)) for key in keys] == [False, False, True]


def test_incidents_are_resolved(cluster: BatchCluster) -> None:
    start(cluster, 2)
    work(cluster, "pack", fails=True)
    view = cluster.nodes[1].view
    incidents = [key for key, _ in view.incidents.open.scan()]
    end = run(cluster, _T.RESOLVE_INCIDENT, [*incidents, 7], retries=4)
    assert counts(end) == (2, 0, 1)
    assert not list(view.incidents.open.scan())
    jobs = [view.jobs.jobs.get(key) for key in view.jobs.waiting.next("pack", 9)]
    assert [job.retries for job in jobs] == [4, 4]


def test_dead_letters_are_retried_or_discarded(cluster: BatchCluster) -> None:
    dead = cluster.dead_letters(1, 4)
    assert counts(run(cluster, _T.RETRY_TASK, dead[:2], retries=2)) == (2, 0, 0)
    assert counts(run(cluster, _T.DISCARD_TASK, dead)) == (2, 2, 0)
    view = cluster.nodes[1].view
    assert view.jobs.waiting.next("send", 9) == dead[:2]
    assert counts(run(cluster, _T.DISCARD_TASK, dead[2:])) == (0, 0, 2)


def test_every_type_has_a_test_here() -> None:
    text = Path(__file__).read_text()
    assert all(f"_T.{type_.name}" in text for type_ in BatchOperationType)


def test_items_are_done_with_the_claims_of_the_creator(cluster: BatchCluster) -> None:
    keys = start(cluster, 1)
    seen: list[Any] = []
    let(cluster, "ada", ResourceType.BATCH, "*", Permission.CREATE)
    let(cluster, "ada", _DEFINITION, "order", Permission.CANCEL_PROCESS_INSTANCE)
    turn = cluster.nodes[1].processor._turn
    attempt = turn.attempt
    turn.attempt = lambda command: (seen.append(command.claims), attempt(command))[1]
    end = run(cluster, _T.CANCEL_PROCESS_INSTANCE, keys, claims={"sub": "ada"})
    assert seen == [{"sub": "ada"}]
    assert counts(end) == (1, 0, 0)


def test_an_item_that_the_creator_may_not_touch_fails_and_stays(cluster: BatchCluster) -> None:
    keys = start(cluster, 2)
    let(cluster, "ada", ResourceType.BATCH, "*", Permission.CREATE)
    let(cluster, "ada", _DEFINITION, "other", Permission.CANCEL_PROCESS_INSTANCE)
    end = run(cluster, _T.CANCEL_PROCESS_INSTANCE, keys, claims={"sub": "ada"})
    assert counts(end) == (0, 2, 0)
    instances = cluster.nodes[1].view.processes.instances
    assert all(instances.get(key) is not None for key in keys)


@pytest.mark.parametrize("type_", BatchOperationType)
def test_who_lacks_the_permission_for_a_type_does_not_create_it(
    cluster: BatchCluster, type_: BatchOperationType
) -> None:
    operation = BatchOperation(
        type_,
        b'{"number":1}',
        Modification() if type_ is _T.MODIFY_PROCESS_INSTANCE else None,
        Migration(1, ()) if type_ is _T.MIGRATE_PROCESS_INSTANCE else None,
    )
    command = Command(BATCH, _I.CREATE, 0, operation, {"sub": "ada"})
    others = [each for each in BatchOperationType if each is not type_]
    given = [Permission(f"CREATE_BATCH_OPERATION_{each}") for each in others]
    let(cluster, "ada", ResourceType.BATCH, "*", *given)
    refused = cluster.ask(1, command).rejection
    assert refused is not None and refused.code is Code.FORBIDDEN
    assert f"CREATE_BATCH_OPERATION_{type_}" in refused.reason
    let(cluster, "bob", ResourceType.BATCH, "*", Permission(f"CREATE_BATCH_OPERATION_{type_}"))
    allowed = msgspec.structs.replace(command, claims={"sub": "bob"})
    assert cluster.ask(1, allowed).rejection is None


# --- creation ---------------------------------------------------------------------------------

RETRY = _T.RETRY_TASK
REFUSED: dict[str, BatchOperation] = {
    "no JSON": BatchOperation(RETRY, b""),
    "a list": BatchOperation(RETRY, b"[1]"),
    "empty": BatchOperation(RETRY, b"{}"),
    "no plan": BatchOperation(_T.MODIFY_PROCESS_INSTANCE, b'{"a":1}'),
    "the wrong plan": BatchOperation(RETRY, b'{"a":1}', migration=Migration(1, ())),
    "an unknown partition": BatchOperation(RETRY, b'{"a":1}', partitions=(1, 9)),
    "a partition twice": BatchOperation(RETRY, b'{"a":1}', partitions=(1, 1)),
    "a throttle": BatchOperation(RETRY, b'{"a":1}', throttle=-1),
    "a priority": BatchOperation(RETRY, b'{"a":1}', priority=10**7),
    "retries": BatchOperation(RETRY, b'{"a":1}', retries=-1),
    "too large": BatchOperation(RETRY, b'{"a":"' + b"x" * 2**20 + b'"}'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_operation_that_makes_no_sense_is_refused(what: str) -> None:
    cluster = BatchCluster(2)
    command = Command(BATCH, BatchOperationIntent.CREATE, 0, REFUSED[what])
    rejection = cluster.ask(1, command).rejection
    assert rejection is not None and rejection.code is Code.INVALID_ARGUMENT
    cluster.run(5)
    assert not cluster.posted
    check_end(cluster)


def test_so_many_operations_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.batch.commands.BATCH_OPERATIONS_MAX", 2)
    cluster = BatchCluster(1)
    cluster.is_driven = False
    first = cluster.create(1, cluster.select({}))
    cluster.create(1, cluster.select({}))
    command = Command(BATCH, BatchOperationIntent.CREATE, 0, BatchOperation(RETRY, b'{"a":1}'))
    rejection = cluster.ask(1, command).rejection
    assert rejection is not None and rejection.code is Code.RESOURCE_EXHAUSTED
    cluster.is_driven = True
    cluster.run(5)
    assert cluster.end_of(first).state is BatchOperationState.COMPLETED
    cluster.create(1, cluster.select({}))
    cluster.run(5)
    check_end(cluster)


def test_a_selection_is_named_after_the_operation_on_every_partition() -> None:
    cluster = BatchCluster(2)
    cluster.is_driven = False
    key = cluster.create(1, cluster.select({}))
    cluster.run(5)
    names = {
        node.view.batches.operations.get(key).operation.selection.name
        for node in cluster.nodes.values()
    }
    assert names == {f"batch-{key}"}
