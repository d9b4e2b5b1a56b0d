"""Built-in functions that make one value of a list."""

from collections import Counter
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from holdfast.model.feel import numeric
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import KEY_BYTES, order
from holdfast.model.feel.numeric import CONTEXT, Number, whole
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import SLOT_BYTES, Run
from holdfast.model.feel.values import an, kind_of

COMPARED_STEPS = 15  # two items, by their order
DECIMAL_STEPS, DECIMAL_BYTES = 12, 104  # one operation, and its result


def _numbers(run: Run, items: list[Any]) -> list[Number]:
    """The items, all of which have to be numbers."""
    run.spend(2 * len(items))
    for item in items:
        if kind_of(item) != "number":
            raise Problem(f"Expected numbers, but found {an(kind_of(item))}")
    if not items:
        raise Problem("Expected at least one number")
    return items


def _extreme(run: Run, items: list[Any], sign: int) -> Any:
    run.spend(COMPARED_STEPS * len(items))
    if not items:
        raise Problem("Expected at least one item")
    best = items[0]
    order(best, best)  # a single item has to have an order too
    for item in items[1:]:
        if order(item, best) * sign > 0:
            best = item
    return best


@builtin("min(list: list)", "The smallest item.", "min([3, 1, 2])", "1")
def smallest(run: Run, items: list[Any]) -> Any:
    return _extreme(run, items, -1)


@builtin("min(items...: any)", "The smallest argument.", "min(3, 1, 2)", "1")
def smallest_of(run: Run, *items: Any) -> Any:
    return _extreme(run, list(items), -1)


@builtin("max(list: list)", "The largest item.", "max([3, 1, 2])", "3")
def largest(run: Run, items: list[Any]) -> Any:
    return _extreme(run, items, 1)


@builtin("max(items...: any)", "The largest argument.", "max(3, 1, 2)", "3")
def largest_of(run: Run, *items: Any) -> Any:
    return _extreme(run, list(items), 1)


@builtin("sum(list: list)", "The numbers, added.", "sum([1, 2, 3])", "6")
def total(run: Run, items: list[Any]) -> Number:
    """The sum; of ints in one go, since they are exact."""
    numbers = _numbers(run, items)
    if all(type(number) is int for number in numbers):
        return whole(sum(numbers))
    run.spend(DECIMAL_STEPS * len(numbers))
    result: Number = 0
    for number in numbers:
        result = numeric.add(result, number)
    return result


@builtin("sum(items...: any)", "The arguments, added.", "sum(1, 2, 3)", "6")
def total_of(run: Run, *items: Any) -> Number:
    return total(run, list(items))


@builtin("product(list: list)", "The numbers, multiplied.", "product([2, 3, 4])", "24")
def product(run: Run, items: list[Any]) -> Number:
    """Multiplied from the first on."""
    run.spend(DECIMAL_STEPS * len(items))
    result: Number = 1
    for number in _numbers(run, items):
        result = numeric.multiply(result, number)
    return result


@builtin("product(items...: any)", "The arguments, multiplied.", "product(2, 3, 4)", "24")
def product_of(run: Run, *items: Any) -> Number:
    return product(run, list(items))


@builtin("mean(list: list)", "The average of numbers.", "mean([1, 2, 6])", "3")
def mean(run: Run, items: list[Any]) -> Number:
    return numeric.divide(total(run, items), len(items))


@builtin("mean(items...: any)", "The average of the arguments.", "mean(1, 2, 6)", "3")
def mean_of(run: Run, *items: Any) -> Number:
    return mean(run, list(items))


@builtin(
    "median(list: list)",
    "The number in the middle, or the average of the two there.",
    "median([8, 2, 5, 3, 4])",
    "4",
)
def median(run: Run, items: list[Any]) -> Number:
    """The middle of the numbers in order."""
    run.spend(COMPARED_STEPS * len(items), SLOT_BYTES * len(items))
    ordered = sorted(_numbers(run, items))
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return numeric.divide(numeric.add(ordered[middle - 1], ordered[middle]), 2)


@builtin("median(items...: any)", "The same for the arguments.", "median(6, 1, 2, 3)", "2.5")
def median_of(run: Run, *items: Any) -> Number:
    return median(run, list(items))


@builtin(
    "stddev(list: list)", "The standard deviation of a sample.", "stddev([2, 4, 7, 5])",
    "2.081665999466132735282297706979931",
)  # fmt: skip
def deviation(run: Run, items: list[Any]) -> Number:
    """How far numbers are from their average, over one less than their count."""
    average = mean(run, items)
    if len(items) < 2:
        raise Problem("Expected at least two numbers")
    run.spend(3 * DECIMAL_STEPS * len(items), DECIMAL_BYTES * len(items))
    squares = [numeric.power(numeric.subtract(item, average), 2) for item in items]
    variance = numeric.divide(total(run, squares), len(items) - 1)
    return whole(CONTEXT.sqrt(Decimal(variance)))


@builtin("stddev(items...: any)", "The same for the arguments.", "stddev(5, 5)", "0")
def deviation_of(run: Run, *items: Any) -> Number:
    return deviation(run, list(items))


@builtin(
    "mode(list: list)",
    "The numbers that are there most often, in order.",
    "mode([6, 1, 9, 6, 1])",
    "[1, 6]",
)
def mode(run: Run, items: list[Any]) -> list[Any]:
    """Those that no other is more frequent than."""
    if not items:
        return []
    run.spend(DECIMAL_STEPS * len(items), KEY_BYTES * len(items))
    counts = Counter(_numbers(run, items))
    most = max(counts.values())
    found = [number for number, count in counts.items() if count == most]
    run.spend(COMPARED_STEPS * len(found) * len(found).bit_length())
    return sorted(found, key=cmp_to_key(order))


@builtin("mode(items...: any)", "The same for the arguments.", "mode(6, 3, 9, 6, 6)", "[6]")
def mode_of(run: Run, *items: Any) -> list[Any]:
    return mode(run, list(items))


def _all(run: Run, items: list[Any]) -> bool | None:
    """False when one is false, else null when one is no boolean, else true."""
    run.spend(len(items))
    if any(item is False for item in items):
        return False
    return True if all(item is True for item in items) else None


def _any(run: Run, items: list[Any]) -> bool | None:
    """True when one is true, else null when one is no boolean, else false."""
    run.spend(len(items))
    if any(item is True for item in items):
        return True
    return False if all(item is False for item in items) else None


for _name in ("all", "and"):
    _said = "Whether all are true: `and` over a list."
    builtin(f"{_name}(list: list)", _said, f"{_name}([true, false])", "false")(_all)
    builtin(f"{_name}(items...: any)", _said, f"{_name}(true, null)", "null")(
        lambda run, *items: _all(run, list(items))
    )
for _name in ("any", "or"):
    _said = "Whether one is true: `or` over a list."
    builtin(f"{_name}(list: list)", _said, f"{_name}([true, false])", "true")(_any)
    builtin(f"{_name}(items...: any)", _said, f"{_name}(false, null)", "null")(
        lambda run, *items: _any(run, list(items))
    )
