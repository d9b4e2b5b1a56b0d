"""FEEL values as JSON, there and back."""

from datetime import date, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any

import msgspec

from holdfast.limits import VARIABLES_BYTES_MAX
from holdfast.model.feel.bounds import VALUE_PARTS_MAX
from holdfast.model.feel.compare import nested
from holdfast.model.feel.numeric import whole
from holdfast.model.feel.problems import FeelError
from holdfast.model.feel.temporal import text_of_temporal
from holdfast.model.feel.values import YearsMonths, an, clean, kind_of
from holdfast.model.feel.wide import Wide

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(float_hook=lambda text: whole(Decimal(text)))

CONTAINER_PARTS = 6
PLAIN = frozenset({int, bool, NoneType, Decimal})  # as they are in JSON, and short


class _Budget:
    """Counts what one value takes: a list may contain another one, or a text, many times over."""

    __slots__ = ("bytes", "parts")

    def __init__(self) -> None:
        self.parts = VALUE_PARTS_MAX
        self.bytes = VARIABLES_BYTES_MAX

    def inside(self, items: int) -> None:
        """Count a list or a context, which takes as long as a few items, with what is in it."""
        self.parts -= CONTAINER_PARTS + items
        self.bytes -= items  # each has at least a character
        if self.parts < 0:
            raise FeelError(f"The value has more than {VALUE_PARTS_MAX} parts")
        self._checked()

    def text(self, text: str) -> str:
        """A text as it is, once its characters are counted; each takes a byte or more."""
        self.bytes -= len(text)
        self._checked()
        return text

    def _checked(self) -> None:
        if self.bytes < 0:
            raise FeelError(f"The value takes more than {VARIABLES_BYTES_MAX} bytes as JSON")


def to_json(value: Any) -> Any:
    """What JSON can say of a value: dates, times and durations are texts, as ISO 8601 has them."""
    return _json(value, _Budget(), 0)


def _json(value: Any, budget: _Budget, depth: int) -> Any:
    match value:
        case str():
            return budget.text(value)
        case None | bool() | int() | Decimal():
            return value
        case float():
            return clean(value)
        case dict():
            budget.inside(len(value))
            deeper = nested(depth)
            return {budget.text(key): _json(item, budget, deeper) for key, item in value.items()}
        case list() | tuple():
            budget.inside(len(value))
            deeper = nested(depth)
            return [item if type(item) in PLAIN else _json(item, budget, deeper) for item in value]
        case date() | time() | timedelta() | YearsMonths() | Wide():
            return text_of_temporal(value)
        case _:
            raise FeelError(f"Expected a value that JSON has, but found {an(kind_of(value))}")


def encode_json(value: Any) -> bytes:
    """A value as JSON bytes, the same for the same value; numbers keep all their digits."""
    return _encoder.encode(to_json(value))


def decode_json(data: bytes) -> Any:
    """The value that JSON bytes stand for; numbers with a point are decimals."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, ArithmeticError, ValueError) as wrong:
        raise FeelError(f"Expected JSON, but found: {wrong}") from None
    except RecursionError:
        raise FeelError("Expected JSON of less nesting") from None
