"""Built-in functions from one type to another."""

import re
from datetime import UTC, time
from decimal import Decimal
from typing import Any

from holdfast.model.feel.arithmetic import months, shifted_by_months
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.numeric import Number, whole
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.temporal import date_of, date_time_of, duration_of, time_of, zone_of
from holdfast.model.feel.text import text_of
from holdfast.model.feel.values import YearsMonths, an, kind_of, shown
from holdfast.model.feel.wide import (
    MICRO,
    SECOND,
    Clock,
    Day,
    Moment,
    Span,
    clock_from,
    clock_of,
    combined,
    day_from,
    day_of,
    instant,
    nanos_of,
    near_of,
    placed,
    year_of,
)

READ_STEPS = 30  # a short text, by a regular expression
READ_CHARS_PER_STEP = 8
TEMPORAL_CHARS_MAX = 100  # of the longest with a zone: 70
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,6})?", re.ASCII)


@builtin("string(from: any)", "The value as text.", "string(1.50 + 1)", '"2.5"')
def string(run: Run, value: Any) -> str | None:
    return None if value is None else text_of(run, value)


@builtin(
    "number(from: string|number)",
    "The number that a text is.",
    'number("12.5")',
    "12.5",
    steps=READ_STEPS,
)
def number(run: Run, value: Any) -> Number:
    """A number from its text, with a point and without groups."""
    if not isinstance(value, str):
        return value
    if len(value) > READ_CHARS_PER_STEP:
        run.spend(len(value) // READ_CHARS_PER_STEP)
    if not NUMBER.fullmatch(value.strip()):
        raise Problem(f"Expected a number, but found '{shown(value)}'")
    return whole(Decimal(value.strip()))


@builtin(
    "number(from: string, grouping separator: string?, decimal separator: string?)",
    "The number that a text is, with these separators.",
    'number("1.234,5", ".", ",")',
    "1234.5",
    steps=READ_STEPS,
)
def number_with(run: Run, text: str, grouping: str | None, point: str | None) -> Number:
    """A number from a text in the way of some country."""
    if grouping not in (None, " ", ",", ".") or point not in (None, ",", "."):
        raise Problem("Expected ' ', ',' or '.' between groups, and ',' or '.' as decimal point")
    if grouping is not None and grouping == point:
        raise Problem("Expected two different separators")
    run.spend(len(text) // READ_CHARS_PER_STEP)
    plain = text.replace(grouping, "") if grouping else text
    return number(run, plain.replace(point, ".") if point else plain)


@builtin(
    "date(from: string|date|date and time)",
    "The date that a text is, or that a date and time is on.",
    'date("2026-01-31")',
    '@"2026-01-31"',
    steps=READ_STEPS,
)
def date_from(run: Run, value: Any) -> Day:
    """A date; the time of day, if there is one, is dropped."""
    return date_of(_read(value)) if isinstance(value, str) else day_of(value)


def _read(text: str) -> str:
    """The text of a date, a time or a duration, none of which is long."""
    if len(text) > TEMPORAL_CHARS_MAX:
        raise Problem(
            f"Expected at most {TEMPORAL_CHARS_MAX} characters for a date, a time or a duration, "
            f"but found {len(text)}"
        )
    return text


@builtin(
    "date(year: number, month: number, day: number)",
    "The date of a year, a month and a day.",
    "date(2026, 1, 31)",
    '@"2026-01-31"',
    steps=READ_STEPS,
)
def date_with(run: Run, year: Number, month: Number, day: Number) -> Day:
    return day_from(_int(year), _int(month), _int(day))


def _int(value: Number) -> int:
    if type(value) is not int:
        raise Problem(f"Expected a whole number, but found {value}")
    return value


@builtin(
    "time(from: string|time|date|date and time)",
    "The time that a text is, or of a date and time.",
    'time("10:30:00Z")',
    '@"10:30:00Z"',
    steps=READ_STEPS,
)
def time_from(run: Run, value: Any) -> Clock:
    """A time; a date alone is at midnight, in UTC."""
    match kind_of(value):
        case "date and time":
            return clock_of(value)
        case "date":
            return time(tzinfo=UTC)
        case "string":
            return time_of(_read(value))
        case _:
            return value


@builtin(
    "time(hour: number, minute: number, second: number, offset: days and time duration?)",
    "The time of an hour, a minute and a second.",
    'time(10, 30, 0, duration("PT1H"))',
    '@"10:30:00+01:00"',
    steps=READ_STEPS,
)
def time_with(run: Run, hour: Number, minute: Number, second: Number, offset: Span | None) -> Clock:
    """A time from its parts; the second may have a fraction."""
    full, fraction = divmod(Decimal(second), 1)
    zone = None
    if offset is not None:
        nanos = instant(offset)
        sign = "-" if nanos < 0 else "+"
        minutes, seconds = divmod(abs(nanos) // SECOND, 60)
        zone = zone_of(f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}")
    micros, nanos = divmod(int(fraction * SECOND), MICRO)
    return clock_from(time(_int(hour), _int(minute), int(full), micros, zone), nanos)


@builtin(
    "date and time(from: string|date|date and time)",
    "The date and time that a text is; a date alone is at midnight.",
    'date and time("2026-01-31T10:30:00")',
    '@"2026-01-31T10:30:00"',
    steps=READ_STEPS,
)
def date_time_from(run: Run, value: Any) -> Moment:
    """A date and time, in no zone unless the text names one."""
    if isinstance(value, str):
        return date_time_of(_read(value))
    return combined(value, time()) if kind_of(value) == "date" else value


@builtin(
    "date and time(date: date|date and time, time: time)",
    "A date and a time as one.",
    'date and time(date("2026-01-31"), time("10:30:00"))',
    '@"2026-01-31T10:30:00"',
    steps=READ_STEPS,
)
def date_time_with(run: Run, day: Day | Moment, clock: Clock) -> Moment:
    return combined(day, clock)


@builtin(
    "date and time(date and time: date and time, time zone: string)",
    "The same moment on the clocks of a time zone.",
    'date and time(@"2026-07-31T10:30:00Z", "Europe/Paris")',
    '@"2026-07-31T12:30:00@Europe/Paris"',
    steps=READ_STEPS,
)
def date_time_in(run: Run, value: Moment, zone: str) -> Moment:
    """A moment in another zone; one without a zone is taken to be in UTC."""
    _read(zone)
    there = zone_of(zone if zone[:1] in "Zz+-" else f"@{zone}")
    near = near_of(value)
    moved = (near if near.tzinfo else near.replace(tzinfo=UTC)).astimezone(there)
    return placed(getattr(value, "era", 0), moved, nanos_of(value))


@builtin(
    "duration(from: string|days and time duration|years and months duration)",
    "The duration that a text is.",
    'duration("P1DT12H")',
    '@"P1DT12H"',
    steps=READ_STEPS,
)
def duration(run: Run, value: Any) -> Span | YearsMonths:
    return duration_of(_read(value)) if isinstance(value, str) else value


@builtin(
    "years and months duration(from: date|date and time, to: date|date and time)",
    "The whole months between two dates.",
    'years and months duration(date("2025-01-31"), date("2026-03-30"))',
    '@"P1Y1M"',
    steps=READ_STEPS,
)
def years_and_months(run: Run, start: Day | Moment, end: Day | Moment) -> YearsMonths:
    """Months from one date to another that are complete, in either direction."""
    start, end = day_of(start), day_of(end)
    count = (year_of(end) - year_of(start)) * 12 + near_of(end).month - near_of(start).month
    reached, wanted = instant(shifted_by_months(start, count)), instant(end)
    if count > 0 and reached > wanted:
        count -= 1
    elif count < 0 and reached < wanted:
        count += 1
    return months(count)


@builtin(
    "context(entries: list)",
    "The context of a list of keys with values.",
    'context([{key: "a", value: 1}])',
    "{a: 1}",
)
def context(run: Run, entries: list[Any]) -> dict[str, Any]:
    """A context from what `get entries` gives."""
    run.spend(10 * len(entries), 64 * len(entries))
    found: dict[str, Any] = {}
    for entry in entries:
        if type(entry) is not dict or type(entry.get("key")) is not str or "value" not in entry:
            raise Problem(f"Expected entries with key and value, but found {an(kind_of(entry))}")
        if entry["key"] in found:
            raise Problem(f"Expected each key once, but found '{shown(entry['key'])}' twice")
        found[entry["key"]] = entry["value"]
    return found
