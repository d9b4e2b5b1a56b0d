"""Everything that waits or calls has an async form with the same signature."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

import pytest

import holdfast

WAITING = {"call", "call_over_time", "call_once"}  # of a portal: the caller's thread waits
OTHER_WAITS = {
    ("result", "_running"),
    ("result", "done"),
    ("wait", "_left"),
    ("callback", "ending"),
}
NOT_A_PAIR = {
    "Transaction.__exit__": "`async with` is its async form",
    "ContentQueue.__iter__": "`async for` is its async form",
    "ContentQueue.__len__": "len() cannot be awaited: length_async() is its async form",
    "ContentQueue.head": "a property cannot be awaited: head_async() is its async form",
    "Owned.wait": "it is for threads; a coroutine function awaits leaving()",
}


def public_classes() -> list[type[Any]]:
    named = (getattr(holdfast, name) for name in holdfast.__all__)
    return [each for each in named if isinstance(each, type) and _is_of_the_client(each)]


def _is_of_the_client(each: type[Any]) -> bool:
    return each.__module__.startswith("holdfast.client.")


def functions_of(kind: type[Any]) -> Iterator[tuple[str, FunctionType]]:
    """All methods of a class, also those of its bases, class methods and properties."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        if isinstance(found, FunctionType) and found.__module__.startswith("holdfast.client."):
            yield name, found


@cache
def calls_of(function: FunctionType) -> list[tuple[str, str]]:
    """What a function calls: the name, and what it is called on."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(each.id, "") for each in called if isinstance(each, ast.Name)]
    dotted = [
        (each.attr, ast.unparse(each.value)) for each in called if isinstance(each, ast.Attribute)
    ]
    return named + dotted


def waits(kind: type[Any], function: FunctionType, seen: frozenset[str] = frozenset()) -> bool:
    """Whether the thread that calls the function waits for the portal's, or for another."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return False
    for name, on in calls_of(function):
        last = on.rpartition(".")[2]
        if name in WAITING and last.endswith("portal"):
            return True
        if (name, last) in OTHER_WAITS:
            return True
        owner: type[Any] | None = kind if on in ("self", "cls") else None
        if last in ("app", "_app"):
            owner = holdfast.Holdfast
        if not on and isinstance(made := getattr(holdfast, name, None), type):
            owner, name = made, "__init__"
        if owner is None or (key := f"{owner.__name__}.{name}") in seen:
            continue
        inner = dict(functions_of(owner)).get(name)
        if inner is not None and waits(owner, inner, seen | {key}):
            return True
    return False


def waiting_methods() -> list[tuple[type[Any], str, FunctionType]]:
    return [
        (kind, name, function)
        for kind in public_classes()
        for name, function in functions_of(kind)
        if (not name.startswith("_") or name in ("__iter__", "__len__", "__exit__", "__enter__"))
        and waits(kind, function)
    ]


def test_the_walk_finds_what_waits() -> None:
    found = {f"{kind.__name__}.{name}" for kind, name, _ in waiting_methods()}
    assert {
        "Holdfast.open", "Holdfast.close", "Holdfast.submit", "Holdfast.deploy",
        "Holdfast.subscriber", "Handle.result", "Worker.run", "Worker.stop", "PartitionGroup.stop",
        "ContentPublisher.events", "Task.submit", "Owned.flush",
    } <= found  # fmt: skip
    assert not {"Holdfast.handle", "Holdfast.worker", "Holdfast.group", "Task.bind"} & found


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_every_method_that_waits_has_an_async_form_with_the_same_signature(kind: Any) -> None:
    missing: list[str] = []
    for owner, name, function in waiting_methods():
        if owner is not kind or f"{kind.__name__}.{name}" in NOT_A_PAIR:
            continue
        if name in ("__enter__", "__exit__"):
            partner = getattr(kind, name.replace("__e", "__ae"), None)
            if partner is None:
                missing.append(f"{name}: `async with`")
            continue
        partner = getattr(kind, f"{name}_async", None)
        if partner is None:
            missing.append(f"{name}_async")
        elif parameters(function) != parameters(getattr(partner, "__func__", partner)):
            missing.append(f"{name}_async with {parameters(function)}")
    assert missing == []


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [
        (each.name, each.kind, each.default)
        for each in inspect.signature(function).parameters.values()
    ]


def test_what_is_no_pair_still_waits() -> None:
    found = {f"{kind.__name__}.{name}" for kind, name, _ in waiting_methods()}
    assert set(NOT_A_PAIR) <= found, "leave those out of the list that do not wait any more"
