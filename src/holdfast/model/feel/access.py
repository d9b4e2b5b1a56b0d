"""Paths and filters as code: into contexts, over lists, into the parts of dates."""

from typing import Any

from holdfast.model.feel.numeric import integral
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import Code, Cost, Run, guarded
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.temporal import PARTS
from holdfast.model.feel.values import an, clean, kind_of

MISSING: Any = object()
ITEM_STEPS = 2  # of a filter: giving the item its name, and keeping it or not


def path(value: Code, name: str, place: Place) -> Code:
    """`value.name`."""

    def code(run: Run) -> Any:
        found = value(run)
        if type(found) is dict:
            entry = found.get(name, MISSING)
            if entry is not MISSING:
                kind = type(entry)
                return entry if kind is not float and kind is not tuple else clean(entry)
        return guarded(run, place, part_of, run, found, name)

    return code


def part_of(run: Run, value: Any, name: str) -> Any:
    """What a name stands for in a value: an entry, one of each item, or a part of a date."""
    if type(value) is dict:
        if name not in value:
            raise Problem(f"No entry '{name}' in the context")
        return clean(value[name])
    if type(value) is list:
        run.spend(3 * len(value), 8 * len(value))
        return [
            clean(item.get(name)) if type(item) is dict else _part(item, name) for item in value
        ]
    parts = PARTS.get(type(value))
    if parts is None or name not in parts:
        raise Problem(f"No property '{name}' of {an(kind_of(value))}")
    return parts[name](value)


def _part(item: Any, name: str) -> Any:
    part = PARTS.get(type(item), {}).get(name)
    return part and part(item)


def item_at(items: list[Any], index: Any) -> Any:
    """The item at an index from 1, or from the end when negative."""
    if type(index) is not int:
        if index != integral(index):
            raise Problem(f"Expected a whole number as index, but found {index}")
        index = integral(index)
    if index == 0 or abs(index) > len(items):
        raise Problem(f"No item {index} in a list of {len(items)}")
    return clean(items[index - 1 if index > 0 else index])


def items_of(value: Any) -> list[Any]:
    """A value as a filter sees it: a list, or the only item of one."""
    if value is None:
        raise Problem("Expected a list, but found null")
    return value if type(value) is list else [value]


def indexed(value: Code, index: Any, place: Place) -> Code:
    """`value[3]`, where the index is written down."""

    def at(found: Any) -> Any:
        return item_at(items_of(found), index)

    return lambda run: guarded(run, place, at, value(run))


def filtered(value: Code, condition: Code, cost: Cost, slot: int, place: Place) -> Code:
    """`value[condition]`: those items for which it holds, or one if it turns out a number."""
    steps, made_bytes = cost.plus(ITEM_STEPS, 8)

    def code(run: Run) -> Any:
        items = guarded(run, place, items_of, value(run))
        if items is None:
            return None
        kept: list[Any] = []
        values = run.locals
        before = values[slot]
        try:
            run.spend(steps * len(items), made_bytes * len(items))
            for item in items:
                values[slot] = item = clean(item)
                passed = condition(run)
                if passed is True:
                    kept.append(item)
                elif type(passed) is not bool and kind_of(passed) == "number":
                    return guarded(run, place, item_at, items, passed)
        except Spent as spent:
            raise spent.at(place, "a filter") from None
        finally:
            values[slot] = before
        return kept

    return code
