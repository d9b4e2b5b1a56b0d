"""Records of the log as they are told to people: names for numbers, JSON for values."""

from typing import Any

import msgspec

from holdfast.engine.partition import DISPATCH, DOMAINS
from holdfast.engine.plain import as_json
from holdfast.errors import InvalidArgument
from holdfast.records import Record, RecordKind, ValueType

INTENTS: dict[str, list[str]] = {
    ValueType(domain.value_type).name: [intent.name for intent in domain.intents]
    for domain in DOMAINS
}
"""The intents of each value type, by their names."""

_NAMES = {
    (int(domain.value_type), int(intent)): intent.name
    for domain in DOMAINS
    for intent in domain.intents
}


class ToldRecord(msgspec.Struct, frozen=True):
    """A record with its words."""

    record: Record[Any]
    kind: str
    value_type: str
    intent: str
    value: bytes  # JSON


def told(payload: bytes) -> ToldRecord:
    """The record in an entry of the log."""
    record = DISPATCH.codec.decode(payload)
    return ToldRecord(
        record,
        RecordKind(record.kind).name,
        ValueType(record.value_type).name,
        intent_name(record.value_type, record.intent),
        as_json(record.value),
    )


def intent_name(value_type: int, intent: int) -> str:
    """The name of an intent."""
    return _NAMES[value_type, intent]


def subjects_of(value_type: str | None, intent: str | None) -> tuple[tuple[int, int], ...] | None:
    """The value types and intents that are asked for by name; None for all of them."""
    if value_type is None and intent is None:
        return None
    if value_type is not None and value_type not in INTENTS:
        raise InvalidArgument(
            f"Expected a value type, one of {', '.join(INTENTS)}, but found {value_type!r}",
            field="valueType",
        )
    found = tuple(
        (number, of_type)
        for (number, of_type), name in _NAMES.items()
        if value_type in (None, ValueType(number).name) and intent in (None, name)
    )
    if not found:
        known = INTENTS[value_type] if value_type else sorted(set(_NAMES.values()))
        raise InvalidArgument(
            f"Expected an intent, one of {', '.join(known)}, but found {intent!r}", field="intent"
        )
    return found
