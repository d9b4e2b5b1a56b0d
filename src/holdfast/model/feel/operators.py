"""Operators as code: one closure for each, with short ways for what is most common.

The shape `name > constant` with ints is what conditions are made of: it takes one comparison of
types and one of values. Everything else goes the long way through `arithmetic` and `compare`.
"""

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from holdfast.model.feel import arithmetic, compare, numeric
from holdfast.model.feel.numeric import INT_MAX
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Code, Run, as_truth, guarded
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.values import Range, clean

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
QUICK: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}  # exact for ints; division and powers need more care
EXACT = {"+": numeric.add, "-": numeric.subtract, "*": numeric.multiply}  # the same for decimals
NUMBERS = frozenset({int, Decimal})
COMPARED_STEPS = 10  # a comparison by the long way
MEMBER_STEPS = 10  # an item that a value is compared with
SHORT_CHARS = 256  # of a text that is compared, or made, in the time of a step
PAIR_BYTES = 4 * SHORT_CHARS  # of two short texts as one, at most


def compared(run: Run, symbol: str, a: Any, b: Any) -> bool:
    """What a comparison says of any two values; a Problem where it says nothing."""
    if symbol == "=":
        return compare.equal(run, a, b)
    if symbol == "!=":
        return not compare.equal(run, a, b)
    return COMPARISONS[symbol](compare.order(a, b), 0)


def comparison(symbol: str, left: Code, right: Code, place: Place) -> Code:
    """`left symbol right`."""
    quick = COMPARISONS[symbol]

    def code(run: Run) -> Any:
        a = left(run)
        b = right(run)
        kind = type(a)
        if kind is type(b):
            if kind is int:
                return quick(a, b)
            if kind is str:
                if len(a) > SHORT_CHARS:
                    guarded(run, place, run.read, a)
                return quick(a, b)
        run.steps += COMPARED_STEPS
        return guarded(run, place, compared, run, symbol, a, b)

    return code


def comparison_with(symbol: str, left: Code, constant: Any, place: Place) -> Code:
    """`left symbol constant`, for a constant that is an int or a string."""
    quick = COMPARISONS[symbol]
    kind = type(constant)

    def code(run: Run) -> Any:
        value = left(run)
        if type(value) is kind:
            return quick(value, constant)
        run.steps += COMPARED_STEPS
        return guarded(run, place, compared, run, symbol, value, constant)

    return code


def variable_comparison(name: str, symbol: str, constant: Any, otherwise: Code) -> Code:
    """The same of a variable, which is what most conditions are; else the code of the long way."""
    quick = COMPARISONS[symbol]
    kinds = (str,) if type(constant) is str else (int, Decimal)

    def code(run: Run) -> Any:
        value = run.variables.get(name)
        return quick(value, constant) if type(value) in kinds else otherwise(run)

    return code


def chain(first: Code, rest: list[tuple[str, Code, Place]]) -> Code:
    """Operands with operators of one precedence between them."""
    if len(rest) == 1:
        return binary(*rest[0][:1], first, *rest[0][1:])

    def code(run: Run) -> Any:
        value = first(run)
        for symbol, operand, place in rest:
            value = operated(run, place, symbol, value, operand(run))
        return value

    return code


def operated(run: Run, place: Place, symbol: str, a: Any, b: Any) -> Any:
    """The result of an arithmetic operator for any two values."""
    if type(a) is int and type(b) is int and symbol in QUICK:
        result = QUICK[symbol](a, b)
        if -INT_MAX <= result <= INT_MAX:
            return result
    return guarded(run, place, arithmetic.apply, run, symbol, a, b)


def binary(symbol: str, left: Code, right: Code, place: Place) -> Code:
    """`left symbol right` for `+ - * / **`."""
    quick = QUICK.get(symbol)
    if quick is None:
        return lambda run: guarded(run, place, arithmetic.apply, run, symbol, left(run), right(run))

    plus, exact = symbol == "+", EXACT[symbol]

    def code(run: Run) -> Any:
        a = left(run)
        b = right(run)
        kind = type(a)
        if kind is int and type(b) is int:
            result = quick(a, b)
            if -INT_MAX <= result <= INT_MAX:
                return result
        elif kind is str and plus and type(b) is str and len(a) + len(b) < SHORT_CHARS:
            run.bytes += PAIR_BYTES
            return a + b
        elif kind in NUMBERS and type(b) in NUMBERS:
            run.steps += arithmetic.APPLY_STEPS
            run.bytes += arithmetic.APPLY_BYTES
            return guarded(run, place, exact, a, b)
        return guarded(run, place, arithmetic.apply, run, symbol, a, b)

    return code


def negation(operand: Code, place: Place) -> Code:
    return lambda run: guarded(run, place, arithmetic.negate, operand(run))


def conjunction(parts: list[Code], place: Place) -> Code:
    """`and`: false when one is false, else null when one is null, else true."""

    def code(run: Run) -> bool | None:
        result = True
        for part in parts:
            value = part(run)
            if value is False:
                return False
            if value is not True:
                as_truth(run, place, value)
                result = None
        return result

    return code


def disjunction(parts: list[Code], place: Place) -> Code:
    """`or`: true when one is true, else null when one is null, else false."""

    def code(run: Run) -> bool | None:
        result = False
        for part in parts:
            value = part(run)
            if value is True:
                return True
            if value is not False:
                as_truth(run, place, value)
                result = None
        return result

    return code


def between(value: Code, low: Code, high: Code, place: Place) -> Code:
    """`value between low and high`, both included."""

    def code(run: Run) -> Any:
        found, lowest, highest = value(run), low(run), high(run)
        if lowest is None or highest is None:  # an open end is for ranges only
            run.warn("Expected a value on both sides of 'and', but found null", place)
            return None
        return guarded(run, place, compare.within, found, Range(lowest, highest))

    return code


# --- in ---------------------------------------------------------------------------------------

Test = Callable[[Run, Any], Any]


def passes(run: Run, value: Any, expected: Any) -> bool:
    """Whether a value is in a range, in a list, or equal to another value."""
    if type(expected) is Range:
        return compare.within(value, expected)
    if type(expected) is list and type(value) is not list:
        run.spend(MEMBER_STEPS * len(expected))
        return any(_member(run, value, clean(item)) for item in expected)
    if type(expected) is list and compare.same(run, value, expected):
        return True
    if type(expected) is list:
        run.spend(MEMBER_STEPS * len(expected))
        return any(compare.same(run, value, item) for item in expected)
    if expected is None and value is not None:
        raise Problem("Expected something to be in, but found null")
    return compare.equal(run, value, expected)


def _member(run: Run, value: Any, item: Any) -> bool:
    if type(item) is Range:
        try:
            return compare.within(value, item)
        except Problem:
            return False
    return compare.same(run, value, item)


def value_test(operand: Code, place: Place) -> Test:
    return lambda run, value: guarded(run, place, passes, run, value, operand(run))


def operator_test(symbol: str, operand: Code, place: Place) -> Test:
    return lambda run, value: guarded(run, place, compared, run, symbol, value, operand(run))


def membership(value: Code, tests: list[Test]) -> Code:
    """`value in (test, test)`: true when one holds, else null when one is null, else false."""

    def code(run: Run) -> bool | None:
        found = value(run)
        result = False
        for test in tests:
            passed = test(run, found)
            if passed is True:
                return True
            if passed is None:
                result = None
        return result

    return code
