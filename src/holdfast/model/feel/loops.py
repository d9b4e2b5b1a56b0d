"""`for`, `some` and `every` as code."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Code, Run, as_truth, guarded
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.values import Range, an, clean, kind_of


class Source(NamedTuple):
    """Where the values of one name come from."""

    slot: int
    start: Code
    end: Code | None
    place: Place


def stretch(start: Any, end: Any) -> Iterator[Any]:
    """Every whole number, or every day, from one to another, up or down."""
    if type(start) is int and type(end) is int:
        return iter(range(start, end + 1) if start <= end else range(start, end - 1, -1))
    if type(start) is date and type(end) is date:
        step = 1 if start <= end else -1
        count = abs((end - start).days) + 1
        return (start + timedelta(days=step * index) for index in range(count))
    raise Problem(
        f"Expected whole numbers or dates on both sides of '..', but found "
        f"{an(kind_of(start))} and {an(kind_of(end))}"
    )


def items(value: Any) -> Iterator[Any]:
    """The items of a list or of a range of whole numbers or dates."""
    if type(value) is list:
        return map(clean, value)
    if type(value) is Range:
        low, high = value.start, value.end
        one: Any = timedelta(days=1) if type(low) is date else 1
        if type(low) is type(high) and type(low) in (int, date):
            low = low if value.start_included else low + one
            high = high if value.end_included else high - one
            return stretch(low, high) if low <= high else iter(())
    if value is None or type(value) is Range:
        raise Problem(f"Expected a list to go through, but found {an(kind_of(value))}")
    return iter((value,))


class Undone(Exception):
    """A source has no items to go through, so the loop has no value."""


def combinations(run: Run, sources: list[Source], at: int = 0) -> Iterator[None]:
    """Set the names to every combination of items, the last name changing fastest."""
    slot, start, end, place = sources[at]
    if end is None:
        found = guarded(run, place, items, start(run))
    else:
        found = guarded(run, place, stretch, start(run), end(run))
    if found is None:
        raise Undone
    last = at + 1 == len(sources)
    for item in found:
        run.spend(1)
        run.locals[slot] = item
        if last:
            yield
        else:
            yield from combinations(run, sources, at + 1)


def for_each(sources: list[Source], body: Code, partial: int | None) -> Code:
    """A list of the body's values; `partial` is the slot of the list so far, if it is read."""

    def code(run: Run) -> Any:
        results: list[Any] = []
        try:
            for _ in combinations(run, sources):
                if partial is not None:
                    run.spend(len(results))
                    run.locals[partial] = results.copy()
                results.append(body(run))
        except Undone:
            return None
        return results

    return code


def quantified(every: bool, sources: list[Source], condition: Code, place: Place) -> Code:
    """Whether the condition holds for some, or for every, combination."""

    def code(run: Run) -> bool | None:
        result: bool | None = every
        try:
            for _ in combinations(run, sources):
                holds = as_truth(run, place, condition(run))
                if holds is (not every):
                    return holds
                if holds is None:
                    result = None
        except Undone:
            return None
        return result

    return code
