"""Built-in functions on dates, and the two that tell the time of the evaluation."""

from datetime import UTC, date, datetime, timedelta

from holdfast.model.feel.arithmetic import month_days
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.run import Run
from holdfast.model.feel.wide import Day, Moment, day_from, near_of, year_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


@builtin(
    "now()", "The moment of the evaluation, in UTC.", "now() instance of date and time", "true"
)
def now(run: Run) -> datetime:
    return EPOCH + timedelta(milliseconds=run.now_ms)


@builtin("today()", "The date of the evaluation, in UTC.", "today() instance of date", "true")
def today(run: Run) -> date:
    return now(run).date()


@builtin(
    "day of week(date: date|date and time)",
    "The English name of the weekday.",
    'day of week(@"2026-01-31")',
    '"Saturday"',
)
def day_of_week(run: Run, day: Day | Moment) -> str:
    return DAYS[near_of(day).weekday()]


@builtin(
    "day of year(date: date|date and time)",
    "The number of the day in its year.",
    'day of year(@"2026-02-01")',
    "32",
)
def day_of_year(run: Run, day: Day | Moment) -> int:
    return near_of(day).timetuple().tm_yday


@builtin(
    "week of year(date: date|date and time)",
    "The number of the week in its year, by ISO 8601.",
    'week of year(@"2026-01-31")',
    "5",
)
def week_of_year(run: Run, day: Day | Moment) -> int:
    return near_of(day).isocalendar().week


@builtin(
    "month of year(date: date|date and time)",
    "The English name of the month.",
    'month of year(@"2026-01-31")',
    '"January"',
)
def month_of_year(run: Run, day: Day | Moment) -> str:
    return MONTHS[near_of(day).month - 1]


@builtin(
    "last day of month(date: date|date and time)",
    "The last day of the month of a date.",
    'last day of month(@"2028-02-10")',
    '@"2028-02-29"',
)
def last_day_of_month(run: Run, day: Day | Moment) -> Day:
    """In any year."""
    year, month = year_of(day), near_of(day).month
    return day_from(year, month, month_days(year, month - 1))
