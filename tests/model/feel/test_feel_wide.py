"""Years outside 1 to 9999, and nanoseconds."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.feel.table import Case, D, check, evaluated, table

from holdfast.model.feel import FeelError, encode_json, parse_date_time, parse_duration, wide
from holdfast.model.feel.arithmetic import shifted, shifted_by_months


@table(
    ("before Christ", 'string(date("-2017-12-31"))', "-2017-12-31"),
    ("the year 0", 'string(date("0000-02-29"))', "0000-02-29"),
    ("far away", 'string(date("262142-12-31"))', "262142-12-31"),
    ("nine digits", 'string(date(-999999999, 1, 1))', "-999999999-01-01"),
    ("ten digits", 'date("9999999999-01-01")', None),
    ("zeros in front", 'date("02017-01-01")', None),
    ("a plus", 'date("+2017-01-01")', None),
    ("no such day", 'date("-2019-02-29")', None),
    ("a leap year", 'date("-2020-02-29").day', 29),
    ("a year", 'date("-2017-12-31").year', -2017),
    ("a weekday", 'date("10000-01-01").weekday', 6),
    ("the name of a weekday", 'day of week(date("10000-01-01"))', "Saturday"),
    ("the end of a month", 'string(last day of month(date("-4-02-01")))', None),
    ("the end of a month", 'string(last day of month(date("-0004-02-01")))', "-0004-02-29"),
    ("a moment", 'string(date and time("-99999-12-31T11:22:33+02:00"))',
     "-99999-12-31T11:22:33+02:00"),
    ("its parts", '@"12026-07-31T10:30:05Z".hour', 10),
    ("its date", 'string(date(@"12026-07-31T10:30:05Z"))', "12026-07-31"),
    ("its time", 'string(time(@"12026-07-31T10:30:05Z"))', "10:30:05Z"),
    ("over the end", 'string(@"9999-12-31" + @"P1D")', "10000-01-01"),
    ("over the beginning", 'string(@"0001-01-01" - @"P1D")', "0000-12-31"),
    ("and back", '@"10000-01-01" - @"P1D" = @"9999-12-31"', True),
    ("far and back", '(@"2026-07-31" + @"P99999Y") - @"P99999Y" = @"2026-07-31"', True),
    ("months", 'string(@"-2021-01-31T10:10:10+11:00" + @"P1M")', "-2021-02-28T10:10:10+11:00"),
    ("a month back", 'string(@"-2021-01-01T10:10:10" - @"P1M")', "-2022-12-01T10:10:10"),
    ("in a zone", 'string(@"-2021-01-01T10:10:10@Australia/Melbourne" + @"PT1H")',
     "-2021-01-01T11:10:10@Australia/Melbourne"),
    ("how long", 'string(@"10000-01-01" - @"9999-01-01")', "P365D"),
    ("an order", '@"-0001-01-01" < @"2026-01-01"', True),
    ("another", '@"10000-01-01T00:00:00Z" > @"9999-12-31T23:59:59Z"', True),
    ("in a range", '@"0000-06-01" in [@"-0001-01-01"..@"0001-01-01"]', True),
    ("the same", '@"10000-01-01T01:00:00+01:00" = @"10000-01-01T00:00:00Z"', True),
    ("with a zone and without", '@"10000-01-01T00:00:00Z" < @"10000-01-01T00:00:00"', None),
    ("sorted", 'string(sort([@"10000-01-01", @"-0005-01-01"])[1])', "-0005-01-01"),
    ("as one value", 'count(distinct values([@"10000-01-01", @"10000-01-01"]))', 1),
    ("months between", 'string(years and months duration(@"2014-12-31", @"-2019-10-01"))',
     "-P4033Y2M"),
    ("too far", '@"999999999-12-31" + @"P1D"', None),
    ("another zone", 'string(date and time(@"10000-01-01T00:00:00Z", "Europe/Paris"))',
     "10000-01-01T01:00:00@Europe/Paris"),
)  # fmt: skip
def test_a_year_has_up_to_nine_digits(case: Case) -> None:
    check(case)


@table(
    ("a time", 'string(time("11:22:33.123456789"))', "11:22:33.123456789"),
    ("its second", 'time("11:22:33.123456789").second', D("33.123456789")),
    ("from its parts", "string(time(11, 22, 33.123456789))", "11:22:33.123456789"),
    (
        "a moment",
        'string(@"2017-12-31T11:22:33.000000001@Europe/Paris")',
        "2017-12-31T11:22:33.000000001@Europe/Paris",
    ),
    (
        "of two",
        'string(date and time(@"2017-01-01", time("23:59:01.987654321Z")))',
        "2017-01-01T23:59:01.987654321Z",
    ),
    ("a duration", 'string(duration("P1DT2H3M4.123456789S"))', "P1DT2H3M4.123456789S"),
    ("one back", 'string(duration("-PT0.000000001S"))', "-PT0.000000001S"),
    ("its seconds", 'duration("-PT1.000000001S").seconds', D("-1.000000001")),
    ("later", 'string(time("23:59:59.999999999") + @"PT0.000000001S")', "00:00:00"),
    (
        "much later",
        'string(@"9999-12-31T23:59:59.999999999" + @"PT0.000000001S")',
        "10000-01-01T00:00:00",
    ),
    ("between", 'string(time("10:00:00.000000002") - time("10:00:00"))', "PT0.000000002S"),
    ("a sum", 'string(@"PT0.000000001S" + @"PT1S")', "PT1.000000001S"),
    ("a product", 'string(@"PT0.000000001S" * 1000)', "PT0.000001S"),
    ("a quotient", '@"PT0.000000003S" / @"PT0.000000001S"', 3),
    ("a third", 'string(@"PT1S" / 3)', "PT0.333333333S"),
    ("without its sign", 'string(abs(@"-PT0.000000001S"))', "PT0.000000001S"),
    ("an order", 'time("10:00:00.000000001") > time("10:00:00")', True),
    ("not the same", 'time("10:00:00.000000001") = time("10:00:00")', False),
    ("no more than nine", 'time("10:00:00.0000000001")', None),
)
def test_a_second_has_up_to_nine_digits_behind_the_point(case: Case) -> None:
    check(case)


def test_they_are_written_as_their_texts() -> None:
    for text in ("-2017-12-31", "12026-01-01T10:00:00.000000001Z", "10:00:00.000000001", "-P1DT1H"):
        assert encode_json(evaluated(f'@"{text}"')) == f'"{text}"'.encode()


def test_the_engine_is_given_what_python_has() -> None:
    assert parse_duration("PT0.123456789S") == timedelta(microseconds=123_456)
    assert parse_date_time("2026-01-01T00:00:00.000000001Z") == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(FeelError, match="year from 1 to 9999"):
        parse_date_time("12026-01-01T00:00:00Z")


ZONES: Any = st.sampled_from(
    [None, UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=14))]
)
MOMENTS = st.one_of(
    st.dates(date(402, 1, 1), date(9_000, 1, 1)),
    st.datetimes(datetime(402, 1, 1), datetime(9_000, 1, 1), timezones=ZONES),  # noqa: DTZ001
    st.builds(lambda clock, zone: clock.replace(tzinfo=zone), st.times(), ZONES),
)
SPANS = st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000))


@given(MOMENTS, SPANS)
def test_far_years_count_as_near_ones_do(moment: Any, span: timedelta) -> None:
    """Within Python's years both ways agree; ten eras away everything is the same but the year."""
    assert wide.shifted(moment, span) == shifted(moment, span)
    if not isinstance(moment, time):
        far = wide.placed(1_000, moment)
        days = timedelta(days=span.days)  # a date is moved by whole days
        assert shifted(shifted(far, days), -days) == far
        assert wide.near_of(shifted(far, span)).month == wide.near_of(shifted(moment, span)).month
        assert wide.year_of(shifted_by_months(far, 12)) == moment.year + 400_001
        assert wide.instant(shifted(far, span)) - wide.instant(far) == (
            wide.instant(shifted(moment, span)) - wide.instant(moment)
        )
