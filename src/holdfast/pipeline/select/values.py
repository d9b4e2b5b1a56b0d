"""The values of a filter: what a column may be compared with, and how JSON says it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from holdfast.errors import InvalidArgument
from holdfast.limits import FILTER_TEXT_CHARS_MAX
from holdfast.pipeline.schema import ColumnKind
from holdfast.pipeline.select.tree import Value

_SHOWN_CHARS_MAX = 80
_BITS = {ColumnKind.LONG: 64, ColumnKind.INT: 32}
_DIGITS = re.compile(r"-?[0-9]{1,19}")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refuse(field: str, expected: str, found: Any) -> NoReturn:
    """The error that names the field."""
    raise InvalidArgument(
        f"Expected {expected} for {shown(field)}, but found {shown(found)}",
        field=field if len(field) <= _SHOWN_CHARS_MAX else field[:_SHOWN_CHARS_MAX],
    )


def shown(found: Any) -> str:
    """What was found, as far as a person wants to see it."""
    if isinstance(found, str):
        found = found if len(found) <= _SHOWN_CHARS_MAX else f"{found[:_SHOWN_CHARS_MAX]}…"
        return ascii(found) if not found.isprintable() else repr(found)
    if isinstance(found, dict):
        return "an object"
    if isinstance(found, list | tuple):
        return f"a list of {len(found)}"
    if isinstance(found, int) and not isinstance(found, bool) and found.bit_length() > 64:
        return f"a number of {found.bit_length()} bits"
    return "null" if found is None else repr(found)[:_SHOWN_CHARS_MAX]


def value_of(field: str, kind: ColumnKind, found: Any) -> Value:
    """The value in the form that the tree has."""
    match kind:
        case ColumnKind.LONG | ColumnKind.INT:
            return _number(field, kind, found)
        case ColumnKind.TIME:
            return _time(field, found)
        case ColumnKind.FLAG:
            return found if isinstance(found, bool) else refuse(field, "true or false", found)
        case ColumnKind.TEXT:
            return text_of(field, found, FILTER_TEXT_CHARS_MAX)
        case ColumnKind.BYTES:
            refuse(field, "$exists, as it holds bytes,", found)


def text_of(field: str, found: Any, chars_max: int) -> str:
    """A text that every store can hold."""
    if not isinstance(found, str):
        refuse(field, "a text", found)
    if len(found) > chars_max:
        refuse(field, f"a text of at most {chars_max} characters", found)
    try:
        found.encode()
    except UnicodeEncodeError:
        refuse(field, "a text without half characters", found)
    return found


def _number(field: str, kind: ColumnKind, found: Any) -> int:
    # A key is a text in JSON, as it does not fit a number of JavaScript.
    if kind is ColumnKind.LONG and isinstance(found, str) and _DIGITS.fullmatch(found):
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool):
        expected = "a key or a whole number" if kind is ColumnKind.LONG else "a whole number"
        refuse(field, expected, found)
    bits = _BITS[kind]
    if not -(1 << (bits - 1)) <= found < 1 << (bits - 1):
        refuse(field, f"a whole number of at most {bits} bits", found)
    return found


def _time(field: str, found: Any) -> int:
    """Microseconds since the epoch; what is finer is left out."""
    expected = "a time like 2026-01-31T12:00:00.000Z"
    if not isinstance(found, str) or not _TIME.fullmatch(found):
        refuse(field, expected, found)
    try:
        moment = datetime.fromisoformat(found.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        refuse(field, expected, found)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
