"""The values of FEEL, and the words for their types.

Null, booleans, strings, lists and contexts are Python's None, bool, str, list and dict; numbers are
int while exact and Decimal otherwise; dates, times and durations of days are those of `datetime`,
or of `wide` where those do not reach. What Python has no word for is here.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any

import msgspec

from holdfast.model.feel.bounds import VALUE_CHARS_SHOWN
from holdfast.model.feel.numeric import from_float
from holdfast.model.feel.wide import WideDate, WideMoment, WideSpan, WideTime


class YearsMonths(msgspec.Struct, frozen=True, order=True):
    """A duration of years and months, which has no length in days."""

    months: int  # in all; negative when it reaches back

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        sign = "-" if self.months < 0 else ""
        text = (f"{years}Y" if years else "") + (f"{months}M" if months else "")
        return f"{sign}P{text or '0M'}"


class Range(msgspec.Struct, frozen=True):
    """All values between two; an end that is None is open."""

    start: Any
    end: Any
    start_included: bool = True
    end_included: bool = True
    symbol: str = ""  # `=` or `!=` where that is how it was written: one value, or all others


class Function(msgspec.Struct, frozen=True, eq=False):
    """A function that an expression defines, with the values that it saw when it was made."""

    parameters: tuple[str, ...]
    call: Callable[..., Any]  # (run, *arguments)
    types: tuple[Any, ...] = ()  # of the parameters; None where anything may stand

    def __str__(self) -> str:
        return f"function({', '.join(self.parameters)})"


KINDS: dict[type, str] = {
    NoneType: "null",
    bool: "boolean",
    int: "number",
    Decimal: "number",
    float: "number",
    str: "string",
    list: "list",
    dict: "context",
    date: "date",
    time: "time",
    datetime: "date and time",
    timedelta: "days and time duration",
    YearsMonths: "years and months duration",
    WideDate: "date",
    WideTime: "time",
    WideMoment: "date and time",
    WideSpan: "days and time duration",
    Range: "range",
    Function: "function",
}


def kind_of(value: Any) -> str:
    """The name of a value's type, as `instance of` and the warnings say it."""
    return KINDS.get(type(value)) or f"Python {type(value).__name__}"


def an(kind: str) -> str:
    """The name of a type with its article, for a sentence."""
    return kind if kind == "null" else f"a {kind}"


def shown(text: str) -> str:
    """A text from outside as a message has it: the beginning of a long one."""
    return text if len(text) <= VALUE_CHARS_SHOWN else f"{text[: VALUE_CHARS_SHOWN - 3]}..."


def clean(value: Any) -> Any:
    """A value from outside as FEEL has it: floats become decimals, tuples lists."""
    kind = type(value)
    if kind is float:
        return from_float(value)
    return list(value) if kind is tuple else value


def cleaned(items: list[Any]) -> list[Any]:
    """The items of a list, each clean; the same list when there was nothing to do."""
    kinds = set(map(type, items))
    return [clean(item) for item in items] if float in kinds or tuple in kinds else items
