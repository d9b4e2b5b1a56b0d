"""Transactions over partitions, told step by step."""

from typing import Any

import pytest
from process_talk import deployment
from transaction_cluster import (
    JOB,
    JOB_BATCH,
    TransactionCluster,
    complete,
    operation,
    publish,
    start,
    submit,
)

from holdfast.engine.jobs.queries import FindStandings, FindTask, ListTasks
from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Completion,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobRef,
    NewJob,
)
from holdfast.engine.kernel import Command
from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.engine.partition import DISPATCH, QUESTIONS
from holdfast.engine.processes.queries import FindInstance
from holdfast.engine.processes.values import InstanceIntent, InstanceRef, ProcessIntent
from holdfast.engine.reader import Reader
from holdfast.engine.transactions.values import (
    TransactionIntent,
    TransactionOperation,
    TransactionState,
)
from holdfast.errors import Code, Unavailable
from holdfast.limits import TRANSACTION_KEPT_MS, TRANSACTIONS_OPEN_MAX
from holdfast.model.dsl import Process
from holdfast.records import ValueType, partition_of

COMMITTED, ABORTED = TransactionState.COMMITTED, TransactionState.ABORTED
DONE_S = TRANSACTION_KEPT_MS / 1_000 + 60


def intents(cluster: TransactionCluster, partition: int) -> list[str]:
    """What a log says about transactions."""
    return [
        TransactionIntent(record.intent).name
        for record in cluster.nodes[partition].records()
        if record.value_type == ValueType.TRANSACTION
    ]


def deploy(cluster: TransactionCluster, process: Process) -> None:
    command = Command(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(process))
    assert cluster.ask(1, command).rejection is None
    cluster.run(1)


def test_one_partition_needs_one_append_and_no_votes() -> None:
    cluster = TransactionCluster()
    job = cluster.held(2)
    before = cluster.nodes[2].steps
    answer = cluster.outcome(2, complete(job, "tx1"), submit(2, "tx2"), publish(2, "tx3"))
    assert answer.state == COMMITTED
    assert answer.keys[0] == job.key
    assert cluster.nodes[2].steps == before + 1
    assert intents(cluster, 2) == ["BEGIN", "COMMITTED"]
    assert not cluster.posted, "nobody else hears of it"
    cluster.check()


def test_several_partitions_prepare_vote_and_apply() -> None:
    cluster = TransactionCluster()
    deploy(cluster, Process("p").task("ship"))
    cluster.posted.clear()
    answer = cluster.outcome(
        1, submit(1, "tx1", "k1"), publish(2, "tx2", "i"), start(3, "tx3"), submit(2, "tx4")
    )
    assert answer.state == COMMITTED
    assert [partition_of(key) for key in answer.keys] == [1, 2, 3, 2]
    cluster.run(1)
    assert intents(cluster, 1) == [
        "BEGIN", "BEGUN", "VOTE", "VOTED", "VOTE", "VOTED", "COMMITTED",
        "ACKNOWLEDGE", "ACKNOWLEDGED", "ACKNOWLEDGE", "ACKNOWLEDGED",
    ]  # fmt: skip
    assert intents(cluster, 2) == ["PREPARE", "PREPARED", "DECIDE", "APPLIED"]
    cluster.check()
    cluster.run(DONE_S)
    assert intents(cluster, 1)[-2:] == ["EXPIRE", "FORGOTTEN"]
    assert not list(cluster.nodes[1].view.transactions.known.scan())
    cluster.check()


def test_effects_carry_the_decision_and_share_its_source() -> None:
    cluster = TransactionCluster()
    cluster.outcome(1, submit(1, "tx1"), submit(2, "tx2"))
    cluster.run(1)
    home, records = cluster.nodes[1].records(), cluster.nodes[2].records()
    [applied] = [each for each in records if each.intent == TransactionIntent.APPLIED
                 and each.value_type == ValueType.TRANSACTION]  # fmt: skip
    decided = home[applied.value.position]
    assert (decided.value_type, decided.intent) == (
        ValueType.TRANSACTION, TransactionIntent.COMMITTED,
    )  # fmt: skip
    assert decided.key == applied.key
    [created] = [each for each in records if each.value_type == JOB and each.intent == 1]
    assert created.source_position == applied.source_position


