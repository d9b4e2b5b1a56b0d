"""Built-in functions on numbers."""

from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Decimal,
)
from typing import Any

from holdfast.model.feel import numeric
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.numeric import CONTEXT, Number, scaled, whole
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.values import YearsMonths, kind_of
from holdfast.model.feel.wide import instant, span_from


@builtin(
    "decimal(n: number, scale: number)",
    "The number with so many decimals; a half goes to the even neighbour.",
    "decimal(2.5, 0)",
    "2",
    steps=30,
)
def decimal(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_HALF_EVEN)


@builtin(
    "floor(n: number, scale: number)", "The next number down.", "floor(-1.56, 1)", "-1.6", steps=30
)
def floor(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_FLOOR)


@builtin("floor(n: number)", "The same to a whole number.", "floor(1.5)", "1", steps=30)
def floor_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_FLOOR)


@builtin(
    "ceiling(n: number, scale: number)",
    "The next number up.",
    "ceiling(-1.56, 1)",
    "-1.5",
    steps=30,
)
def ceiling(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_CEILING)


@builtin("ceiling(n: number)", "The same to a whole number.", "ceiling(1.5)", "2", steps=30)
def ceiling_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_CEILING)


@builtin(
    "round up(n: number, scale: number)",
    "Rounded away from zero.",
    "round up(-5.5, 0)",
    "-6",
    steps=30,
)
def round_up(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_UP)


@builtin("round up(n: number)", "The same to a whole number.", "round up(5.5)", "6", steps=30)
def round_up_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_UP)


@builtin(
    "round down(n: number, scale: number)",
    "Rounded towards zero.",
    "round down(-5.5, 0)",
    "-5",
    steps=30,
)
def round_down(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_DOWN)


@builtin("round down(n: number)", "The same to a whole number.", "round down(5.5)", "5", steps=30)
def round_down_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_DOWN)


@builtin(
    "round half up(n: number, scale: number)",
    "Rounded to the nearest; a half goes away from zero.",
    "round half up(1.125, 2)",
    "1.13",
    steps=30,
)
def round_half_up(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_HALF_UP)


@builtin(
    "round half up(n: number)", "The same to a whole number.", "round half up(5.5)", "6", steps=30
)
def round_half_up_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_HALF_UP)


@builtin(
    "round half down(n: number, scale: number)",
    "Rounded to the nearest; a half goes towards zero.",
    "round half down(1.125, 2)",
    "1.12",
    steps=30,
)
def round_half_down(run: Run, n: Number, scale: Number) -> Number:
    return scaled(n, scale, ROUND_HALF_DOWN)


@builtin(
    "round half down(n: number)",
    "The same to a whole number.",
    "round half down(5.5)",
    "5",
    steps=30,
)
def round_half_down_whole(run: Run, n: Number) -> Number:
    return scaled(n, 0, ROUND_HALF_DOWN)


@builtin(
    "abs(n: number|days and time duration|years and months duration)",
    "The number or duration without its sign.",
    "abs(-10)",
    "10",
    steps=5,
)
def absolute(run: Run, n: Any) -> Any:
    """How much it is, whichever way."""
    if isinstance(n, YearsMonths):
        return YearsMonths(abs(n.months))
    return span_from(abs(instant(n))) if kind_of(n) != "number" else whole(abs(n))


@builtin(
    "modulo(dividend: number, divisor: number)",
    "What is left after dividing, with the sign of the divisor.",
    "modulo(-12, 5)",
    "3",
    steps=20,
)
def modulo(run: Run, dividend: Number, divisor: Number) -> Number:
    return numeric.modulo(dividend, divisor)


@builtin("sqrt(number: number)", "The square root.", "sqrt(16)", "4", steps=40)
def square_root(run: Run, n: Number) -> Number:
    """The root that is not negative, with 34 digits."""
    if n < 0:
        raise Problem(f"Expected a number that is not negative, but found {n}")
    return whole(CONTEXT.sqrt(Decimal(n)))


@builtin(
    "log(number: number)", "The natural logarithm.", "decimal(log(10), 8)", "2.30258509", steps=300
)
def logarithm(run: Run, n: Number) -> Number:
    """To the base of Euler's number, with 34 digits."""
    if n <= 0:
        raise Problem(f"Expected a positive number, but found {n}")
    return whole(CONTEXT.ln(Decimal(n)))


@builtin(
    "exp(number: number)",
    "The power of Euler's number.",
    "decimal(exp(5), 6)",
    "148.413159",
    steps=300,
)
def exponential(run: Run, n: Number) -> Number:
    return whole(CONTEXT.exp(Decimal(n)))


@builtin("odd(number: number)", "Whether a whole number is odd.", "odd(5)", "true", steps=40)
def odd(run: Run, n: Number) -> bool:
    return numeric.modulo(_even_or_odd(n), 2) == 1


@builtin("even(number: number)", "Whether a whole number is even.", "even(5)", "false", steps=40)
def even(run: Run, n: Number) -> bool:
    return numeric.modulo(_even_or_odd(n), 2) == 0


def _even_or_odd(n: Number) -> Number:
    if whole(n) != scaled(n, 0, ROUND_DOWN):
        raise Problem(f"Expected a whole number, but found {n}")
    return n
