"""Dates, times and durations: making them, reckoning with them, writing them."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from tests.model.feel.table import Case, D, check, evaluated, table

from holdfast.model.feel import FeelError, YearsMonths, parse_date_time, parse_duration

PARIS = ZoneInfo("Europe/Paris")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def naive(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


@table(
    ("a date from text", 'date("2012-12-25")', date(2012, 12, 25)),
    ("a date that does not exist", 'date("2017-02-29")', None),
    ("a date in another shape", 'date("25.12.2012")', None),
    ("a date from parts", "date(2012, 12, 25)", date(2012, 12, 25)),
    ("a month that does not exist", "date(2012, 13, 25)", None),
    ("a date from a date and time", 'date(@"2012-12-25T11:00:00Z")', date(2012, 12, 25)),
    ("a time from text", 'time("23:59:00z")', time(23, 59, tzinfo=UTC)),
    ("a time with an offset", 'time("23:59:00-08:00")',
     time(23, 59, tzinfo=timezone(timedelta(hours=-8)))),
    ("a time with a fraction", 'time("11:22:33.25")', time(11, 22, 33, 250_000)),
    ("a time without seconds", 'time("11:22")', time(11, 22)),
    ("an hour that does not exist", 'time("25:00:00")', None),
    ("a time from parts", "time(23, 59, 30.5)", time(23, 59, 30, 500_000)),
    ("a time from parts with an offset", 'time(14, 30, 0, duration("PT1H"))',
     time(14, 30, tzinfo=timezone(timedelta(hours=1)))),
    ("a time from a date and time", 'time(@"2026-01-31T12:00:00Z")', time(12, tzinfo=UTC)),
    ("a date and time from text", 'date and time("2026-01-31T12:00:00Z")', NOON),
    ("a date and time from a date", 'date and time("2026-01-31")', naive(2026, 1, 31)),
    ("a date and time in a zone", 'date and time("2026-01-31T12:00:00@Europe/Paris")',
     datetime(2026, 1, 31, 12, tzinfo=PARIS)),
    ("a zone that does not exist", 'date and time("2026-01-31T12:00:00@Europe/Nowhere")', None),
    ("a zone that is a folder", 'date and time("2026-01-31T12:00:00@Europe")', None),
    ("a date and a time as one", 'date and time(@"2026-01-31", @"12:00:00Z")', NOON),
    ("the same moment elsewhere", 'date and time(@"2026-01-31T12:00:00Z", "Europe/Paris")',
     datetime(2026, 1, 31, 13, tzinfo=PARIS)),
    ("a duration of days", 'duration("P2DT20H14M")', timedelta(days=2, hours=20, minutes=14)),
    ("a duration with all its parts", 'duration("P1DT10H10M10.123456S")',
     timedelta(days=1, hours=10, minutes=10, seconds=10, microseconds=123_456)),
    ("a negative duration", 'duration("-PT30M")', timedelta(minutes=-30)),
    ("a duration of months", 'duration("P2Y2M")', YearsMonths(26)),
    ("a duration that is none", 'duration("P")', None),
    ("a duration that mixes both", 'duration("P1Y1D")', None),
    ("months between", 'years and months duration(@"2011-12-22", @"2013-08-24")', YearsMonths(20)),
    ("months back", 'years and months duration(@"2013-08-24", @"2011-12-22")', YearsMonths(-20)),
    ("an incomplete month is none", 'years and months duration(@"2026-01-31", @"2026-02-27")',
     YearsMonths(0)),
    ("now is the moment of the evaluation", "now()", datetime(2026, 7, 31, 9, 30, tzinfo=UTC)),
    ("today is its date", "today()", date(2026, 7, 31)),
)  # fmt: skip
def test_making(case: Case) -> None:
    check(case)


@table(
    ("a month later, on the last day", 'date("2017-01-31") + duration("P1M")', date(2017, 2, 28)),
    ("a month later in a leap year", '@"2028-01-31" + @"P1M"', date(2028, 2, 29)),
    ("a year after the leap day", '@"2028-02-29" + @"P1Y"', date(2029, 2, 28)),
    ("a month earlier", '@"2026-03-31" - @"P1M"', date(2026, 2, 28)),
    ("a duration comes first, too", '@"P1M" + @"2026-01-15"', date(2026, 2, 15)),
    ("days after a date", '@"2026-12-31" + @"P1D"', date(2027, 1, 1)),
    ("hours after a date are part of a day", '@"2026-12-31" + @"PT25H"', date(2027, 1, 1)),
    ("days before a date", '@"2026-01-01" - @"P1D"', date(2025, 12, 31)),
    ("hours after a moment", '@"2026-01-31T12:00:00Z" + @"PT36H"',
     datetime(2026, 2, 2, 0, tzinfo=UTC)),
    ("hours after a time go round the clock", '@"23:30:00" + @"PT1H"', time(0, 30)),
    ("hours before a time go round the clock", '@"00:30:00" - @"PT1H"', time(23, 30)),
    ("real hours when clocks change", '@"2026-03-29T01:30:00@Europe/Paris" + @"PT1H"',
     datetime(2026, 3, 29, 3, 30, tzinfo=PARIS)),
    ("between dates", '@"2026-03-01" - @"2026-02-01"', timedelta(days=28)),
    ("between moments", '@"2026-01-02T00:00:00Z" - @"2026-01-01T12:00:00Z"', timedelta(hours=12)),
    ("between moments of two zones", '@"2026-01-01T12:00:00+01:00" - @"2026-01-01T12:00:00Z"',
     timedelta(hours=-1)),
    ("between times", '@"12:00:00" - @"10:30:00"', timedelta(hours=1, minutes=30)),
    ("with and without a zone", '@"2026-01-02T00:00:00Z" - @"2026-01-01T12:00:00"', None),
    ("dates are not added", '@"2026-03-01" + @"2026-02-01"', None),
    ("months are not added to times", '@"10:00:00" + @"P1M"', None),
    ("numbers are not added to dates", '@"2026-03-01" + 1', None),
    ("durations are added", '@"PT1H" + @"PT30M"', timedelta(hours=1, minutes=30)),
    ("durations are subtracted", '@"P1Y" - @"P1M"', YearsMonths(11)),
    ("durations are multiplied", '@"PT1H" * 1.5', timedelta(hours=1, minutes=30)),
    ("a number comes first, too", '3 * @"P1M"', YearsMonths(3)),
    ("durations are divided", '@"P1D" / 4', timedelta(hours=6)),
    ("months are divided", '@"P1Y" / 5', YearsMonths(2)),
    ("a duration by a duration", '@"P1D" / @"PT1H"', 24),
    ("months by months", '@"P1Y" / @"P8M"', D("1.5")),
    ("a duration by zero", '@"P1D" / 0', None),
    ("a duration with a minus", '-@"PT1H"', timedelta(hours=-1)),
    ("months with a minus", '-@"P1M"', YearsMonths(-1)),
    ("abs of a duration", 'abs(@"-PT1H")', timedelta(hours=1)),
    ("abs of months", 'abs(@"-P1M")', YearsMonths(1)),
    ("a year too many", '@"999999999-12-31" + @"P1D"', None),
    ("a month too many", '@"999999999-12-31" + @"P1M"', None),
    ("a duration too long", '@"P999999999D" + @"P1D"', None),
)  # fmt: skip
def test_reckoning(case: Case) -> None:
    check(case)


@table(
    ("day of week", 'day of week(@"2019-09-17")', "Tuesday"),
    ("day of year", 'day of year(@"2019-09-17")', 260),
    ("week of year", 'week of year(@"2019-09-17")', 38),
    ("a day in the last week of the year before", 'week of year(@"2005-01-01")', 53),
    ("a day in the first week of the next year", 'week of year(@"2003-12-29")', 1),
    ("month of year", 'month of year(@"2019-09-17T10:00:00")', "September"),
    ("last day of month", 'last day of month(@"2022-10-01")', date(2022, 10, 31)),
    ("last day of February", 'last day of month(@"1900-02-01")', date(1900, 2, 28)),
    ("a date and time as text", 'string(@"2026-01-31T12:00:00.500Z")', "2026-01-31T12:00:00.5Z"),
    ("an offset as text", 'string(@"12:00:00+05:30")', "12:00:00+05:30"),
    ("a zone as text", 'string(@"2026-01-31T12:00:00@Europe/Paris")',
     "2026-01-31T12:00:00@Europe/Paris"),
    ("a duration as text", 'string(@"P1DT25H61M0.5S")', "P2DT2H1M0.5S"),
    ("weeks are days", 'string(@"P2W")', "P14D"),
    ("no time as text", 'string(@"PT0S")', "PT0S"),
    ("a negative duration as text", 'string(@"-P1DT1H")', "-P1DT1H"),
    ("months as text", 'string(@"P14M")', "P1Y2M"),
    ("no months as text", 'string(@"P0Y")', "P0M"),
)  # fmt: skip
def test_calendar_and_texts(case: Case) -> None:
    check(case)


def test_timers_read_durations_and_moments() -> None:
    assert parse_duration("PT15M") == timedelta(minutes=15)
    assert parse_duration("P1M") == YearsMonths(1)
    assert parse_date_time("2026-01-31T12:00:00Z") == NOON


@pytest.mark.parametrize("text", ["", "15M", "P1", "PT", "P1YT", "P1.5D", "PT1H ", "P9" * 20 + "D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(FeelError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "2026", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+99:00"])
def test_what_is_no_date_and_time_is_refused(text: str) -> None:
    with pytest.raises(FeelError):
        parse_date_time(text)


def test_a_text_reads_back_as_the_same_value() -> None:
    for text in ("2026-07-31", "10:30:00Z", "2026-01-31T12:00:00.25-08:00", "P1DT1S", "-P3Y"):
        assert evaluated(f'string(@"{text}")') == text