def test_every_reason_is_told_and_nothing_is_done() -> None:
    cluster = TransactionCluster()
    taken = Command(
        JOB, JobIntent.CREATE, 0, NewJob("a", b"1", idempotency_key="k", window_ms=9_000)
    )
    known = cluster.ask(3, taken).key
    job = cluster.held(2)
    gone = Completion(job.lease, b"1")
    cluster.ask(2, Command(JOB, JobIntent.COMPLETE, job.key, gone))
    answer = cluster.outcome(
        1, submit(1, "tx1"), complete(job, "tx2"), start(2, "tx3", "nobody"), submit(3, "tx4", "k")
    )
    assert answer.state == ABORTED
    told = {each.operation: (each.code, each.key) for each in answer.refused}
    assert told == {
        1: (Code.NOT_FOUND, job.key), 2: (Code.NOT_FOUND, 0), 3: (Code.ALREADY_EXISTS, known),
    }  # fmt: skip
    cluster.run(1)
    cluster.check()


def test_the_home_refuses_before_anybody_prepares() -> None:
    cluster = TransactionCluster()
    answer = cluster.outcome(1, start(1, "tx1", "nobody"), submit(2, "tx2"))
    assert answer.state == ABORTED
    assert [each.operation for each in answer.refused] == [0]
    assert intents(cluster, 2) == []
    cluster.check()


def test_a_partition_that_does_not_answer_aborts_it_after_its_timeout() -> None:
    cluster = TransactionCluster()
    cluster.dark.add(3)
    job = cluster.held(2)
    reply = cluster.begin(1, submit(1, "tx1"), complete(job, "tx2"), submit(3, "tx3"))
    assert reply.value.state == TransactionState.OPEN
    cluster.run(29)
    assert cluster.nodes[2].view.transactions.counts.prepared == 1
    cluster.run(2)
    row = cluster.nodes[1].view.transactions.known.get(reply.key)
    assert row.state == ABORTED
    [late] = row.outcome.refused
    assert (late.operation, late.code) == (-1, Code.DEADLINE_EXCEEDED)
    assert "within 30000 ms, but 3 did not" in late.reason
    assert cluster.nodes[2].view.transactions.counts.prepared == 0
    assert row.waiting_for == (3,)
    done = Command(JOB, JobIntent.COMPLETE, job.key, Completion(job.lease, b"1"))
    assert cluster.ask(2, done).rejection is None, "the worker holds it as before"
    cluster.dark.clear()
    cluster.run(400)
    assert intents(cluster, 3) == ["PREPARE", "PREPARED", "DECIDE", "RELEASED"]
    cluster.check()


@pytest.fixture
def prepared() -> TransactionCluster:
    """A job, a key and a message id are reserved on partition 2, and nobody decides."""
    cluster = TransactionCluster()
    cluster.cut.add((2, 1))
    return cluster


def test_what_is_reserved_is_refused_to_others_until_it_is_decided(
    prepared: TransactionCluster,
) -> None:
    job = prepared.held(2)
    keyed = NewJob("a", b"1", idempotency_key="k", window_ms=3_600_000)
    message = NewMessage("m", "k", b"{}", "i", 3_600_000)
    others = [
        Command(JOB, JobIntent.COMPLETE, job.key, Completion(job.lease, b"1")),
        Command(JOB, JobIntent.FAIL, job.key, Failure(job.lease, "boom")),
        Command(JOB, JobIntent.CANCEL, job.key, JobRef()),
        Command(JOB, JobIntent.CREATE, 0, keyed),
        Command(ValueType.MESSAGE, MessageIntent.PUBLISH, 0, message),
    ]
    reply = prepared.begin(
        1, submit(1, "tx1"), complete(job, "tx2"), submit(2, "tx3", "k"), publish(2, "tx4", "i")
    )
    prepared.run(1)
    for command in others:
        rejection = prepared.ask(2, command).rejection
        assert rejection is not None and rejection.code == Code.UNAVAILABLE, command
        assert f"transaction {reply.key}" in rejection.reason
    released = Command(JOB_BATCH, JobBatchIntent.RELEASE, job.lease, JobList((job.key,)))
    assert prepared.ask(2, released).rejection is not None
    second = prepared.outcome(2, complete(job, "tx5"), submit(2, "tx6"))
    assert second.state == ABORTED, "another transaction is refused; it does not wait"
    prepared.cut.clear()
    prepared.run(60)
    assert prepared.nodes[1].view.transactions.known.get(reply.key).state == COMMITTED
    codes = [reply.rejection.code for reply in (prepared.ask(2, each) for each in others)]
    assert codes == [Code.NOT_FOUND] * 3 + [Code.ALREADY_EXISTS] * 2
    prepared.check()


