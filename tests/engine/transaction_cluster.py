"""Partitions with transactions between them, a network that may do its worst, and a checker.

Whatever happened, the logs say which transactions were committed. Of those every operation was done
once; of the others nothing was. What an operation does is known again by a text of its own.
"""

from collections import Counter
from itertools import count
from typing import Any, NamedTuple

import msgspec
from distribution_cluster import Cluster, Engine, Node
from partition_driver import counted

from holdfast.engine.families import Tag
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
from holdfast.engine.parcels.values import ParcelIntent, ParcelReady, ParcelsReceived, ParcelsUpTo
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.processes.values import InstanceIntent, NewInstance
from holdfast.engine.transactions.values import (
    TRANSITIONS,
    NewTransaction,
    TransactionAnswer,
    TransactionIntent,
    TransactionOperation,
    TransactionState,
)
from holdfast.records import Record, RecordKind, ValueType, partition_of

JOB, JOB_BATCH, TRANSACTION = ValueType.JOB, ValueType.JOB_BATCH, ValueType.TRANSACTION
ENGINE = Engine(DISPATCH, open_partition)
TIMEOUT_MS = 30_000
_encode = msgspec.msgpack.Encoder().encode
_LEFT_OVER = {Tag.TRANSACTIONS_PREPARED, Tag.TRANSACTION_NAMES, Tag.TRANSACTION_COUNTS}


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


class Known(NamedTuple):
    """A transaction as the logs tell it."""

    key: int
    operations: tuple[TransactionOperation, ...]
    state: TransactionState
    keys: tuple[int, ...]
    refused: tuple[Any, ...]


class TransactionCluster(Cluster):
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

    # --- parcels ------------------------------------------------------------------------------

    def _carry(self, sender: int, effect: Any) -> None:
        if isinstance(effect, ParcelReady):
            command = Command(ValueType.PARCEL, ParcelIntent.RECEIVE, 0, effect.parcel)
            self.say(sender, effect.parcel.receiver, command)
        elif isinstance(effect, ParcelsReceived):
            value = ParcelsUpTo(effect.receiver, effect.number)
            told = Command(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, value)
            self.say(sender, effect.sender, told)
        else:
            super()._carry(sender, effect)

    def _start(self, node: Node) -> None:
        super()._start(node)
        for parcel in node.view.parcels.all_open():
            self._carry(node.number, ParcelReady(parcel))

    # --- what must hold -----------------------------------------------------------------------

    def transactions(self) -> list[Known]:
        """All that were decided, as the logs of their homes say."""
        return [each for node in self.nodes.values() for each in _decided(node.records())]

    def check(self) -> list[Known]:
        """All or nothing, each once; nothing is reserved; replay gives the same state."""
        known = self.transactions()
        expected: Counter[tuple[Any, ...]] = Counter()
        for each in known:
            if each.state == TransactionState.COMMITTED:
                for key, one in zip(each.keys, each.operations, strict=True):
                    expected[(one.partition, one.value_type, key, _text(one))] += 1
        found = Counter(
            (number, *effect)
            for number, node in self.nodes.items()
            for effect in _effects(node.records())
        )
        assert found == expected, (found - expected, expected - found)
        for node in self.nodes.values():
            self._check_node(node)
        return known

    def _check_node(self, node: Node) -> None:
        assert not node.bugs, node.bugs
        left = Counter(Tag(raw[2]).name for raw, _ in node.dump() if raw[2] in _LEFT_OVER)
        assert not left, f"partition {node.number} has left: {dict(left)}"
        jobs, leases = node.view.jobs, dict(node.view.jobs.leases.scan())
        assert all(lease.deadline_ms for lease in leases.values()), "a job is reserved still"
        assert {lease for _, lease in jobs.active.scan()} == set(leases)
        for key, lease in jobs._open.scan():
            assert lease == sum(by == key for _, by in jobs.active.scan())
        for _, row in node.view.transactions.known.scan():
            assert row.outcome is not None and not row.waiting_for and not row.failed, row
        again = node.replayed()
        assert again.state.dump() == node.dump(), f"partition {node.number} is replayed otherwise"
        assert counted(again) == counted(node.processor)


def _decided(records: list[Record]) -> list[Known]:
    _check_life(records)
    begun: dict[int, NewTransaction] = {}
    found: list[Known] = []
    for record in records:
        if record.value_type != TRANSACTION or record.kind != RecordKind.EVENT:
            continue
        if record.intent == TransactionIntent.BEGUN:
            begun[record.key] = record.value
        elif record.intent in (TransactionIntent.COMMITTED, TransactionIntent.ABORTED):
            new = begun.get(record.key) or records[record.source_position].value
            name = TransactionIntent(record.intent).name
            outcome = record.value
            found.append(
                Known(record.key, new.operations, TransactionState(name), outcome.keys,
                      outcome.refused)
            )  # fmt: skip
    assert len({each.key for each in found}) == len(found), "a transaction is decided once"
    return found


def _check_life(records: list[Record]) -> None:
    """The home's log says of each transaction what the table of its life allows."""
    states: dict[int, TransactionState] = {}
    for record in records:
        if record.value_type != TRANSACTION or record.kind != RecordKind.EVENT:
            continue
        name = TransactionIntent(record.intent).name
        if name in ("PREPARED", "APPLIED", "RELEASED"):  # of others' transactions
            continue
        state = states.pop(record.key, None)
        if state is None and name == "COMMITTED":
            name += " (all on the home)"
        elif state is None and name == "ABORTED":
            name += " (refused by the home)"
        assert (state, name) in TRANSITIONS, f"{record.key}: {name} while {state}"
        after = TRANSITIONS[state, name]
        if after is not None:
            states[record.key] = after


def _text(one: TransactionOperation) -> bytes:
    value = DISPATCH.decode_value(one.value_type, one.intent, one.value)
    return _text_of(value)


def _text_of(value: Any) -> bytes:
    if isinstance(value, NewJob):
        return value.payload
    return value.result if isinstance(value, Completion) else value.variables


def _effects(records: list[Record]) -> list[tuple[int, int, bytes]]:
    """Everything on a log that only transactions make here: by the texts that they carry."""
    found: list[tuple[int, int, bytes]] = []
    for record in records:
        if record.kind != RecordKind.EVENT:
            continue
        about = (record.value_type, record.intent)
        if about in ((JOB, JobIntent.CREATED), (JOB, JobIntent.COMPLETED)) or about == (
            ValueType.MESSAGE,
            MessageIntent.PUBLISHED,
        ):
            text = _text_of(record.value)
            if b"tx" in text:
                found.append((record.value_type, record.key, text))
        elif about == (ValueType.PROCESS_INSTANCE, InstanceIntent.CREATED):
            began = record.value.ops[0]
            text = b'{"t":%s}' % began.variables["t"]
            if b"tx" in text:
                found.append((record.value_type, record.key, text))
    return found
