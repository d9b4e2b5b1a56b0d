"""`for`, `some` and `every` as code."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import BLOCK_STEPS, Code, Cost, Run, as_truth, guarded
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.values import Range, an, clean, kind_of

ITEM_STEPS = 2  # of a loop: taking the next item and giving it its name
DAY_STEPS = 8  # working out the next day
ITEM_BYTES = 40  # of a loop with results: a place in the list, and a small value


class Source(NamedTuple):
    """Where the values of one name come from."""

    slot: int
    start: Code
    end: Code | None
    place: Place
    cost: Cost  # of working out where to go from and to


def stretch(run: Run, start: Any, end: Any) -> Iterator[Any]:
    """Every whole number, or every day, from one to another, up or down."""
    if type(start) is int and type(end) is int:
        return iter(range(start, end + 1) if start <= end else range(start, end - 1, -1))
    if type(start) is date and type(end) is date:
        return _days(run, start, end)
    raise Problem(
        f"Expected whole numbers or dates on both sides of '..', but found "
        f"{an(kind_of(start))} and {an(kind_of(end))}"
    )


def _days(run: Run, start: date, end: date) -> Iterator[date]:
    step = 1 if start <= end else -1
    for index in range(abs((end - start).days) + 1):
        run.steps += DAY_STEPS
        yield start + timedelta(days=step * index)


def items(run: Run, value: Any) -> Iterator[Any]:
    """The items of a list or of a range of whole numbers or dates."""
    if type(value) is list:
        return map(clean, value)
    if type(value) is Range:
        low, high = value.start, value.end
        one: Any = timedelta(days=1) if type(low) is date else 1
        if type(low) is type(high) and type(low) in (int, date):
            low = low if value.start_included else low + one
            high = high if value.end_included else high - one
            if value.start > value.end:
                raise Problem("Expected a range that goes up; without brackets it may go down")
            return stretch(run, low, high) if low <= high else iter(())
    if value is None or type(value) is Range:
        raise Problem(f"Expected a list to go through, but found {an(kind_of(value))}")
    return iter((value,))


class Undone(Exception):
    """A source has no items to go through, so the loop has no value."""


def combinations(run: Run, sources: list[Source], at: int = 0) -> Iterator[None]:
    """Set the names to every combination of items, the last name changing fastest."""
    slot, start, end, place, cost = sources[at]
    run.spend(cost.steps, cost.bytes)
    if end is None:
        found = guarded(run, place, items, run, start(run))
    else:
        found = guarded(run, place, stretch, run, start(run), end(run))
    if found is None:
        raise Undone
    last = at + 1 == len(sources)
    for item in found:
        run.locals[slot] = item
        if last:
            yield
        else:
            run.spend(ITEM_STEPS)
            yield from combinations(run, sources, at + 1)


def for_each(
    sources: list[Source], body: Code, cost: Cost, partial: int | None, place: Place
) -> Code:
    """A list of the body's values; `partial` is the slot of the list so far, if it is read."""
    steps, made_bytes = cost.plus(ITEM_STEPS, ITEM_BYTES)
    block = max(1, BLOCK_STEPS // steps)

    def code(run: Run) -> Any:
        results: list[Any] = []
        left = 0
        try:
            for _ in combinations(run, sources):
                if not left:
                    left = block
                    run.spend(steps * block, made_bytes * block)
                left -= 1
                if partial is not None:
                    run.spend(len(results) // 16, 8 * len(results))
                    run.locals[partial] = results.copy()
                results.append(body(run))
        except Undone:
            return None
        except Spent as spent:
            raise spent.at(place, "a 'for'") from None
        run.spend(-steps * left, -made_bytes * left)
        return results

    return code


def quantified(
    every: bool, sources: list[Source], condition: Code, cost: Cost, place: Place
) -> Code:
    """Whether the condition holds for some, or for every, combination."""
    steps, made_bytes = cost.plus(ITEM_STEPS)
    block = max(1, BLOCK_STEPS // steps)

    def code(run: Run) -> bool | None:
        result: bool | None = every
        left = 0
        try:
            for _ in combinations(run, sources):
                if not left:
                    left = block
                    run.spend(steps * block, made_bytes * block)
                left -= 1
                holds = as_truth(run, place, condition(run))
                if holds is (not every):
                    result = holds
                    break
                if holds is None:
                    result = None
        except Undone:
            return None
        except Spent as spent:
            raise spent.at(place, "an 'every'" if every else "a 'some'") from None
        run.spend(-steps * left, -made_bytes * left)
        return result

    return code
