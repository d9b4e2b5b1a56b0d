"""The example application uses every public call, is clean to both type checkers, and runs."""

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from checkers import ROOT, mypy, pyright
from tests.cli.shell import Shell

import holdfast

pytestmark = pytest.mark.xdist_group("typing")

EXAMPLES = ROOT / "docs" / "examples"
SHOP = [EXAMPLES / "shop.py", EXAMPLES / "web_shop.py"]

# Public by their names alone: the parts of the client use them among themselves.
BETWEEN_PARTS = {
    "BoundTask.new_task",
    "ConsoleCalls.close_console",
    "ContentCalls.close_content",
    "GroupCalls.close_groups",
    "GroupCalls.group_function",
    "Owned.hand_in",
    "Steps.steps",
}


def public_methods() -> Iterator[tuple[type[Any], str, Any, FunctionType]]:
    """The class that has it, the name, what stands there, and the function behind it."""
    for public in holdfast.__all__:
        kind = getattr(holdfast, public)
        for name in dir(kind) if isinstance(kind, type) else ():
            home = next((each for each in kind.__mro__ if name in vars(each)), kind)
            function = _function(vars(home).get(name))
            if function is not None and not name.startswith("_"):
                yield home, name, vars(home)[name], function


def _function(found: Any) -> FunctionType | None:
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "__func__", found)
    is_ours = isinstance(found, FunctionType) and found.__module__.startswith("holdfast")
    return found if is_ours else None


def expected() -> set[str]:
    found = {f"{kind.__name__}.{name}" for kind, name, _, _ in public_methods()}
    assert len(found) > 130
    return found - BETWEEN_PARTS


def test_every_public_name_and_method_stands_in_the_shop() -> None:
    used: set[str] = set()
    for path in SHOP:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == "holdfast":
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.FunctionDef):  # methods of a codec are overridden
                used.add(node.name)
    assert set(holdfast.__all__) - used == set()
    assert {each for each in expected() if each.partition(".")[2] not in used} == set()


def test_type_checkers_find_nothing_in_the_shop() -> None:
    assert mypy(SHOP, path=EXAMPLES) == []
    assert pyright(SHOP, path=EXAMPLES) == []


def test_the_shop_runs_and_calls_every_public_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    for name in ("shop", "web_shop"):
        sys.modules.pop(name, None)
    called: set[str] = set()
    for kind, name, found, function in list(public_methods()):
        noted = _noted(function, f"{kind.__name__}.{name}", called)
        if isinstance(found, property):
            noted = property(noted)
        elif isinstance(found, classmethod):
            noted = classmethod(noted)
        monkeypatch.setattr(kind, name, noted)
    shell = Shell(tmp_path)
    shell.serve_node(partitions=1)
    try:
        importlib.import_module("shop").main(tmp_path / "shop")
        importlib.import_module("web_shop").main(tmp_path / "web", shell.url)
    finally:
        shell.close()
        for name in ("shop", "web_shop"):  # other tests have modules of these names, too
            sys.modules.pop(name, None)
    overridden = {f"ValueCodec.{name}" for name in ("encode", "decode", "seal", "unseal")}
    assert expected() - overridden - called == set()


def _noted(function: FunctionType, name: str, called: set[str]) -> Any:
    @functools.wraps(function)
    def note(*args: Any, **kwargs: Any) -> Any:
        called.add(name)
        return function(*args, **kwargs)

    if inspect.iscoroutinefunction(function):
        return _marked(note)
    return note


def _marked(note: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(note)
    async def wait(*args: Any, **kwargs: Any) -> Any:
        return await note(*args, **kwargs)

    return wait
