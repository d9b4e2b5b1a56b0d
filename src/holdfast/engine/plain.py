"""Values of records as JSON with names, though they are arrays of numbers on disk."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from holdfast.engine.distribution.values import Continuation, Distribution
from holdfast.engine.partition import TABLES
from holdfast.engine.processes.ops import Op
from holdfast.records import ValueType

# Bytes that are JSON already, because nothing else is let in; they are not looked at again.
_JSON_FIELDS = frozenset({"payload", "result", "variables", "values", "chunks"})

_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> bytes:
    """The value of a record: structs as objects, bytes as the JSON that they hold, else in hex."""
    return _encode(_struct(value) if isinstance(value, msgspec.Struct) else value)


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    fields = {name: plain(getattr(value, name)) for name, plain in _fields(type(value))}
    if isinstance(value, Op):
        return {"op": type(value).__name__, **fields}
    if isinstance(value, Distribution | Continuation):  # it holds a command: that one by name too
        number, intent = value.value_type, value.intent
        fields["value_type"] = ValueType(number).name
        fields["intent"] = TABLES.intent(number, intent).name
        fields["value"] = _struct(TABLES.decode_value(number, intent, value.value))
    return fields


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple(
        (name, _held if name in _JSON_FIELDS else _plain) for name in kind.__struct_fields__
    )


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _held(value: Any) -> Any:
    """JSON goes into JSON as it is."""
    if isinstance(value, bytes):
        return msgspec.Raw(value or b"null")
    if isinstance(value, dict):
        return {name: _held(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_held(item) for item in value]
    return value
