"""What the events of batch operations change.

An operation's own row belongs to its leader, whose log tells how it goes on and how it ends. What a
partition does is on that partition's log alone, so it has a row there. To know how far an
operation is, a reader adds up its partitions.
"""

from typing import Any

import msgspec

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationChunkIntent,
    BatchOperationExecutionIntent,
    BatchOperationIntent,
    BatchOperationState,
    Change,
    Chunk,
    Executed,
    OperationEnd,
    PartitionReport,
)
from holdfast.engine.identity.values import OwnerType
from holdfast.engine.plain import as_json
from holdfast.pipeline.changes.rows import Applier, Row, Rows, add
from holdfast.pipeline.schema import (
    BATCH_OPERATION_ITEMS,
    BATCH_OPERATION_PARTITIONS,
    BATCH_OPERATIONS,
)
from holdfast.records import Record, partition_of

_I, _S = BatchOperationIntent, BatchOperationState
_OUTCOMES = ("total", "completed", "failed", "skipped", "canceled")

_encode = msgspec.json.Encoder().encode


def _is_leader(rows: Rows, event: Record) -> bool:
    return partition_of(event.key) == rows.partition


def _operation(rows: Rows, event: Record) -> Row:
    return rows.row(BATCH_OPERATIONS, event.key, event)


def _part(rows: Rows, event: Record) -> Row:
    return rows.row(BATCH_OPERATION_PARTITIONS, (event.key, rows.partition), event)


# --- operations -------------------------------------------------------------------------------


def _created(rows: Rows, event: Record) -> None:
    new: BatchOperation = event.value
    has_part = rows.partition in new.partitions
    if has_part:
        part = _part(rows, event)
        part["state"] = _S.CREATED
        part |= dict.fromkeys(_OUTCOMES, 0)
    if not _is_leader(rows, event):
        return
    row = _operation(rows, event)
    row["type"] = new.type
    row["state"] = _S.CREATED if has_part else _S.ACTIVE
    row["filter"] = new.filter.decode()
    plan = new.modification or new.migration
    if plan is not None:
        row["plan"] = as_json(plan).decode()
    elif new.retries:
        row["plan"] = as_json({"retries": new.retries}).decode()
    row["actor"], row["actor_type"] = _actor(new.claims)
    row["throttle"], row["priority"] = new.throttle, new.priority
    row["partitions"], row["partitions_ended"] = len(new.partitions), 0
    row["selection"] = new.selection.name
    row["repeats"] = new.repeats or None
    row["created"] = event.timestamp_ms
    row |= dict.fromkeys(_OUTCOMES, 0)


def _actor(claims: dict[str, Any] | None) -> tuple[str | None, str | None]:
    """Who it is, by the name that tokens have for it, and of which type."""
    name = (claims or {}).get("sub")
    if not isinstance(name, str):
        return None, None
    return name, str((claims or {}).get("type", OwnerType.USER))


def _entered(state: BatchOperationState) -> Applier:
    def entered(rows: Rows, event: Record) -> None:
        if _is_leader(rows, event):
            _operation(rows, event)["state"] = state

    return entered


def _started(rows: Rows, event: Record) -> None:
    part = _part(rows, event)
    part["state"] = _S.ACTIVE
    part["started"] = event.timestamp_ms
    if _is_leader(rows, event):
        _operation(rows, event)["state"] = _S.ACTIVE


def _changed(rows: Rows, event: Record) -> None:
    new: Change = event.value
    if _is_leader(rows, event):
        row = _operation(rows, event)
        row["throttle"], row["priority"] = new.throttle, new.priority


def _partition_ended(rows: Rows, event: Record) -> None:
    report: PartitionReport = event.value
    if report.partition == rows.partition:
        part = _part(rows, event)
        part["state"] = _S.COMPLETED if report.error is None else _S.FAILED
        part["ended"] = event.timestamp_ms
        if report.error is not None:
            part["error_type"], part["error"] = report.error.type, report.error.message
    if _is_leader(rows, event):
        row = _operation(rows, event)
        add(row, "partitions_ended")
        for outcome in _OUTCOMES:
            add(row, outcome, getattr(report.counts, outcome))


def _completed(rows: Rows, event: Record) -> None:
    end: OperationEnd = event.value
    row = _operation(rows, event)
    row["state"] = end.state
    row["ended"] = event.timestamp_ms
    errors = [
        {"partition": each.partition, "type": each.error.type, "message": each.error.message}
        for each in end.reports
        if each.error is not None
    ]
    if errors:
        row["errors"] = _encode(errors).decode()


# --- items ------------------------------------------------------------------------------------


def _selected(rows: Rows, event: Record) -> None:
    chunk: Chunk = event.value
    type_ = chunk.type or ""
    instances = chunk.instances or (chunk.items if type_.endswith("PROCESS_INSTANCE") else ())
    for at, key in enumerate(chunk.items):
        row = rows.row(BATCH_OPERATION_ITEMS, (key, event.key), event)
        row["type"] = type_
        row["state"] = "ACTIVE"
        if instances and instances[at]:
            row["process_instance_key"] = instances[at]
    add(_part(rows, event), "total", len(chunk.items))


def _executed(rows: Rows, event: Record) -> None:
    done: Executed = event.value
    part = _part(rows, event)
    for outcome in ("completed", "skipped", "canceled"):
        keys: tuple[int, ...] = getattr(done, outcome)
        for key in keys:
            _processed(rows, event, key, outcome.upper())
        add(part, outcome, len(keys))
    for failure in done.failed:
        row = _processed(rows, event, failure.key, "FAILED")
        row["error_code"], row["error"] = failure.code, failure.message
    add(part, "failed", len(done.failed))


def _processed(rows: Rows, event: Record, key: int, state: str) -> Row:
    row = rows.row(BATCH_OPERATION_ITEMS, (key, event.key), event)
    row["state"] = state
    row["processed"] = event.timestamp_ms
    return row


APPLIERS: dict[BatchOperationIntent, Applier] = {
    _I.CREATED: _created,
    _I.STARTED: _started,
    _I.SUSPENDED: _entered(_S.SUSPENDED),
    _I.RESUMED: _entered(_S.ACTIVE),
    _I.CANCELED: _entered(_S.CANCELED),
    _I.CHANGED: _changed,
    _I.PARTITION_COMPLETED: _partition_ended,
    _I.PARTITION_FAILED: _partition_ended,
    _I.COMPLETED: _completed,
}
CHUNK_APPLIERS: dict[BatchOperationChunkIntent, Applier] = {
    BatchOperationChunkIntent.CREATED: _selected,
}
EXECUTION_APPLIERS: dict[BatchOperationExecutionIntent, Applier] = {
    BatchOperationExecutionIntent.EXECUTED: _executed,
}
