"""Equality and order of values: true, false, or null where two values cannot be compared."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from holdfast.model.feel.bounds import VALUE_NESTING_MAX
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import Run
from holdfast.model.feel.values import Range, YearsMonths, an, clean, kind_of
from holdfast.model.feel.wide import WIDE, instant, is_zoned

ITEM_STEPS = 10  # an item, or an entry, that is compared or made a key of
KEY_BYTES = 200  # a key with its value, in a set of Python's
ORDERED = {
    "number", "string", "date", "time", "date and time", "days and time duration",
    "years and months duration",
}  # fmt: skip


def comparable(value: Any) -> Any:
    """A value as Python compares it: zoned moments by their instant, not by their clock."""
    if type(value) in WIDE:
        return is_zoned(value), instant(value)
    if type(value) is datetime and value.tzinfo is not None:
        try:
            return value.astimezone(UTC)
        except OverflowError as wrong:
            raise Problem("The date is out of range") from wrong
    if type(value) is time:  # as far from midnight in UTC: Python would drop the offset's day
        offset = value.utcoffset()
        clock = timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second,
            microseconds=value.microsecond,
        )  # fmt: skip
        return (offset is not None, clock - (offset or timedelta()))
    return value


def order(a: Any, b: Any) -> int:
    """Negative, zero or positive as a is below, at or above b; a Problem when neither."""
    kind = kind_of(a)
    if kind != kind_of(b) or kind not in ORDERED:
        raise Problem(f"Cannot compare {an(kind)} with {an(kind_of(b))}")
    if type(a) in WIDE or type(b) in WIDE:
        if is_zoned(a) != is_zoned(b):
            raise Problem(f"Cannot compare {an(kind)} with a time zone and one without")
        return (instant(a) > instant(b)) - (instant(a) < instant(b))
    left, right = comparable(clean(a)), comparable(clean(b))
    if (kind == "time" and left[0] != right[0]) or _zoned(left) != _zoned(right):
        raise Problem(f"Cannot compare {an(kind)} with a time zone and one without")
    return (left > right) - (left < right)


def _zoned(value: Any) -> bool:
    return type(value) is datetime and value.tzinfo is not None


def equal(run: Run, a: Any, b: Any) -> bool:
    """Whether two values are the same; a Problem when their kinds differ and neither is null."""
    if a is None or b is None:
        return a is b
    if kind_of(a) != kind_of(b):
        raise Problem(f"Cannot compare {an(kind_of(a))} with {an(kind_of(b))}")
    return same(run, a, b)


def same(run: Run, a: Any, b: Any, depth: int = 0) -> bool:
    """Whether two values of any kinds are the same; those of different kinds are not."""
    a, b = clean(a), clean(b)
    if kind_of(a) != kind_of(b):
        return False
    if type(a) is str:
        run.read(a)
        return a == b
    if type(a) is list:
        if len(a) != len(b):
            return False
        run.spend(1 + ITEM_STEPS * len(a))
        deeper = nested(depth)
        return all(same(run, x, y, deeper) for x, y in zip(a, b, strict=True))
    if type(a) is dict:
        run.spend(1 + ITEM_STEPS * len(a))
        if a.keys() != b.keys():
            return False
        deeper = nested(depth)
        return all(same(run, value, b[key], deeper) for key, value in a.items())
    if type(a) is Range:
        alike = (a.start_included, a.end_included, a.symbol) == (
            b.start_included, b.end_included, b.symbol,
        )  # fmt: skip
        return alike and same(run, a.start, b.start, depth) and same(run, a.end, b.end, depth)
    return comparable(a) == comparable(b)


def nested(depth: int) -> int:
    """One level further into a value, unless it is too deep to go into."""
    if depth >= VALUE_NESTING_MAX:
        raise Spent(f"A value is nested more than {VALUE_NESTING_MAX} levels deep")
    return depth + 1


def frozen(run: Run, value: Any, depth: int = 0) -> Any:
    """A key that is the same for the same values, so that many can be told apart at once."""
    value = clean(value)
    kind = kind_of(value)
    match value:
        case list():
            run.spend(ITEM_STEPS * (1 + len(value)), KEY_BYTES * (1 + len(value)))
            return kind, tuple([frozen(run, item, nested(depth)) for item in value])
        case dict():
            run.spend(ITEM_STEPS * (1 + len(value)), KEY_BYTES * (1 + len(value)))
            entries = [(key, frozen(run, item, nested(depth))) for key, item in value.items()]
            return kind, frozenset(entries)
        case Range():
            return kind, (
                frozen(run, value.start, depth), frozen(run, value.end, depth),
                value.start_included, value.end_included, value.symbol,
            )  # fmt: skip
        case int() | Decimal() | YearsMonths():
            return kind, value
        case str():
            run.read(value)
            return kind, value
        case _ if kind.startswith("Python "):
            return kind, id(value)
        case _:
            return kind, comparable(value)


# --- ranges -----------------------------------------------------------------------------------


def unary_range(symbol: str, end: Any) -> Range:
    """The range that an operator and one end stand for."""
    match symbol:
        case "<" | "<=":
            return Range(None, end, False, symbol == "<=")
        case ">" | ">=":
            return Range(end, None, symbol == ">=", False)
        case _:
            return Range(end, end, True, True, symbol)


def within(value: Any, among: Range) -> bool:
    """Whether a value lies in a range."""
    if among.symbol == "!=":
        return order(value, among.start) != 0
    if among.start is not None:
        below = order(value, among.start)
        if below < 0 or (below == 0 and not among.start_included):
            return False
    if among.end is not None:
        above = order(value, among.end)
        if above > 0 or (above == 0 and not among.end_included):
            return False
    return True
