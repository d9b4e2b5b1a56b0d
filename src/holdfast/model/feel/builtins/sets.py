"""Built-in functions that take lists as sets."""

from collections import Counter
from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import ITEM_STEPS, KEY_BYTES, frozen
from holdfast.model.feel.run import Run


@builtin(
    "distinct values(list: list)",
    "The items without those that were there before.",
    "distinct values([1, 2, 3, 2, 1])",
    "[1, 2, 3]",
)
def distinct_values(run: Run, items: list[Any]) -> list[Any]:
    """Each value where it is first."""
    run.spend(ITEM_STEPS * len(items), KEY_BYTES * len(items))
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(frozen(run, item), item)
    return list(found.values())


@builtin(
    "duplicate values(list: list)",
    "The items that are there more than once.",
    "duplicate values([1, 2, 3, 2, 1])",
    "[1, 2]",
)
def duplicate_values(run: Run, items: list[Any]) -> list[Any]:
    """Each value that comes again, once, where it is first."""
    run.spend(ITEM_STEPS * len(items), KEY_BYTES * len(items))
    keys = [frozen(run, item) for item in items]
    counts = Counter(keys)
    found = dict(zip(reversed(keys), reversed(items), strict=True))
    return [found[key] for key in counts if counts[key] > 1]


@builtin(
    "union(lists...: list)",
    "All items of the lists, each once.",
    "union([1, 2], [2, 3])",
    "[1, 2, 3]",
)
def union(run: Run, *lists: list[Any]) -> list[Any]:
    """Each value where it is first."""
    run.copy(sum(map(len, lists)))
    return distinct_values(run, [item for items in lists for item in items])
