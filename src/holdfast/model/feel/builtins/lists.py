"""Built-in functions on lists: looking into them and making others of them."""

from functools import cmp_to_key
from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import nested, order, same
from holdfast.model.feel.numeric import Number, integral
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import SLOT_BYTES, Run
from holdfast.model.feel.values import Function, an, clean, kind_of

ITEM_STEPS, ITEM_BYTES = 10, 40  # an item that is compared; a number that is made for it
COMPARED_STEPS, SORTED_BYTES = 15, 72  # of two items in order; of an item while it is sorted


@builtin(
    "list contains(list: list, element: any)",
    "Whether a list contains a value.",
    "list contains([1, 2, 3], 2)",
    "true",
)
def list_contains(run: Run, items: list[Any], element: Any) -> bool:
    """Looked for from the front; values of other types are different."""
    run.spend(ITEM_STEPS * len(items))
    return any(same(run, item, element) for item in items)


@builtin("count(list: list)", "How many items a list has.", "count([1, 2, 3])", "3")
def count(run: Run, items: list[Any]) -> int:
    return len(items)


@builtin("is empty(list: list)", "Whether a list has no items.", "is empty([])", "true")
def is_empty(run: Run, items: list[Any]) -> bool:
    return not items


@builtin(
    "sublist(list: list, start position: number, length: number?)",
    "The items from a position on, from the end when negative.",
    "sublist([1, 2, 3, 4], -2)",
    "[3, 4]",
)
def sublist(run: Run, items: list[Any], start: Number, length: Number | None) -> list[Any]:
    """Some items in a row; all that follow where no length is given."""
    begin = _index(items, start)
    if length is not None and length < 0:
        raise Problem(f"Expected a length that is not negative, but found {length}")
    end = len(items) if length is None else min(begin + integral(length), len(items))
    run.copy(max(end - begin, 0))
    return items[begin:end]


def _index(items: list[Any], position: Number) -> int:
    """Where a position from 1, or from -1 backwards, is in Python's list."""
    position = integral(position)
    if position == 0 or abs(position) > len(items):
        raise Problem(f"No item {position} in a list of {len(items)}")
    return position - 1 if position > 0 else len(items) + position


@builtin(
    "append(list: list, items...: any)",
    "The list with more items at its end.",
    "append([1], 2, 3)",
    "[1, 2, 3]",
)
def append(run: Run, items: list[Any], *more: Any) -> list[Any]:
    """A longer list; the given one stays as it is."""
    run.copy(len(items) + len(more))
    return [*items, *more]


@builtin(
    "concatenate(lists...: list)",
    "All items of the lists, one after the other.",
    "concatenate([1, 2], [3])",
    "[1, 2, 3]",
)
def concatenate(run: Run, *lists: list[Any]) -> list[Any]:
    """One list of many, in their order."""
    run.spend(sum(map(len, lists)) // 4)
    run.copy(sum(map(len, lists)))
    return [item for items in lists for item in items]


@builtin(
    "insert before(list: list, position: number, newItem: any)",
    "The list with an item more, at a position.",
    "insert before([1, 3], 2, 2)",
    "[1, 2, 3]",
)
def insert_before(run: Run, items: list[Any], position: Number, item: Any) -> list[Any]:
    """A longer list; just behind the last item is a position too."""
    at = len(items) if position == len(items) + 1 else _index(items, position)
    run.copy(2 * len(items))
    return [*items[:at], item, *items[at:]]


@builtin(
    "list replace(list: list, position/match: number|function, newItem: any)",
    "The list with another item at a position, or wherever a function of both says true.",
    "list replace([1, 2, 5], function(item, newItem) item < newItem, 3)",
    "[3, 3, 5]",
)
def list_replace(run: Run, items: list[Any], position: Any, item: Any) -> list[Any]:
    """A list in which one item, or several, have made way."""
    run.copy(2 * len(items))
    if isinstance(position, Function):
        return [item if _matches(run, position, old, item) else old for old in items]
    at = _index(items, position)
    return [*items[:at], item, *items[at + 1 :]]


def _matches(run: Run, function: Function, old: Any, item: Any) -> bool:
    found = run.call(function, old, item)
    if type(found) is not bool:
        raise Problem(f"Expected the function to give a boolean, but found {an(kind_of(found))}")
    return found


@builtin(
    "remove(list: list, position: number)",
    "The list without the item at a position.",
    "remove([1, 2, 3], 2)",
    "[1, 3]",
)
def remove(run: Run, items: list[Any], position: Number) -> list[Any]:
    """A shorter list."""
    at = _index(items, position)
    run.copy(2 * len(items))
    return [*items[:at], *items[at + 1 :]]


@builtin("reverse(list: list)", "The items from the last.", "reverse([1, 2, 3])", "[3, 2, 1]")
def reverse(run: Run, items: list[Any]) -> list[Any]:
    """The same items, the last one first."""
    run.copy(len(items))
    return items[::-1]


@builtin(
    "index of(list: list, match: any)",
    "The positions at which a value is.",
    "index of([1, 2, 3, 2], 2)",
    "[2, 4]",
)
def index_of(run: Run, items: list[Any], match: Any) -> list[int]:
    """Every position from 1 on, not only the first."""
    run.spend(ITEM_STEPS * len(items), ITEM_BYTES * len(items))
    return [index for index, item in enumerate(items, 1) if same(run, item, match)]


@builtin(
    "flatten(list: list)",
    "All items of the lists in a list, however deep.",
    "flatten([[1, 2], [[3]], 4])",
    "[1, 2, 3, 4]",
)
def flatten(run: Run, items: list[Any]) -> list[Any]:
    """One list of the items of all lists in it."""
    flat: list[Any] = []
    _flatten(run, items, flat, 0)
    return flat


def _flatten(run: Run, items: list[Any], flat: list[Any], depth: int) -> None:
    run.spend(5 * (1 + len(items)), SLOT_BYTES * len(items))
    for item in map(clean, items):
        if type(item) is list:
            _flatten(run, item, flat, nested(depth))
        else:
            flat.append(item)


@builtin(
    "sort(list: list, precedes: function?)",
    "The items in order, or in that of a function that says whether one precedes another.",
    "sort([3, 1, 2], function(x, y) x > y)",
    "[3, 2, 1]",
)
def sort(run: Run, items: list[Any], precedes: Function | None) -> list[Any]:
    """A sorted list; items that are equal keep their order."""
    run.spend(len(items), SORTED_BYTES * len(items))

    def compare(a: Any, b: Any) -> int:
        run.spend(COMPARED_STEPS)
        if precedes is None:
            return order(a, b)
        if run.call(precedes, a, b) is True:
            return -1
        return 1 if run.call(precedes, b, a) is True else 0

    return sorted(items, key=cmp_to_key(compare))


@builtin(
    "partition(list: list, size: number)",
    "The list in parts of a size; the last may be shorter.",
    "partition([1, 2, 3, 4, 5], 2)",
    "[[1, 2], [3, 4], [5]]",
)
def partition(run: Run, items: list[Any], size: Number) -> list[list[Any]]:
    """Lists of so many items each."""
    size = integral(size)
    if size < 1:
        raise Problem(f"Expected a size of at least 1, but found {size}")
    run.spend(2 * len(items), 64 * len(items))
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