def test_nothing_is_visible_before_it_is_committed(prepared: TransactionCluster) -> None:
    prepared.begin(1, submit(1, "tx1"), submit(2, "tx2"), publish(2, "tx3", "i"))
    prepared.run(5)
    for node in prepared.nodes.values():
        assert not list(node.view.jobs.jobs.scan())
        assert not list(node.view.messages.messages.scan())
    prepared.cut.clear()
    prepared.run(20)
    assert len(list(prepared.nodes[2].view.jobs.jobs.scan())) == 1
    assert prepared.check()[0].state == COMMITTED


def test_what_is_promised_is_there_for_who_knows_its_key(prepared: TransactionCluster) -> None:
    """Keys are told with the commit: a partition that has not heard of it yet says so."""
    deploy(prepared, Process("p").task("held"))
    prepared.begin(1, submit(1, "tx1"), submit(2, "tx2"), start(2, "tx3"))
    prepared.run(1)
    [(_, stored)] = prepared.nodes[2].view.transactions.prepared.scan()
    task, instance = [each.key for each in stored.part.operations]
    reader: Any = Reader(prepared.nodes[2].processor, DISPATCH, None, prepared.now_ms)  # type: ignore[arg-type]
    for query in (FindTask(task), FindInstance(instance)):
        with pytest.raises(Unavailable, match="has not applied it yet") as caught:
            QUESTIONS.answer(reader, query)
        assert caught.value.retry_after_ms
    standings = QUESTIONS.answer(reader, FindStandings((task, instance, 7)))
    assert [each.is_over for each in standings] == [False, False, True]
    assert QUESTIONS.answer(reader, ListTasks(0, 100)).items == [], "nobody else sees it"
    for command in (
        Command(JOB, JobIntent.CANCEL, task, JobRef()),
        Command(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL, instance, InstanceRef()),
    ):
        rejection = prepared.ask(2, command).rejection
        assert rejection is not None and rejection.code == Code.UNAVAILABLE
    prepared.cut.clear()
    prepared.run(20)
    assert QUESTIONS.answer(reader, FindTask(task)) is not None
    assert QUESTIONS.answer(reader, FindInstance(instance)) is not None
    prepared.check()


@pytest.mark.parametrize("lease_s", [5, 3_600])
def test_a_lease_that_ends_while_its_job_is_reserved_ends_with_the_abort(
    prepared: TransactionCluster, lease_s: int
) -> None:
    job = prepared.held(2, lease_s * 1_000)
    prepared.begin(1, submit(1, "tx1"), complete(job, "tx2"))
    prepared.run(10)
    assert prepared.nodes[2].view.jobs.active.get(job.key) != job.lease
    assert prepared.nodes[2].view.jobs.active.get(job.key) is not None, "nobody else has it"
    prepared.cut.add((1, 2))
    prepared.run(30)  # the home gives it up
    prepared.cut.clear()
    prepared.run(400)
    held = prepared.nodes[2].view.jobs.active.get(job.key)
    assert held == (None if lease_s == 5 else job.lease)
    prepared.check()


