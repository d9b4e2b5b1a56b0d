"""Every record as a row of the history."""

from typing import Any

import msgspec

from holdfast.engine.distribution.values import Distribution
from holdfast.engine.identity.values import Token, User
from holdfast.engine.partition import DOMAINS
from holdfast.engine.plain import as_json
from holdfast.pipeline.changes.rows import Rows
from holdfast.pipeline.schema import RECORDS
from holdfast.records import Record, RecordKind, ValueType

_KINDS = {int(kind): kind.name for kind in RecordKind}
_VALUE_TYPES = {int(value_type): value_type.name for value_type in ValueType}
_INTENTS = {
    (int(domain.value_type), int(intent)): intent.name
    for domain in DOMAINS
    for intent in domain.intents
}
_encode = msgspec.json.Encoder().encode


def append(rows: Rows, record: Record) -> None:
    rows.history[RECORDS.name].append(row_of(rows.partition, record))


def row_of(partition: int, record: Record) -> dict[str, Any]:
    """A record as a row of the table."""
    row: dict[str, Any] = {
        "position": record.position,
        "partition_id": partition,
        "kind": _KINDS[record.kind],
        "value_type": _VALUE_TYPES[record.value_type],
        "intent": _INTENTS[record.value_type, record.intent],
        "key": record.key,
        "source_position": record.source_position,
        "timestamp": record.timestamp_ms,
    }
    if record.value is not None:
        row["value"] = as_json(_shown(record.value)).decode()
    if record.claims is not None:
        row["claims"] = _encode(record.claims).decode()
    if record.rejection is not None:
        row["rejection_code"] = str(record.rejection.code)
        row["rejection_reason"] = record.rejection.reason
    if record.delivery is not None:
        row["queue"] = record.delivery.queue
        row["attempt"] = record.delivery.attempt
    return row


def _shown(value: Any) -> Any:
    """A value without what passwords and tokens are recognised by: tables are for many readers."""
    match value:
        case User():
            return msgspec.structs.replace(value, password=b"")
        case Token():
            return msgspec.structs.replace(value, digest=b"", basis="")
        case Distribution() if value.value_type in (ValueType.USER, ValueType.TOKEN):
            return msgspec.structs.replace(value, value=b"")
        case _:
            return value
