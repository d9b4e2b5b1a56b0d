"""Values of records as JSON with names, though they are arrays of numbers on disk."""

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, get_args

import msgspec

from holdfast.engine.distribution.values import Continuation, Distribution
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.ops import Op
from holdfast.engine.transactions.values import TransactionOperation
from holdfast.records import ValueType

# Bytes that are JSON already, because nothing else is let in; they are not looked at again.
_JSON_FIELDS = frozenset({"payload", "result", "variables", "values", "chunks", "filter"})
_TEXT_FIELDS = frozenset({"source"})
_SECRET_FIELDS = frozenset({"password"})  # a reader of the log has no use for what is kept of it
_OPS = frozenset(get_args(Op))
_HOLDERS = (Distribution, Continuation, TransactionOperation)

_encode = msgspec.json.Encoder().encode
_astuple = msgspec.structs.astuple


def as_json(value: Any) -> bytes:
    """The value of a record: structs as objects, bytes as the JSON that they hold, else in hex."""
    return _encode(_struct(value) if isinstance(value, msgspec.Struct) else value)


class _Plan(NamedTuple):
    """How the structs of one kind are told."""

    names: tuple[str, ...]
    first: dict[str, str]  # what stands before the fields
    special: tuple[
        tuple[str, Callable[[Any], Any]], ...
    ]  # fields that JSON cannot have as they are


@cache
def _plan(kind: type[msgspec.Struct]) -> _Plan:
    special = tuple(
        (field.name, _teller(field.name))
        for field in msgspec.structs.fields(kind)
        if not _is_plain(field.type)
    )
    return _Plan(kind.__struct_fields__, {"op": kind.__name__} if kind in _OPS else {}, special)


def _is_plain(kind: Any) -> bool:
    if arguments := get_args(kind):
        return all(_is_plain(each) for each in arguments if each is not Ellipsis)
    return kind in (int, str, bool, float, type(None), Any) or (
        isinstance(kind, type) and issubclass(kind, Enum)
    )


def _teller(name: str) -> Callable[[Any], Any]:
    if name in _SECRET_FIELDS:
        return _hidden
    return _held if name in _JSON_FIELDS else _text if name in _TEXT_FIELDS else _plain


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    plan = _plan(type(value))
    fields: dict[str, Any] = plan.first | dict(zip(plan.names, _astuple(value), strict=True))
    for name, tell in plan.special:
        fields[name] = tell(fields[name])
    if isinstance(value, _HOLDERS):  # it holds a command: that one by name too
        fields |= _command(value)
    return fields


def _command(held: Distribution | Continuation | TransactionOperation) -> dict[str, Any]:
    """A command inside a value; one that cannot be read stays as it is."""
    number, intent = held.value_type, held.intent
    try:
        value = _struct(DISPATCH.decode_value(number, intent, held.value))
    except (msgspec.MsgspecError, LookupError, ValueError):
        return {}
    name = DISPATCH.intent(number, intent).name
    return {"value_type": ValueType(number).name, "intent": name, "value": value}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
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


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _hidden(value: bytes) -> str:
    return "(hidden)" if value else ""
