"""What the events of transactions change, on the log of the partition that decides them."""

import msgspec

from holdfast.engine.transactions.values import (
    NewTransaction,
    TransactionIntent,
    TransactionOutcome,
)
from holdfast.pipeline.changes.rows import Applier, Rows, add
from holdfast.pipeline.schema import TRANSACTIONS
from holdfast.records import Record

_encode = msgspec.json.Encoder().encode


def _begun(rows: Rows, event: Record) -> None:
    new: NewTransaction = event.value
    row = rows.row(TRANSACTIONS, event.key, event)
    row["state"] = "OPEN"
    row["operations"] = len(new.operations)
    row["partitions"] = len({each.partition for each in new.operations})
    row["votes"] = row["acknowledged"] = 0
    row["begun"] = event.timestamp_ms


def _voted(rows: Rows, event: Record) -> None:
    add(rows.row(TRANSACTIONS, event.key, event), "votes")


def _decided(rows: Rows, event: Record) -> None:
    outcome: TransactionOutcome = event.value
    row = rows.row(TRANSACTIONS, event.key, event)
    row["state"] = TransactionIntent(event.intent).name
    row["operations"] = outcome.operations
    row["partitions"] = len(outcome.partitions)
    row["begun"] = outcome.begun_ms
    row["decided"] = event.timestamp_ms
    if outcome.refused:
        told = [
            {"operation": each.operation, "code": each.code, "reason": each.reason}
            for each in outcome.refused
        ]
        row["refused"] = _encode(told).decode()


def _acknowledged(rows: Rows, event: Record) -> None:
    add(rows.row(TRANSACTIONS, event.key, event), "acknowledged")


APPLIERS: dict[TransactionIntent, Applier] = {
    TransactionIntent.BEGUN: _begun,
    TransactionIntent.VOTED: _voted,
    TransactionIntent.COMMITTED: _decided,
    TransactionIntent.ABORTED: _decided,
    TransactionIntent.ACKNOWLEDGED: _acknowledged,
}
