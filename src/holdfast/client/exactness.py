"""What JSON cannot carry is found in a user's values, with its place; what it carries is exact.

JSON has no NaN, no infinities and no bytes. msgspec would write null for the first two and base64
text for the third, and a reader could not tell them apart. Numbers keep all their digits: a Decimal
is a number, and where no type says what to read, a number that a float cannot hold exactly becomes
a Decimal.
"""

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from holdfast.errors import InvalidArgument

DIGITS_EXACT = 15  # so many decimal digits every float keeps

_BYTES = (bytes, bytearray, memoryview)
PLAIN = frozenset({str, int, bool, type(None)})  # can be neither wrong nor hold anything
_TIMES = {datetime, date, time, timedelta}
_SINGLE = PLAIN | _TIMES | {float, Decimal, UUID}  # hold nothing; a wrong number shows in the JSON
_LISTS = (list, tuple, set, frozenset)
_OPEN = (Any, object, dict, *_LISTS)  # annotations that say nothing of what is inside


def is_plain(value: Any) -> bool:
    """Whether a value can be neither wrong nor hold anything, or is a dict of such values."""
    if type(value) in PLAIN:
        return True
    if type(value) is not dict:
        return False
    for key, held in value.items():  # noqa: SIM110, a generator takes four times as long
        if type(key) is not str or type(held) not in PLAIN:
            return False
    return True


def has_suspects(data: bytes) -> bool:
    """Whether JSON may come from a NaN or an infinity, of a float or a Decimal."""
    return b"null" in data or b"NaN" in data or b"Infinity" in data


def check_bytes(value: Any, place: str) -> None:
    """InvalidArgument if there are bytes in a value that nothing says to be bytes."""
    if _may_hold_bytes(value):
        _refuse_first(_bytes_in(value, place))


def check_numbers(value: Any, place: str) -> None:
    """InvalidArgument if there is a number in a value that JSON does not know."""
    _refuse_first(_numbers_in(value, place))


def refuse_other(value: Any, place: str, encode: Callable[[Any], bytes]) -> None:
    """InvalidArgument with the place of what has no form in JSON at all."""
    for each, where in _walk(value, place, into_bytes_fields=True):
        try:
            encode(each)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{where}: {error}") from error


def _refuse_first(found: Iterator[str]) -> None:
    for reason in found:
        raise InvalidArgument(reason)


# --- bytes ------------------------------------------------------------------------------------


def _may_hold_bytes(value: Any) -> bool:
    """Whether a closer look is needed; quick for what is mostly sent."""
    single = _SINGLE
    todo = [value]
    for each in todo:  # which grows meanwhile
        kind = type(each)
        if kind is dict:
            for key in each:
                if type(key) not in single:
                    return True
            held = each.values()
        elif kind in _LISTS:
            held = each
        elif kind in single:
            continue
        else:
            return True
        todo += [inner for inner in held if type(inner) not in single]
    return False


def _bytes_in(value: Any, place: str) -> Iterator[str]:
    for each, where in _walk(value, place):
        if isinstance(each, _BYTES):
            yield (
                f"{where}: expected a value that JSON carries, but found {type(each).__name__};"
                " annotate it as bytes on both sides, or send text"
            )


# --- numbers ----------------------------------------------------------------------------------


def _numbers_in(value: Any, place: str) -> Iterator[str]:
    for each, where in _walk(value, place, into_bytes_fields=True):
        if isinstance(each, float) and not math.isfinite(each):
            yield f"{where}: {_shown(each)} is not a number that JSON can carry"
        elif isinstance(each, Decimal) and not each.is_finite():
            yield f"{where}: {each} is not a number that JSON can carry"


def _shown(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


# --- every part of a value, with its place ----------------------------------------------------


def _walk(value: Any, place: str, *, into_bytes_fields: bool = False) -> Iterator[tuple[Any, str]]:
    """Every single value in a value. What a field is annotated with as bytes may be bytes."""
    todo: list[tuple[Any, str]] = [(value, place)]
    while todo:
        each, where = todo.pop()
        if isinstance(each, Mapping):
            for key, held in reversed(each.items()) if isinstance(each, dict) else each.items():
                inner = f"{where}.{key}" if where else str(key)
                todo.append((held, inner))
                todo.append((key, f"a key of {where or 'the value'}"))
        elif isinstance(each, list | tuple | set | frozenset):
            held = list(each)
            todo += [(held[at], f"{where}[{at}]") for at in range(len(held) - 1, -1, -1)]
        elif (fields := _fields(type(each))) is not None:
            for name, is_bytes in fields:
                if into_bytes_fields or not is_bytes:
                    held = getattr(each, name, None)
                    todo.append((held, f"{where}.{name}" if where else name))
        else:
            yield each, where or "the value"


@lru_cache(maxsize=1_024)
def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...] | None:
    """The fields of a class of values, and which may be bytes; None for other classes."""
    if issubclass(kind, msgspec.Struct):
        names: tuple[str, ...] = kind.__struct_fields__
    elif dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    elif hasattr(kind, "__attrs_attrs__"):
        names = tuple(field.name for field in kind.__attrs_attrs__)
    elif is_pydantic(kind):  # what becomes of bytes in it is its own matter
        return tuple((name, True) for name in kind.__pydantic_fields__)
    else:
        return None
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError):
        hints = {}
    return tuple((name, _says_bytes(hints.get(name, Any))) for name in names)


def is_pydantic(kind: Any) -> bool:
    """Whether a class is a model of pydantic, which need not be imported to tell."""
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate_json")


def is_open(hint: Any) -> bool:
    """Whether an annotation leaves open what a value, or a part of it, is: bytes would be lost."""
    return not _says_bytes(hint) and _leaves_open(hint)


def _says_bytes(hint: Any) -> bool:
    """Whether an annotation says that a value is bytes, or holds some, and they come back so."""
    return _mentions_bytes(hint) and is_known(hint)


def _mentions_bytes(hint: Any) -> bool:
    return hint in _BYTES or any(map(_mentions_bytes, typing.get_args(hint)))


def _leaves_open(hint: Any) -> bool:
    if hint in _OPEN or not is_known(hint):
        return True
    if isinstance(hint, type) and _fields(hint) is not None:
        return True  # what its own fields say is looked at with each value
    return any(each is not Ellipsis and _leaves_open(each) for each in typing.get_args(hint))


def is_known(hint: Any) -> bool:
    """Whether msgspec can read a value of this type."""
    try:
        msgspec.json.Decoder(hint)
    except TypeError:
        return False
    return True


# --- back -------------------------------------------------------------------------------------


def number_of(text: str) -> float | Decimal:
    """A number with a fraction or an exponent: a float if it is exactly what was written."""
    number = float(text)
    if len(text) <= DIGITS_EXACT and text.isascii() and "e" not in text and "E" not in text:
        return number
    exact = Decimal(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == exact else exact
