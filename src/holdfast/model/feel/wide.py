"""Dates, times and durations that Python's own types cannot hold: far years and nanoseconds.

The calendar repeats every 400 years, to the day of the week. So a date of the year 262142 is kept
as the same day in a year that Python has, and how many times 400 years lie between. Nanoseconds
are kept beside the microseconds. A value that Python's types can hold is always one of theirs.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from holdfast.model.feel.problems import Problem

YEAR_MAX = 999_999_999  # the specification's range of years, on both sides of 0
ERA_YEARS, ERA_DAYS = 400, 146_097
HOME_BEFORE, HOME_BEHIND = 400, 9_200  # where the years before and behind Python's have their place
MICRO, SECOND, DAY = 1_000, 10**9, 86_400 * 10**9  # in nanoseconds
_MICROSECOND = timedelta(microseconds=1)


class Wide(msgspec.Struct, frozen=True):
    """One of them."""


class WideDate(Wide, frozen=True):
    """A date of a year before 1 or behind 9999."""

    era: int  # so many times 400 years from `near`
    near: date


class WideMoment(Wide, frozen=True):
    """A date and time of such a year, or with nanoseconds."""

    era: int
    near: datetime
    nanos: int


class WideTime(Wide, frozen=True):
    """A time with nanoseconds."""

    near: time
    nanos: int


class WideSpan(Wide, frozen=True):
    """A duration of days and time with nanoseconds, which are added whatever its sign."""

    near: timedelta
    nanos: int


WIDE = frozenset({WideDate, WideMoment, WideTime, WideSpan})
Day = date | WideDate
Moment = datetime | WideMoment
Clock = time | WideTime
Span = timedelta | WideSpan


# --- taking apart and putting together --------------------------------------------------------


def near_of(value: Any) -> Any:
    """Python's value that has the same month, day, weekday and time of day."""
    return value.near if type(value) in WIDE else value


def plain(value: Any) -> Any:
    """Python's value where only nanoseconds are lost; a value of a far year stays as it is."""
    return value if getattr(value, "era", 0) else near_of(value)


def nanos_of(value: Any) -> int:
    return getattr(value, "nanos", 0)


def year_of(value: Any) -> int:
    return near_of(value).year + ERA_YEARS * getattr(value, "era", 0)


def _home(year: int) -> int:
    """The year of Python's that stands for a year."""
    if not -YEAR_MAX <= year <= YEAR_MAX:
        raise Problem(f"The year {year} is out of range")
    if 1 <= year <= 9_999:
        return year
    return (HOME_BEFORE if year < 1 else HOME_BEHIND) + year % ERA_YEARS


def day_from(year: int, month: int, day: int) -> Day:
    """A date from its parts; ValueError if there is no such day."""
    home = _home(year)
    near = date(home, month, day)
    return near if home == year else WideDate((year - home) // ERA_YEARS, near)


def placed(era: int, near: date | datetime, nanos: int = 0) -> Any:
    """The date, or date and time, that is so many eras and nanoseconds from one of Python's."""
    year = near.year + ERA_YEARS * era
    home = _home(year)
    near = near if home == near.year else near.replace(year=home)
    era = (year - home) // ERA_YEARS
    if not era and not nanos:
        return near
    return WideMoment(era, near, nanos) if isinstance(near, datetime) else WideDate(era, near)


def combined(day: Day | Moment, clock: Clock) -> Moment:
    """A date and a time as one."""
    near = near_of(day)
    near = near.date() if isinstance(near, datetime) else near
    moment = datetime.combine(near, near_of(clock))
    return placed(getattr(day, "era", 0), moment, nanos_of(clock))


def day_of(value: Any) -> Day:
    """The date of a date and time; a date as it is."""
    near = near_of(value)
    return placed(getattr(value, "era", 0), near.date()) if isinstance(near, datetime) else value


def clock_of(value: Moment) -> Clock:
    """The time of a date and time."""
    return clock_from(near_of(value).timetz(), nanos_of(value))


def clock_from(near: time, nanos: int) -> Clock:
    return WideTime(near, nanos) if nanos else near


def span_from(nanos: int) -> Span:
    """A duration of so many nanoseconds."""
    micros, rest = divmod(nanos, MICRO)
    try:
        near = timedelta(microseconds=micros)
    except OverflowError as wrong:
        raise Problem("The duration is too long") from wrong
    return WideSpan(near, rest) if rest else near


# --- arithmetic -------------------------------------------------------------------------------


def is_zoned(value: Any) -> bool:
    """Whether a time, or a date and time, has an offset or a zone."""
    near = near_of(value)
    return getattr(near, "tzinfo", None) is not None and near.utcoffset() is not None


def instant(value: Any) -> int:
    """Nanoseconds from where the calendar begins, from midnight, or in a duration; in UTC."""
    near = near_of(value)
    if isinstance(near, timedelta):
        return near // _MICROSECOND * MICRO + nanos_of(value)
    if isinstance(near, date):
        days = near.toordinal() + ERA_DAYS * getattr(value, "era", 0)
        if not isinstance(near, datetime):
            return days * DAY
        return days * DAY + _of_day(near) + nanos_of(value)
    return _of_day(near) + nanos_of(value)


def _of_day(near: time | datetime) -> int:
    seconds = near.hour * 3_600 + near.minute * 60 + near.second
    offset = near.utcoffset() or timedelta()
    return seconds * SECOND + near.microsecond * MICRO - offset // _MICROSECOND * MICRO


def shifted(value: Any, by: Span) -> Any:
    """A date, a time or a moment so much later."""
    near = near_of(value)
    total = instant(by) + nanos_of(value)
    if isinstance(near, time):
        clock = instant(value) - nanos_of(value) + total
        return _clock_at((clock + _offset(near)) % DAY, near)
    days, rest = divmod(total, DAY)
    eras, days = divmod(days, ERA_DAYS)
    era = getattr(value, "era", 0) + eras
    if near.year > HOME_BEHIND:  # so that there is room for as many days again
        near, era = near.replace(year=near.year - ERA_YEARS), era + 1
    elif near.year < HOME_BEFORE:  # and for an offset
        near, era = near.replace(year=near.year + ERA_YEARS), era - 1
    span = timedelta(days=days, microseconds=rest // MICRO)
    if not isinstance(near, datetime):
        return placed(era, (datetime.combine(near, time()) + span).date())
    if near.tzinfo is None:
        moved = near + span
    else:
        moved = (near.astimezone(UTC) + span).astimezone(near.tzinfo)
    return placed(era, moved, rest % MICRO)


def _offset(near: time) -> int:
    return (near.utcoffset() or timedelta()) // _MICROSECOND * MICRO


def _clock_at(nanos: int, like: time) -> Clock:
    seconds, rest = divmod(nanos, SECOND)
    minutes, second = divmod(seconds, 60)
    near = time(minutes // 60, minutes % 60, second, rest // MICRO, like.tzinfo)
    return clock_from(near, rest % MICRO)
