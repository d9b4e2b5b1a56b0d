"""Folds records of one partition, in their order, into the rows that they change.

A row is folded as a dictionary of the columns that were set: what is not in it stays as the table
has it. Within one fold a job that is created, leased and completed is one row, written once.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.engine.partition import DISPATCH as ENGINE
from holdfast.errors import DataLoss
from holdfast.journal import Entry
from holdfast.pipeline.changes import (
    batches,
    distributions,
    incidents,
    jobs,
    messages,
    processes,
    records,
    transactions,
)
from holdfast.pipeline.changes.rows import Applier, Rows
from holdfast.pipeline.schema import QUARANTINE
from holdfast.records import Record, RecordKind, ValueType

_EVENT = RecordKind.EVENT

APPLIERS: dict[tuple[int, int], Applier] = {
    (int(value_type), int(intent)): applier
    for value_type, appliers in (
        (ValueType.JOB, jobs.APPLIERS),
        (ValueType.JOB_BATCH, jobs.BATCH_APPLIERS),
        (ValueType.INCIDENT, incidents.APPLIERS),
        (ValueType.PROCESS, processes.DEFINITION_APPLIERS),
        (ValueType.PROCESS_INSTANCE, processes.APPLIERS),
        (ValueType.MESSAGE, messages.APPLIERS),
        (ValueType.MESSAGE_SUBSCRIPTION, messages.SUBSCRIPTION_APPLIERS),
        (ValueType.DISTRIBUTION, distributions.APPLIERS),
        (ValueType.TRANSACTION, transactions.APPLIERS),
        (ValueType.BATCH_OPERATION, batches.APPLIERS),
        (ValueType.BATCH_OPERATION_CHUNK, batches.CHUNK_APPLIERS),
        (ValueType.BATCH_OPERATION_EXECUTION, batches.EXECUTION_APPLIERS),
    )
    for intent, applier in appliers.items()
}


def fold(entries: Sequence[Entry], rows: Rows) -> None:
    """Takes entries of the log into the rows; what is no record goes into quarantine."""
    for record in decoded(entries):
        if isinstance(record, Unreadable):
            rows.history[QUARANTINE.name].append(_quarantined(rows.partition, record))
            continue
        records.append(rows, record)
        if record.kind is _EVENT:
            applier = APPLIERS.get((record.value_type, record.intent))
            if applier is not None:
                applier(rows, record)


class Unreadable(NamedTuple):
    """An entry that is no record."""

    entry: Entry
    reason: str


def decoded(entries: Sequence[Entry]) -> list[Record | Unreadable]:
    """The records in entries of the log, in one go if all of them are records."""
    codec = ENGINE.codec
    try:
        return list(codec.decode_many([entry.payload for entry in entries]))
    except DataLoss:
        return [_decoded(entry) for entry in entries]


def _decoded(entry: Entry) -> Record | Unreadable:
    try:
        return ENGINE.codec.decode(entry.payload)
    except DataLoss as error:
        return Unreadable(entry, error.message)


def _quarantined(partition: int, unreadable: Unreadable) -> dict[str, Any]:
    return {
        "position": unreadable.entry.offset,
        "partition_id": partition,
        "bytes": unreadable.entry.payload,
        "error": unreadable.reason,
        "timestamp": unreadable.entry.timestamp_ms,
    }
