"""Numbers: ints while exact, otherwise Decimals of 34 digits; never floats."""

from collections.abc import Callable
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from typing import Any

from holdfast.model.feel.bounds import DIGITS_MAX, EXPONENT_MAX
from holdfast.model.feel.problems import Problem

Number = int | Decimal

INT_MAX = 10**DIGITS_MAX - 1  # the largest int; what is beyond it keeps its first 34 digits
CONTEXT = Context(
    prec=DIGITS_MAX,
    rounding=ROUND_HALF_EVEN,
    Emin=-EXPONENT_MAX + 1,
    Emax=EXPONENT_MAX,
    traps=[DivisionByZero, InvalidOperation, Overflow],
)


def whole(value: Any) -> Number:
    """A number in its one form: an int when it is integral, else a Decimal without end zeros."""
    if type(value) is int:
        if -INT_MAX <= value <= INT_MAX:
            return value
        return CONTEXT.create_decimal(value).normalize(CONTEXT)
    rounded = CONTEXT.plus(value)
    if not rounded:
        return 0
    if rounded.adjusted() < DIGITS_MAX and rounded == rounded.to_integral_value():
        return int(rounded)
    return rounded.normalize(CONTEXT)


def from_float(value: float) -> Number | None:
    """A float that came in from outside, by its shortest text; infinities and NaN are null."""
    found = Decimal(repr(value))
    return whole(found) if found.is_finite() else None


def exactly(operation: Callable[[Decimal, Decimal], Decimal], a: Number, b: Number) -> Number:
    """Two numbers through an operation of the decimal context."""
    try:
        return whole(operation(Decimal(a), Decimal(b)))
    except (DivisionByZero, InvalidOperation) as wrong:
        raise Problem("The result is no number") from wrong
    except Overflow as wrong:
        raise Problem(f"The result has more than {EXPONENT_MAX} digits") from wrong


def add(a: Number, b: Number) -> Number:
    return exactly(CONTEXT.add, a, b)


def subtract(a: Number, b: Number) -> Number:
    return exactly(CONTEXT.subtract, a, b)


def multiply(a: Number, b: Number) -> Number:
    return exactly(CONTEXT.multiply, a, b)


def divide(a: Number, b: Number) -> Number:
    """The quotient: an int when it is one."""
    if not b:
        raise Problem("Division by zero")
    return exactly(CONTEXT.divide, a, b)


def power(a: Number, b: Number) -> Number:
    """One number to the power of another; a fraction of a negative number is no number."""
    return exactly(CONTEXT.power, a, b)


def modulo(a: Number, b: Number) -> Number:
    """What is left after dividing, with the sign of the divisor."""
    if not b:
        raise Problem("Modulo by zero")
    if type(a) is int and type(b) is int:
        return a % b
    rest = exactly(CONTEXT.remainder, a, b)
    return add(rest, b) if rest and (rest < 0) != (b < 0) else rest


def integral(value: Number) -> int:
    """A count or a position: what is behind the point does not count."""
    return value if type(value) is int else int(value)


def scaled(value: Number, scale: Number, rounding: str) -> Number:
    """A number rounded to so many digits after the point; before the point when negative."""
    scale = integral(scale)
    if not -6_111 <= scale <= 6_176:
        raise Problem(f"Expected a scale from -6111 to 6176, but found {scale}")
    number = Decimal(value)
    if int(number.as_tuple().exponent) >= -scale:  # nothing to round away
        return whole(number)
    context = Context(
        prec=DIGITS_MAX + 1,  # a carry may need one more
        rounding=rounding,
        Emin=CONTEXT.Emin,
        Emax=CONTEXT.Emax,
        traps=[InvalidOperation, Overflow],
    )
    return whole(number.quantize(Decimal((0, (1,), -scale)), context=context))


def text_of(value: Number) -> str:
    """A number as people write it; with an exponent only when it is very large or small."""
    value = whole(value)
    if type(value) is int:
        return str(value)
    number = Decimal(value)
    if -DIGITS_MAX <= number.adjusted() < DIGITS_MAX:
        return format(number, "f")
    return str(number)
