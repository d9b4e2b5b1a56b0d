"""FEEL values as JSON, there and back."""

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.model.feel.bounds import WORK_MAX
from holdfast.model.feel.compare import nested
from holdfast.model.feel.problems import FeelError
from holdfast.model.feel.temporal import text_of_temporal
from holdfast.model.feel.values import YearsMonths, an, clean, kind_of

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(float_hook=Decimal)


class _Budget:
    """Counts the parts of one value: a list may contain another one many times over."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = WORK_MAX

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise FeelError(f"The value has more than {WORK_MAX} parts")


def to_json(value: Any) -> Any:
    """What JSON can say of a value: dates, times and durations are texts, as ISO 8601 has them."""
    return _json(value, _Budget(), 0)


def _json(value: Any, budget: _Budget, depth: int) -> Any:
    match value:
        case None | bool() | int() | str() | Decimal():
            return value
        case float():
            return clean(value)
        case dict():
            budget.spend(1 + len(value))
            deeper = nested(depth)
            return {key: _json(item, budget, deeper) for key, item in value.items()}
        case list() | tuple():
            budget.spend(1 + len(value))
            deeper = nested(depth)
            return [_json(item, budget, deeper) for item in value]
        case date() | time() | timedelta() | YearsMonths():
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
