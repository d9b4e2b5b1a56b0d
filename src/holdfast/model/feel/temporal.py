"""Dates, times and durations: reading and writing their ISO 8601 texts, and their parts."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from holdfast.model.feel.numeric import Number, whole
from holdfast.model.feel.problems import FeelError, Problem
from holdfast.model.feel.values import Range, YearsMonths, shown
from holdfast.model.feel.wide import (
    DAY,
    MICRO,
    SECOND,
    Clock,
    Day,
    Moment,
    Span,
    WideDate,
    WideMoment,
    WideSpan,
    WideTime,
    clock_from,
    combined,
    day_from,
    instant,
    nanos_of,
    near_of,
    plain,
    shifted,
    span_from,
    year_of,
)

_DATE = r"(?P<year>-?(?:[1-9]\d{4,8}|\d{4}))-(?P<month>\d\d)-(?P<day>\d\d)"
_ZONE = r"(?P<zone>[Zz]|[+-]\d\d:\d\d(?::\d\d)?|@[\w+-]+(?:/[\w+-]+)*)?"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
DATE = re.compile(_DATE, re.ASCII)
TIME = re.compile(f"T?{_TIME}{_ZONE}", re.ASCII)
DATE_TIME = re.compile(f"{_DATE}(?:T{_TIME}{_ZONE})?", re.ASCII)
DURATION = re.compile(
    r"(?P<sign>-)?P(?=[\dT])(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?"
    r"(?:(?P<days>\d+)D)?"
    r"(?P<clock>T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d{0,9})?)S)?)?",
    re.ASCII,
)
REGIONS_CACHED_MAX = 1_024  # all there are; 10 KiB each
DURATION_DIGITS_MAX = 15  # of one part; Python's longest duration has 14 digits of seconds


def zone_of(text: str | None) -> tzinfo | None:
    """The zone behind a time: `Z`, an offset, or the name of a region after `@`."""
    if not text:
        return None
    if text in "Zz":
        return UTC
    if text.startswith("@"):
        return region(text[1:])
    hours, minutes, *seconds = (int(part) for part in text[1:].split(":"))
    if hours > 18 or minutes > 59:
        raise Problem(f"Expected an offset of at most 18 hours, but found '{text}'")
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds[0] if seconds else 0)
    return timezone(-offset if text[0] == "-" else offset) if offset else UTC


@lru_cache(maxsize=1)
def _regions() -> frozenset[str]:
    """The names of all time zones; looked up here, a name that is none opens no file."""
    return frozenset(available_timezones())


@lru_cache(maxsize=REGIONS_CACHED_MAX)
def region(name: str) -> ZoneInfo:
    """The time zone of a region."""
    if name not in _regions():
        raise Problem(f"No time zone '{shown(name)}'")
    return ZoneInfo(name)


def _midnight(found: re.Match[str]) -> bool:
    """Whether it is 24:00:00, the end of a day."""
    parts = (found["hour"], found["minute"], found["second"] or "00")
    return parts == ("24", "00", "00") and not (found["fraction"] or "").strip("0")


def _time(found: re.Match[str]) -> Clock:
    if _midnight(found):
        return time(tzinfo=zone_of(found["zone"]))
    micros, nanos = divmod(int((found["fraction"] or "0").ljust(9, "0")), MICRO)
    near = time(
        int(found["hour"]), int(found["minute"]), int(found["second"] or 0), micros,
        zone_of(found["zone"]),
    )  # fmt: skip
    return clock_from(near, nanos)


def _date(found: re.Match[str]) -> Day:
    return day_from(int(found["year"]), int(found["month"]), int(found["day"]))


def date_of(text: str) -> Day:
    """A date from `2026-01-31`."""
    try:
        if found := DATE.fullmatch(text):
            return _date(found)
    except ValueError as wrong:
        raise Problem(f"No such date: '{text}' ({wrong})") from wrong
    raise Problem(f"Expected a date such as '2026-01-31', but found '{text}'")


def time_of(text: str) -> Clock:
    """A time from `10:30:00`, with an offset or the name of a zone where there is one."""
    try:
        if found := TIME.fullmatch(text):
            return _time(found)
    except ValueError as wrong:
        raise Problem(f"No such time: '{text}' ({wrong})") from wrong
    raise Problem(f"Expected a time such as '10:30:00', but found '{text}'")


def date_time_of(text: str) -> Moment:
    """A date and time from `2026-01-31T10:30:00Z`; a date alone begins at midnight."""
    try:
        if found := DATE_TIME.fullmatch(text):
            day = _date(found)
            if not found["hour"]:
                return combined(day, time())
            if _midnight(found):
                day = shifted(day, timedelta(days=1))
            return combined(day, _time(found))
    except ValueError as wrong:
        raise Problem(f"No such date and time: '{text}' ({wrong})") from wrong
    raise Problem(f"Expected a date and time such as '2026-01-31T10:30:00Z', but found '{text}'")


def duration_of(text: str) -> Span | YearsMonths:
    """A duration from `P1DT2H` or `P1Y2M`; the two kinds do not mix."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise Problem(f"Expected a duration such as 'PT15M' or 'P1Y6M', but found '{text}'")
    parts = found.groupdict()
    if any(len(digits) > DURATION_DIGITS_MAX for digits in re.findall(r"\d+", text)):
        raise Problem(f"The duration '{text}' is too long")
    sign = -1 if parts["sign"] else 1
    if parts["years"] or parts["months"]:
        if parts["weeks"] or parts["days"] or parts["clock"]:
            raise Problem(f"Expected years and months, or days and time, but found both: '{text}'")
        return YearsMonths(sign * (int(parts["years"] or 0) * 12 + int(parts["months"] or 0)))
    whole_seconds, _, fraction = (parts["seconds"] or "0").partition(".")
    days = 7 * int(parts["weeks"] or 0) + int(parts["days"] or 0)
    minutes = 60 * int(parts["hours"] or 0) + int(parts["minutes"] or 0)
    seconds = 60 * minutes + int(whole_seconds)
    return span_from(sign * (days * DAY + seconds * SECOND + int(fraction.ljust(9, "0"))))


