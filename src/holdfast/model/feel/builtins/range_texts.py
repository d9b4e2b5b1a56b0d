"""Ranges from their texts: two literals with `..` between them, in brackets."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import order
from holdfast.model.feel.numeric import whole
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.temporal import date_of, date_time_of, duration_of, literal, time_of
from holdfast.model.feel.values import Range, an, kind_of, shown

RANGE_CHARS_MAX = 1_000  # two ends with a generous name of a zone, or two short texts
QUOTED = r'"(?P<text>[^"\\]*)"'
RANGE = re.compile(
    r'\s*(?P<open>[\[(\]])\s*(?P<low>(?:"[^"]*"|[^"])+?)\s*\.\.\s*'
    r'(?P<high>(?:"[^"]*"|[^".]|\.(?!\.))+?)\s*(?P<close>[\])\[])\s*'
)
NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)", re.ASCII)
STRING = re.compile(QUOTED)
AT = re.compile(r"@\s*" + QUOTED)
CALL = re.compile(r"(?P<name>date and time|date|time|duration)\s*\(\s*" + QUOTED + r"\s*\)")
READERS: dict[str, Callable[[str], Any]] = {
    "date": date_of,
    "time": time_of,
    "date and time": date_time_of,
    "duration": duration_of,
}


@builtin(
    "range(from: string)",
    "The range that a text is; its ends are literals of one type, the lower one first.",
    'range("[1..3)")',
    "[1..3)",
    steps=300,
)
def range_from(run: Run, text: str) -> Range:
    """A range; a text that is none, or whose ends are not in order, is a problem."""
    found = RANGE.fullmatch(text) if len(text) <= RANGE_CHARS_MAX else None
    if found is None:
        raise Problem(f"Expected a range such as '[1..3]', but found '{shown(text)}'")
    low, high = _end(found["low"]), _end(found["high"])
    if kind_of(low) != kind_of(high):
        raise Problem(
            f"Expected two ends of one type, but found {an(kind_of(low))} and {an(kind_of(high))}"
        )
    if order(low, high) > 0:
        raise Problem(f"Expected the lower end first, but found '{shown(text)}'")
    return Range(low, high, found["open"] == "[", found["close"] == "]")


def _end(text: str) -> Any:
    """A literal: a number, a text in quotes, or a date, a time or a duration."""
    if NUMBER.fullmatch(text):
        return whole(Decimal(text))
    if found := STRING.fullmatch(text):
        return found["text"]
    if found := AT.fullmatch(text):
        return literal(found["text"])
    if found := CALL.fullmatch(text):
        return READERS[found["name"]](found["text"])
    raise Problem(f"Expected a literal as the end of a range, but found '{shown(text)}'")
