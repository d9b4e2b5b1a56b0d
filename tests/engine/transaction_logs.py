"""What the logs and the states of partitions must say of transactions, whatever has happened.

The logs say which transactions were committed. Of those every operation was done once; of the
others nothing was. What an operation does is known again by a text of its own, with "tx" in it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.engine.families import Tag
from holdfast.engine.jobs.values import Completion, JobIntent, NewJob
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.values import InstanceIntent
from holdfast.engine.transactions.values import (
    TRANSITIONS,
    NewTransaction,
    TransactionIntent,
    TransactionOperation,
    TransactionState,
)
from holdfast.records import Record, RecordKind, ValueType

JOB, TRANSACTION = ValueType.JOB, ValueType.TRANSACTION
_LEFT_OVER = {Tag.TRANSACTIONS_PREPARED, Tag.TRANSACTION_NAMES, Tag.TRANSACTION_COUNTS}


class Known(NamedTuple):
    """A transaction as the logs tell it."""

    key: int
    operations: tuple[TransactionOperation, ...]
    state: TransactionState
    keys: tuple[int, ...]
    refused: tuple[Any, ...]


def check_logs(logs: Mapping[int, list[Record]]) -> list[Known]:
    """All of a transaction is done, each operation once, or nothing; gives those decided."""
    known = [each for log in logs.values() for each in _decided(log)]
    expected: Counter[tuple[Any, ...]] = Counter()
    for each in known:
        if each.state == TransactionState.COMMITTED:
            for key, one in zip(each.keys, each.operations, strict=True):
                expected[(one.partition, one.value_type, key, _text(one))] += 1
    found = Counter((number, *each) for number, log in logs.items() for each in _effects(log))
    assert found == expected, (found - expected, expected - found)
    return known


def check_state(view: Any, dump: list[tuple[bytes, bytes]]) -> None:
    """Nothing is reserved any more, and leases and jobs fit together."""
    left = Counter(Tag(raw[2]).name for raw, _ in dump if raw[2] in _LEFT_OVER)
    assert not left, f"left over: {dict(left)}"
    jobs, leases = view.jobs, dict(view.jobs.leases.scan())
    assert all(lease.deadline_ms for lease in leases.values()), "a job is reserved still"
    assert {lease for _, lease in jobs.active.scan()} == set(leases)
    for key, count in jobs._open.scan():
        assert count == sum(by == key for _, by in jobs.active.scan())
    for _, row in view.transactions.known.scan():
        assert row.outcome is not None and not row.waiting_for and not row.failed, row


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
