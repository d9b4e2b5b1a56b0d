"""Built-in functions on contexts."""

from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import nested
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.values import an, clean, kind_of, shown

ENTRY_STEPS = 5
CONTEXT_BYTES, ENTRY_BYTES = 300, 64  # a small context; each entry of a large one


@builtin(
    "get value(m/context/context: context, key/key/keys: string|list)",
    "The value at a key, or at a path of keys.",
    'get value({a: {b: 1}}, ["a", "b"])',
    "1",
)
def get_value(run: Run, context: dict[str, Any], key: Any) -> Any:
    """What is at the end of a path; null where the path ends before."""
    found: Any = context
    for step in _keys(run, key):
        if type(found) is not dict or step not in found:
            raise Problem(f"No entry '{shown(step)}' in the context")
        found = clean(found[step])
    return found


def _keys(run: Run, key: Any) -> list[str]:
    keys = key if type(key) is list else [key]
    run.spend(ENTRY_STEPS * len(keys))
    for step in keys:
        if type(step) is not str:
            raise Problem(f"Expected keys to be strings, but found {an(kind_of(step))}")
    return keys


@builtin(
    "get entries(m/context: context)",
    "The keys with their values, as a list.",
    "get entries({a: 1})",
    '[{key: "a", value: 1}]',
)
def get_entries(run: Run, context: dict[str, Any]) -> list[Any]:
    """A list with a context for each entry."""
    run.spend(ENTRY_STEPS * len(context), CONTEXT_BYTES * len(context))
    return [{"key": key, "value": clean(value)} for key, value in context.items()]


@builtin(
    "context put(context: context, key: string, value: any)",
    "The context with one entry more, or another value for it.",
    'context put({a: 1}, "b", 2)',
    "{a: 1, b: 2}",
)
def context_put(run: Run, context: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A context that differs from the given one in one entry."""
    _copied(run, context)
    return {**context, key: value}


def _copied(run: Run, context: dict[str, Any]) -> None:
    """Pay for a context of as many entries."""
    run.spend(1 + len(context) // 4, CONTEXT_BYTES + ENTRY_BYTES * len(context))


@builtin(
    "context put(context: context, keys: list, value: any)",
    "The same at the end of a path; contexts that are missing are made.",
    'context put({a: {b: 1}}, ["a", "c"], 2)',
    "{a: {b: 1, c: 2}}",
)
def context_put_at(run: Run, context: Any, keys: list[Any], value: Any) -> dict[str, Any]:
    """A context that differs from the given one along one path."""
    path = _keys(run, keys)
    if not path:
        raise Problem("Expected at least one key")
    return _put(run, context, path, value, 0)


def _put(run: Run, context: Any, path: list[str], value: Any, depth: int) -> dict[str, Any]:
    if context is None:
        context = {}
    if type(context) is not dict:
        raise Problem(f"Expected a context at '{shown(path[0])}', but found {an(kind_of(context))}")
    run.spend(ENTRY_STEPS + len(path) // 16)
    _copied(run, context)
    if len(path) == 1:
        return {**context, path[0]: value}
    below = _put(run, context.get(path[0]), path[1:], value, nested(depth))
    return {**context, path[0]: below}


@builtin(
    "context merge(contexts: list)",
    "All entries as one context; the last one of a name counts.",
    "context merge([{a: 1}, {a: 2, b: 3}])",
    "{a: 2, b: 3}",
)
def context_merge(run: Run, contexts: list[Any]) -> dict[str, Any]:
    """Many contexts as one."""
    merged: dict[str, Any] = {}
    for context in contexts:
        if type(context) is not dict:
            raise Problem(f"Expected contexts, but found {an(kind_of(context))}")
        _copied(run, context)
        merged.update(context)
    return merged
