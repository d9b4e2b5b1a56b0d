"""What can be asked of the transactions of a partition."""

from itertools import islice

import msgspec

from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.engine.transactions.values import (
    RefusedOperation,
    TransactionAnswer,
    TransactionOperation,
    TransactionState,
)
from holdfast.limits import QUERY_ROWS_MAX


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


class FoundTransaction(_Answer, frozen=True):
    """A transaction as its home has it."""

    key: int
    state: TransactionState
    begun_ms: int
    decided_ms: int = 0
    timeout_ms: int = 0
    partitions: tuple[int, ...] = ()
    operations: tuple[TransactionOperation, ...] = ()  # while it is open
    keys: tuple[int, ...] = ()
    refused: tuple[RefusedOperation, ...] = ()
    missing: tuple[int, ...] = ()  # partitions that have not voted, or not acknowledged
    failed: tuple[RefusedOperation, ...] = ()


class FindTransaction(Query[FoundTransaction | None], frozen=True):
    """A transaction by its key, for the operators of the node."""

    key: int


def find_transaction(reader: Reader, query: FindTransaction) -> FoundTransaction | None:
    row = reader.state.transactions.known.get(query.key)
    if row is None:
        return None
    if row.outcome is not None:
        outcome = row.outcome
        return FoundTransaction(
            query.key, row.state, row.begun_ms, row.decided_ms, 0, outcome.partitions, (),
            outcome.keys, outcome.refused, row.waiting_for, row.failed,
        )  # fmt: skip
    assert row.new is not None, "it is open, or it has an outcome"
    partitions = tuple(sorted({each.partition for each in row.new.operations}))
    voted = {reader.partition, *(each.partition for each in row.votes)}
    bare = tuple(msgspec.structs.replace(each, value=b"") for each in row.new.operations)
    return FoundTransaction(
        query.key, row.state, row.begun_ms, 0, row.new.timeout_ms, partitions, bare,
        refused=tuple(each for vote in row.votes for each in vote.refused),
        missing=tuple(each for each in partitions if each not in voted),
    )  # fmt: skip


class FindDecision(Query[TransactionAnswer | None], frozen=True):
    """What became of a transaction, for its client; None: it is unknown or forgotten."""

    key: int


def find_decision(reader: Reader, query: FindDecision) -> TransactionAnswer | None:
    row = reader.state.transactions.known.get(query.key)
    if row is None:
        return None
    if row.outcome is None:
        return TransactionAnswer(TransactionState.OPEN)
    return TransactionAnswer(row.state, row.outcome.keys, row.outcome.refused)


class TransactionRows(_Answer, frozen=True):
    """Some transactions, and behind which key to go on; 0 if there are no more."""

    items: list[FoundTransaction]
    next_after: int = 0


class ListTransactions(Query[TransactionRows], frozen=True):
    """Transactions behind a key that are not done everywhere; a bounded look."""

    after: int
    limit: int


def list_transactions(reader: Reader, query: ListTransactions) -> TransactionRows:
    items: list[FoundTransaction] = []
    key = looked_at = 0
    rows = reader.state.transactions.known.scan(start=query.after + 1)
    for key, row in islice(rows, QUERY_ROWS_MAX):
        looked_at += 1
        if row.outcome is not None and not row.waiting_for:
            continue
        found = find_transaction(reader, FindTransaction(key))
        assert found is not None
        items.append(msgspec.structs.replace(found, operations=()))
        if len(items) == query.limit:
            return TransactionRows(items, key)
    return TransactionRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


QUERIES = questions(find_transaction, find_decision, list_transactions)
