"""Records as people and programs read them: names for numbers, JSON for payloads."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.engine.partition import DOMAINS
from holdfast.engine.processes.ops import Op
from holdfast.records import Record, RecordKind, ValueType

_INTENTS = {
    (int(domain.value_type), int(intent)): intent.name
    for domain in DOMAINS
    for intent in domain.intents
}


def view_of(partition: int, record: Record) -> dict[str, Any]:
    """A record with its fields by name, ready to be JSON. Keys are strings, as in the API."""
    view: dict[str, Any] = {
        "partition": partition,
        "position": record.position,
        "kind": RecordKind(record.kind).name,
        "valueType": ValueType(record.value_type).name,
        "intent": _INTENTS[record.value_type, record.intent],
        "key": str(record.key),
        "sourcePosition": record.source_position,
        "timestamp": datetime.fromtimestamp(record.timestamp_ms / 1000, UTC),
        "value": _plain(record.value),
    }
    if record.rejection is not None:
        view["rejection"] = {"code": record.rejection.code, "reason": record.rejection.reason}
    return view


def line_of(view: dict[str, Any]) -> str:
    """A record on one line."""
    when = view["timestamp"].astimezone().strftime("%H:%M:%S.%f")[:-3]
    subject = f"{view['valueType']} {view['intent']}"
    key = "" if view["key"] == "0" else view["key"]
    value = view.get("rejection") or view["value"]
    place = f"{view['partition']}/{view['position']}"
    text = msgspec.json.encode(value).decode()
    return f"{place:<10} {when}  {view['kind']:<9} {subject:<19} {key:<17} {text}"


def names_key(record: Record, key: int) -> bool:
    """Whether a record is about a key: as its subject, or as one of many jobs."""
    jobs = getattr(record.value, "jobs", ())
    return key in (record.key, getattr(record.value, "job_key", None)) or key in jobs


def _plain(value: Any) -> Any:
    """Structs as objects, though they are arrays on disk; bytes as the JSON that they hold."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return {"op": type(value).__name__, **fields} if isinstance(value, Op) else fields
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value.hex()
    return value
