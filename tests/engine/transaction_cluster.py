"""Partitions with transactions between them, and a network that may do its worst."""

from itertools import count
from typing import Any

import msgspec
from distribution_cluster import Engine, Node, ParcelCluster
from partition_driver import counted
from transaction_logs import Known, check_logs, check_state

from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Completion,
    JobBatchIntent,
    JobIntent,
    NewJob,
)
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.processes.values import InstanceIntent, NewInstance
from holdfast.engine.transactions.values import (
    NewTransaction,
    TransactionAnswer,
    TransactionIntent,
    TransactionOperation,
    TransactionState,
)
from holdfast.records import ValueType, partition_of

JOB, JOB_BATCH, TRANSACTION = ValueType.JOB, ValueType.JOB_BATCH, ValueType.TRANSACTION
ENGINE = Engine(DISPATCH, open_partition)
TIMEOUT_MS = 30_000
_encode = msgspec.msgpack.Encoder().encode


def operation(partition: int, value_type: ValueType, intent: Any, key: int, value: Any) -> Any:
    return TransactionOperation(partition, int(value_type), int(intent), key, _encode(value))


def submit(partition: int, text: str, key: str = "") -> TransactionOperation:
    new = NewJob("a", f'"{text}"'.encode(), idempotency_key=key, window_ms=3_600_000 if key else 0)
    return operation(partition, JOB, JobIntent.CREATE, 0, new)


def complete(job: ActivatedJob, text: str) -> TransactionOperation:
    done = Completion(job.lease, f'"{text}"'.encode())
    return operation(partition_of(job.key), JOB, JobIntent.COMPLETE, job.key, done)


def publish(partition: int, text: str, id_: str = "") -> TransactionOperation:
    new = NewMessage("m", "k", f'{{"t":"{text}"}}'.encode(), id_, 3_600_000)
    return operation(partition, ValueType.MESSAGE, MessageIntent.PUBLISH, 0, new)


def start(partition: int, text: str, process: str = "p", key: str = "") -> TransactionOperation:
    new = NewInstance(process, 0, f'{{"t":"{text}"}}'.encode(), key, 3_600_000 if key else 0)
    intent = InstanceIntent.CREATE
    return operation(partition, ValueType.PROCESS_INSTANCE, intent, 0, new)


class TransactionCluster(ParcelCluster):
    """Partitions that send parcels."""

    def __init__(self, partitions: int = 3, *, seed: int = 0) -> None:
        super().__init__(partitions, engine=ENGINE, seed=seed)
        self._requests = count(1)

    # --- what tests say -----------------------------------------------------------------------

    def command(
        self, *operations: TransactionOperation, timeout_ms: int = TIMEOUT_MS, **rest: Any
    ) -> Command:
        new = NewTransaction(operations, timeout_ms)
        id_ = rest.pop("id_", f"r{next(self._requests)}")
        return Command(TRANSACTION, TransactionIntent.BEGIN, 0, new, request_id=id_, **rest)

    def begin(self, home: int, *operations: TransactionOperation, **rest: Any) -> Reply:
        """Asks until it is answered, as a client does that hears nothing."""
        command, node = self.command(*operations, **rest), self.nodes[home]
        for _ in range(100):
            ticket = object()
            if not node.is_down:
                node.inbox.append(Submission([command], ticket))
            self.run(0)
            if id(ticket) in node.answers:
                return node.answers.pop(id(ticket))[0]
            self.run(1)
        raise AssertionError("nobody answers")

    def outcome(self, home: int, *operations: TransactionOperation, **rest: Any) -> Any:
        """What becomes of a transaction, however long that takes."""
        reply = self.begin(home, *operations, **rest)
        assert reply.rejection is None, reply.rejection
        answer: TransactionAnswer = reply.value
        for _ in range(100):
            if answer.state != TransactionState.OPEN:
                return answer
            node = self.nodes[home]
            row = None if node.is_down else node.view.transactions.known.get(reply.key)
            if row is not None and row.outcome is not None:
                return TransactionAnswer(row.state, row.outcome.keys, row.outcome.refused)
            self.run(5)
        raise AssertionError("nobody decides")

    def held(self, partition: int, lease_ms: int = 3_600_000) -> ActivatedJob:
        """A job that a worker has."""
        new = NewJob("held", b"null")
        assert self.ask(partition, Command(JOB, JobIntent.CREATE, 0, new)).rejection is None
        value = Activation(("held",), "worker", 1, lease_ms)
        return self.ask(partition, Command(JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)).value[0]

    # --- what must hold -----------------------------------------------------------------------

    def check(self) -> list[Known]:
        """All or nothing, each once; nothing is reserved; replay gives the same state."""
        known = check_logs({number: node.records() for number, node in self.nodes.items()})
        for node in self.nodes.values():
            self._check_node(node)
        return known

    def _check_node(self, node: Node) -> None:
        assert not node.bugs, node.bugs
        check_state(node.view, node.dump())
        again = node.replayed()
        assert again.state.dump() == node.dump(), f"partition {node.number} is replayed otherwise"
        assert counted(again) == counted(node.processor)