def test_a_job_of_a_process_is_completed_at_the_home_and_nowhere_else() -> None:
    cluster = TransactionCluster()
    deploy(cluster, Process("p").task("held"))
    keys = [cluster.outcome(each, start(each, f"tx{each}")).keys[0] for each in (1, 2)]
    jobs = [_activated(cluster, each) for each in (1, 2)]
    [job, far] = jobs
    refused = cluster.outcome(1, complete(job, "no"), complete(far, "no"))
    assert refused.state == ABORTED, "the result is no object of variables"
    assert [each.operation for each in refused.refused] == [0]
    both = cluster.outcome(1, _done(job), _done(far))
    assert both.state == ABORTED
    assert [each.operation for each in both.refused] == [1]
    assert f"process instance {keys[1]}" in both.refused[0].reason
    one = cluster.outcome(1, _done(job), submit(2, "tx9"))
    assert one.state == COMMITTED
    assert cluster.nodes[1].view.processes.instances.get(keys[0]) is None, "it went on"
    assert cluster.nodes[2].view.processes.instances.get(keys[1]) is not None
    cluster.run(1)


def _activated(cluster: TransactionCluster, partition: int) -> ActivatedJob:
    value = Activation(("held",), "worker", 1, 3_600_000)
    command = Command(JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)
    return cluster.ask(partition, command).value[0]


def _done(job: ActivatedJob) -> TransactionOperation:
    done = Completion(job.lease, b"{}")
    return operation(partition_of(job.key), JOB, JobIntent.COMPLETE, job.key, done)


def test_the_version_of_a_process_is_pinned_when_it_is_prepared(
    prepared: TransactionCluster,
) -> None:
    deploy(prepared, Process("p").task("old"))
    prepared.begin(1, submit(1, "tx1"), start(2, "tx2"))
    prepared.run(1)
    prepared.cut.clear()
    deploy(prepared, Process("p").task("new"))
    prepared.run(20)
    types = [job.submitted.type for _, job in prepared.nodes[2].view.jobs.jobs.scan()]
    assert types == ["old"]
    assert prepared.check()[-1].state == COMMITTED


def test_who_asks_again_is_answered_the_same() -> None:
    cluster = TransactionCluster()
    near = (submit(1, "tx1"), submit(1, "tx2"))
    far = (submit(1, "tx3"), submit(2, "tx4"))
    for id_, operations in (("near", near), ("far", far)):
        first = cluster.begin(1, *operations, id_=id_)
        cluster.run(5)
        again = cluster.begin(1, *operations, id_=id_)
        assert (again.key, again.value) == (first.key, first.value)
    assert len(cluster.check()) == 2


def test_each_operation_needs_what_it_needs_by_itself() -> None:
    cluster = TransactionCluster()
    claims = {"sub": "ann"}
    near = cluster.outcome(1, submit(1, "tx1"), publish(1, "tx2"), claims=claims)
    assert near.state == ABORTED
    assert [each.code for each in near.refused] == [Code.FORBIDDEN, Code.FORBIDDEN]
    cluster.check()


def test_there_is_a_limit_to_open_transactions() -> None:
    cluster = TransactionCluster()
    cluster.dark.add(2)
    commands = [
        cluster.command(submit(1, f"tx{n}"), submit(2, f"txx{n}"))
        for n in range(TRANSACTIONS_OPEN_MAX)
    ]
    for command in commands:
        assert cluster.ask(1, command).rejection is None
    one_more = cluster.ask(1, cluster.command(submit(1, "tx"), submit(2, "txx"))).rejection
    assert one_more is not None and one_more.code == Code.RESOURCE_EXHAUSTED
    assert cluster.ask(1, cluster.command(submit(1, "tx"))).rejection is None, "it opens none"


def test_a_command_of_another_kind_is_no_operation() -> None:
    cluster = TransactionCluster()
    wrong = operation(1, JOB, JobIntent.CANCEL, 7, JobRef())
    rejection = cluster.ask(1, cluster.command(wrong)).rejection
    assert rejection is not None and rejection.code == Code.INVALID_ARGUMENT
