"""docs/pictures/order.svg: the process of the README, drawn as it waits for its payment."""

import ast
import re
from typing import Any

from generator.markdown import ROOT
from holdfast.model.drawing import draw_svg

_DONE = (
    "start", "start--reserve", "reserve", "reserve--reserve-choice", "reserve-choice",
    "reserve-choice--reserve-merge", "reserve-merge", "reserve-merge--paid",
)  # fmt: skip
_TOKENS = {"paid": 1}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def picture() -> str:
    """One order, and where its token is."""
    definition = _process().definition()
    known = {each.id for each in (*definition.elements, *definition.flows)}
    missing = {*_DONE, *_TOKENS} - known
    assert not missing, f"the order process of README.md has no {missing}, only {known}"
    return draw_svg(definition, _TOKENS, done=_DONE)


def _process() -> Any:
    """The statements of the README that make `order`, without those that open a node."""
    blocks = _BLOCK.findall((ROOT / "README.md").read_text())
    [block] = [text for text in blocks if 'Process("order")' in text]
    tree = ast.parse(block)
    wanted: list[ast.stmt] = [
        each for each in tree.body if isinstance(each, ast.ImportFrom) or _makes_order(each)
    ]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(wanted, []), "README.md", "exec"), names)  # our own text
    return names["order"]


def _makes_order(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "order"
