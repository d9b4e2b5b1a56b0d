"""Records as people and programs read them: names for numbers, JSON for payloads."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.engine.plain import as_json
from holdfast.engine.telling import intent_name
from holdfast.records import Record, RecordKind, ValueType, partition_of

# How much of a value a line shows; --full and --json show all.
_TEXT_CHARS_MAX = 80
_ITEMS_MAX = 8
_FIELDS_MAX = 12
_DEPTH_MAX = 3


def view_of(partition: int, record: Record) -> dict[str, Any]:
    """A record with its fields by name, ready to be JSON. Keys are strings, as in the API."""
    view: dict[str, Any] = {
        "partition": partition,
        "position": record.position,
        "kind": RecordKind(record.kind).name,
        "valueType": ValueType(record.value_type).name,
        "intent": intent_name(record.value_type, record.intent),
        "key": str(record.key),
        "sourcePosition": record.source_position,
        "timestamp": datetime.fromtimestamp(record.timestamp_ms / 1000, UTC),
        "value": _plain(record.value),
    }
    if record.claims is not None:
        view["claims"] = record.claims
    if record.delivery is not None:
        view["delivery"] = _plain(record.delivery)
    if record.rejection is not None:
        view["rejection"] = {"code": record.rejection.code, "reason": record.rejection.reason}
    return view


def line_of(view: dict[str, Any], *, full: bool = False) -> str:
    """A record on one line; long texts, lists and payloads in it shortened, unless in full."""
    when = view["timestamp"].astimezone().strftime("%H:%M:%S.%f")[:-3]
    subject = f"{view['valueType']} {view['intent']}"
    key = "" if view["key"] == "0" else view["key"]
    value = view.get("rejection") or view["value"]
    place = f"{view['partition']}/{view['position']}"
    text = msgspec.json.encode(value if full else _shortened(value)).decode()
    if view.get("delivery"):
        text = f"{_came(view)} {text}"
    if asker := (view.get("claims") or {}).get("sub"):
        text = f"by {asker!r} {text}"
    return f"{place:<10} {when}  {view['kind']:<9} {subject:<26} {key:<17} {text}"


def _shortened(value: Any, depth: int = 0) -> Any:
    """A value whose long parts end in how much more there is. Keys are short, and stay whole."""
    match value:
        case str() if len(value) > _TEXT_CHARS_MAX:
            return f"{value[:_TEXT_CHARS_MAX]}… {len(value) - _TEXT_CHARS_MAX:,} characters more"
        case list() if len(value) > _ITEMS_MAX or depth > _DEPTH_MAX:
            kept = _ITEMS_MAX if depth <= _DEPTH_MAX else 0
            few = [_shortened(each, depth + 1) for each in value[:kept]]
            return [*few, f"… {len(value) - kept:,} more"] if len(value) > kept else few
        case list():
            return [_shortened(each, depth + 1) for each in value]
        case dict():
            kept = _FIELDS_MAX if depth <= _DEPTH_MAX else 0
            names = list(value) if depth == 0 else list(value)[:kept]  # a record's own are few
            shown = {name: _shortened(value[name], depth + 1) for name in names}
            if len(value) > len(names):
                shown["…"] = f"{len(value) - len(names):,} more"
            return shown
        case _:
            return value


def _came(view: dict[str, Any]) -> str:
    """How a command came that another partition distributed."""
    delivery = view["delivery"]
    queue = f" in queue {delivery['queue']!r}" if delivery["queue"] else ""
    attempt = f", attempt {delivery['attempt']}" if delivery["attempt"] > 1 else ""
    return f"from partition {partition_of(int(view['key']))}{queue}{attempt}"


def names_key(record: Record, key: int) -> bool:
    """Whether a record is about a key: as its subject, or as one of many jobs or distributions."""
    value = record.value
    if key in (record.key, getattr(value, "job_key", None)):
        return True
    return key in getattr(value, "jobs", ()) or key in getattr(value, "keys", ())


def _plain(value: Any) -> Any:
    """A value as the objects and lists that its JSON says."""
    return msgspec.json.decode(as_json(value))