def literal(text: str) -> Any:
    """The value of `@"..."`, told by its shape."""
    if "P" in text[:2]:
        return duration_of(text)
    if DATE.fullmatch(text):
        return date_of(text)
    return time_of(text) if TIME.fullmatch(text) else date_time_of(text)


def parse_duration(text: str) -> timedelta | YearsMonths:
    """A duration of days and time (`PT15M`) or of years and months (`P1Y6M`)."""
    try:
        return plain(duration_of(text))
    except Problem as wrong:
        raise FeelError(str(wrong)) from None


def parse_date_time(text: str) -> datetime:
    """A date and time; without an offset or a zone it is naive."""
    try:
        found = plain(date_time_of(text))
    except Problem as wrong:
        raise FeelError(str(wrong)) from None
    if not isinstance(found, datetime):
        raise FeelError(f"Expected a year from 1 to 9999, but found '{shown(text)}'")
    return found


# --- texts ------------------------------------------------------------------------------------


def text_of_duration(value: Span) -> str:
    """A duration of days and time in ISO 8601, the largest units first."""
    total = instant(value)
    sign = "-" if total < 0 else ""
    days, rest = divmod(abs(total), DAY)
    seconds, nanos = divmod(rest, SECOND)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    clock += f"{seconds}{fraction}S" if seconds or fraction else ""
    day = f"{days}D" if days else ""
    return f"{sign}P{day}{'T' if clock else ''}{clock}" if day or clock else "PT0S"


def _text_of_time(value: Any) -> str:
    near = near_of(value)
    nanos = near.microsecond * MICRO + nanos_of(value)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{near.hour:02}:{near.minute:02}:{near.second:02}{fraction}"


def _text_of_date(value: Any) -> str:
    near, year = near_of(value), year_of(value)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{near.month:02}-{near.day:02}"


def _text_of_zone(value: time | datetime) -> str:
    if value.tzinfo is None:
        return ""
    if isinstance(value.tzinfo, ZoneInfo):
        return f"@{value.tzinfo.key}"
    offset = value.utcoffset()
    return "Z" if not offset else str(value.tzinfo).removeprefix("UTC")


def text_of_temporal(value: Any) -> str:
    """Any date, time or duration as its ISO 8601 text, which reads back as the same value."""
    near = near_of(value)
    match near:
        case datetime():
            return f"{_text_of_date(value)}T{_text_of_time(value)}{_text_of_zone(near)}"
        case date():
            return _text_of_date(value)
        case time():
            return _text_of_time(value) + _text_of_zone(near)
        case timedelta():
            return text_of_duration(value)
        case _:
            return str(value)


# --- parts ------------------------------------------------------------------------------------


def _second(value: Any) -> Number:
    near = near_of(value)
    nanos = near.microsecond * MICRO + nanos_of(value)
    return whole(near.second + Decimal(nanos).scaleb(-9)) if nanos else near.second


def _zone_name(value: Any) -> str | None:
    zone = near_of(value).tzinfo
    return zone.key if isinstance(zone, ZoneInfo) else None


def _signed(value: Span, unit: str) -> Number:
    """One part of a duration, with the sign of the whole."""
    total = instant(value)
    sign = -1 if total < 0 else 1
    days, rest = divmod(abs(total), DAY)
    match unit:
        case "days":
            return sign * days
        case "hours":
            return sign * (rest // (3_600 * SECOND))
        case "minutes":
            return sign * (rest // (60 * SECOND) % 60)
        case _:
            return whole(sign * Decimal(rest % (60 * SECOND)).scaleb(-9))


_ON_DATES = {
    "year": year_of,
    "month": lambda value: near_of(value).month,
    "day": lambda value: near_of(value).day,
    "weekday": lambda value: near_of(value).isoweekday(),
}
_ON_TIMES = {
    "hour": lambda value: near_of(value).hour,
    "minute": lambda value: near_of(value).minute,
    "second": _second,
    "time offset": lambda value: near_of(value).utcoffset(),
    "timezone": _zone_name,
}
_ON_SPANS = {
    unit: lambda value, unit=unit: _signed(value, unit)
    for unit in ("days", "hours", "minutes", "seconds")
}
PARTS: dict[type, dict[str, Any]] = {
    date: _ON_DATES,
    time: _ON_TIMES,
    datetime: _ON_DATES | _ON_TIMES,
    timedelta: _ON_SPANS,
    WideDate: _ON_DATES,
    WideTime: _ON_TIMES,
    WideMoment: _ON_DATES | _ON_TIMES,
    WideSpan: _ON_SPANS,
    YearsMonths: {
        "years": lambda value: int(value.months / 12),
        "months": lambda value: value.months - 12 * int(value.months / 12),
    },
    Range: {
        "start": lambda value: value.start,
        "end": lambda value: value.end,
        "start included": lambda value: value.start_included,
        "end included": lambda value: value.end_included,
    },
}  # what can follow a dot, by the type before it
