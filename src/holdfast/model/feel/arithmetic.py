"""The operators `+ - * / **` over every kind of value that has them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from holdfast.model.feel import numeric, wide
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.text import joined
from holdfast.model.feel.values import YearsMonths, an, kind_of
from holdfast.model.feel.wide import (
    WIDE,
    Span,
    WideSpan,
    clock_of,
    combined,
    day_from,
    instant,
    is_zoned,
    near_of,
    span_from,
    year_of,
)

MONTHS_MAX = 12 * 999_999_999  # the specification's range of years
APPLY_STEPS = 16  # an operator by the long way: decimals, dates, durations
WIDE_STEPS = 40  # more, for far years and nanoseconds
POWER_STEPS = 400  # of decimals with 34 digits
APPLY_BYTES = 104  # a decimal, the largest of its results
_DAY = timedelta(days=1)


# --- time -------------------------------------------------------------------------------------


def shifted_by_months(value: Any, months: int) -> Any:
    """The same day so many months later; the month's last day where there is no such day."""
    near = near_of(value)
    year, month = divmod(year_of(value) * 12 + near.month - 1 + months, 12)
    day = day_from(year, month + 1, min(near.day, month_days(year, month)))
    return combined(day, clock_of(value)) if isinstance(near, datetime) else day


def month_days(year: int, month: int) -> int:
    """How many days a month has; months count from 0."""
    if month == 1:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (3, 5, 8, 10) else 31


def shifted(value: Any, by: Span) -> Any:
    """A moment so much later; in a zone that changes its clocks, counted in real time."""
    if type(value) in WIDE or isinstance(by, WideSpan):
        return wide.shifted(value, by)
    try:
        if isinstance(value, datetime):
            if value.tzinfo is None:
                return value + by
            return (value.astimezone(UTC) + by).astimezone(value.tzinfo)
        if isinstance(value, date):
            return (datetime.combine(value, time()) + by).date()
    except OverflowError:
        return wide.shifted(value, by)
    midnight = datetime(2000, 1, 1)  # noqa: DTZ001  (any day: only its clock is kept)
    moved = datetime.combine(midnight, value.replace(tzinfo=None)) + by % _DAY
    return moved.time().replace(tzinfo=value.tzinfo)


def between(later: Any, earlier: Any) -> Span:
    """How long it is from one moment to another of the same kind."""
    kind = kind_of(later)
    if kind != kind_of(earlier):  # a date is a moment too: its midnight in UTC
        later, earlier = _at_midnight(later), _at_midnight(earlier)
    if is_zoned(later) != is_zoned(earlier):
        raise Problem("Cannot subtract a moment with a time zone and one without")
    return span_from(instant(later) - instant(earlier))


def _at_midnight(value: Any) -> Any:
    return combined(value, time(tzinfo=UTC)) if kind_of(value) == D else value


def months(count: int) -> YearsMonths:
    """A duration of so many months, within the bound."""
    if abs(count) > MONTHS_MAX:
        raise Problem("The duration is too long")
    return YearsMonths(count)


def _stretched(value: Span, factor: numeric.Number) -> Span:
    return span_from(int(numeric.multiply(instant(value), factor)))


def _sum(a: Span, b: Span) -> Span:
    return span_from(instant(a) + instant(b))


# --- tables -----------------------------------------------------------------------------------

N, S, D, T, DT = "number", "string", "date", "time", "date and time"
DAYS, MONTHS = "days and time duration", "years and months duration"
Table = dict[tuple[str, str], Callable[[Any, Any], Any]]

ADD: Table = {
    (N, N): numeric.add,
    (DAYS, DAYS): _sum,
    (MONTHS, MONTHS): lambda a, b: months(a.months + b.months),
}
SUBTRACT: Table = {
    (N, N): numeric.subtract,
    (DAYS, DAYS): lambda a, b: _sum(a, negate(b)),
    (MONTHS, MONTHS): lambda a, b: months(a.months - b.months),
    (T, T): between,
}
for _moment in (D, DT, T):
    ADD[_moment, DAYS] = shifted
    ADD[DAYS, _moment] = lambda a, b: shifted(b, a)
    SUBTRACT[_moment, DAYS] = lambda a, b: shifted(a, negate(b))
for _moment in (D, DT):
    ADD[_moment, MONTHS] = lambda a, b: shifted_by_months(a, b.months)
    ADD[MONTHS, _moment] = lambda a, b: shifted_by_months(b, a.months)
    SUBTRACT[_moment, MONTHS] = lambda a, b: shifted_by_months(a, -b.months)
    SUBTRACT[_moment, D] = SUBTRACT[_moment, DT] = between
MULTIPLY: Table = {
    (N, N): numeric.multiply,
    (DAYS, N): _stretched,
    (N, DAYS): lambda a, b: _stretched(b, a),
    (MONTHS, N): lambda a, b: months(int(numeric.multiply(a.months, b))),
    (N, MONTHS): lambda a, b: months(int(numeric.multiply(b.months, a))),
}
DIVIDE: Table = {
    (N, N): numeric.divide,
    (DAYS, N): lambda a, b: _stretched_by_quotient(a, b),
    (MONTHS, N): lambda a, b: months(int(numeric.divide(a.months, b))),
    (DAYS, DAYS): lambda a, b: numeric.divide(instant(a), instant(b)),
    (MONTHS, MONTHS): lambda a, b: numeric.divide(a.months, b.months),
}
POWER: Table = {(N, N): numeric.power}


def _stretched_by_quotient(value: Span, divisor: numeric.Number) -> Span:
    return span_from(int(numeric.divide(instant(value), divisor)))


OPERATORS: dict[str, tuple[Table, str]] = {
    "+": (ADD, "Cannot add {1} to {0}"),
    "-": (SUBTRACT, "Cannot subtract {1} from {0}"),
    "*": (MULTIPLY, "Cannot multiply {0} by {1}"),
    "/": (DIVIDE, "Cannot divide {0} by {1}"),
    "**": (POWER, "Cannot raise {0} to the power of {1}"),
}  # by symbol: what it does for which kinds, and the sentence for all others


def apply(run: Run, symbol: str, a: Any, b: Any) -> Any:
    """The result of an operator, by the kinds of its operands."""
    run.steps += APPLY_STEPS
    run.bytes += APPLY_BYTES
    if symbol == "**":
        run.spend(POWER_STEPS)
    elif type(a) in WIDE or type(b) in WIDE:
        run.steps += WIDE_STEPS
    table, sentence = OPERATORS[symbol]
    operation = table.get((kind_of(a), kind_of(b)))
    if operation is None:
        if type(a) is str and type(b) is str and symbol == "+":
            return joined(run, (a, b))
        raise Problem(sentence.format(an(kind_of(a)), an(kind_of(b))))
    return operation(a, b)


def negate(value: Any) -> Any:
    """The same amount the other way."""
    match value:
        case bool():
            pass
        case int() | Decimal():
            return numeric.whole(-value)
        case timedelta() | WideSpan():
            return span_from(-instant(value))
        case YearsMonths():
            return YearsMonths(-value.months)
    raise Problem(f"Cannot negate {an(kind_of(value))}")
