"""What only the source knows: the comments beside fields, and annotations as they were written."""

import ast
import copy
import importlib
import io
import re
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

_SECTION = re.compile(r"--- (.+?) -+$")


class Field(NamedTuple):
    """One field of a class, or one constant of a module."""

    name: str
    annotation: str
    default: str  # as written; empty without one
    comment: str
    section: str = ""  # of a constant: the heading that it stands under


class Method(NamedTuple):
    """A function or method with its signature as it was written."""

    name: str
    signature: str
    doc: str
    decorators: tuple[str, ...]


@cache
def _parsed(path: str) -> tuple[ast.Module, dict[int, tuple[str, bool]]]:
    """The tree of a file, and its comments by line: the text, and whether it has the line alone."""
    text = Path(path).read_text()
    comments = {
        token.start[0]: (
            token.string.lstrip("# ").strip(),
            not token.line[: token.start[1]].strip(),
        )
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    return ast.parse(text), comments


def _path_of(module: str) -> str:
    path = importlib.import_module(module).__file__
    assert path is not None
    return path


def _comment(node: ast.stmt, comments: dict[int, tuple[str, bool]]) -> str:
    """The comments beside a statement, and those alone on the lines just above it."""
    above: list[str] = []
    line = node.lineno - 1
    while line in comments and comments[line][1] and not _SECTION.match(comments[line][0]):
        above.insert(0, comments[line][0])
        line -= 1
    assert node.end_lineno is not None
    beside = [
        comments[line][0] for line in range(node.lineno, node.end_lineno + 1) if line in comments
    ]
    found = (text for text in (*above, *beside) if not text.startswith("fmt:"))
    return " ".join(found)


def fields_of(kind: type[Any]) -> list[Field]:
    """The annotated fields of a class, in their order."""
    tree, comments = _parsed(_path_of(kind.__module__))
    return [
        Field(
            node.target.id,
            ast.unparse(node.annotation),
            "" if node.value is None else ast.unparse(node.value),
            _comment(node, comments),
        )
        for node in _class(tree, kind.__name__).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]


def members_of(kind: type[Any]) -> dict[str, str]:
    """The comments beside the members of an enum."""
    tree, comments = _parsed(_path_of(kind.__module__))
    return {
        node.targets[0].id: _comment(node, comments)
        for node in _class(tree, kind.__name__).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def constants_of(module: ModuleType) -> list[Field]:
    """The constants of a module in their order, each with the section that it stands in."""
    tree, comments = _parsed(_path_of(module.__name__))
    sections = [
        (line, found[1])
        for line, (text, _) in comments.items()
        if (found := _SECTION.match(text)) is not None
    ]
    return [
        Field(
            node.targets[0].id,
            "",
            ast.unparse(node.value),
            _comment(node, comments),
            max(((line, name) for line, name in sections if line < node.lineno), default=(0, ""))[
                1
            ],
        )
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]


def methods_of(kind: type[Any]) -> list[Method]:
    """The public methods of a class, without overloads, and `__init__`."""
    tree, _ = _parsed(_path_of(kind.__module__))
    return _functions(_class(tree, kind.__name__).body)


def function_of(function: Any) -> Method:
    """One function of a module."""
    tree, _ = _parsed(_path_of(function.__module__))
    return next(found for found in _functions(tree.body) if found.name == function.__name__)


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _functions(nodes: Iterable[ast.stmt]) -> list[Method]:
    found: list[Method] = []
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = tuple(ast.unparse(each) for each in node.decorator_list)
        is_public = not node.name.startswith("_") or node.name == "__init__"
        if is_public and "overload" not in decorators:
            doc = (ast.get_docstring(node) or "").partition("\n")[0]
            found.append(Method(node.name, _signature(node), doc, decorators))
    return found


class _Unquoted(ast.NodeTransformer):
    """Types that were quoted because they are defined later."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """`async name(a: int, *, b: str = "") -> None`, without self and without quoted types."""
    arguments = copy.deepcopy(node.args)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.annotation is not None:
            argument.annotation = _Unquoted().visit(argument.annotation)
    text = re.sub(r"^(self|cls)(, )?", "", ast.unparse(arguments)).removeprefix("/, ")
    text = re.sub(r"([\w\]])=", r"\1 = ", text)
    returns = ""
    if node.returns is not None:
        returns = " -> " + ast.unparse(_Unquoted().visit(copy.deepcopy(node.returns)))
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{node.name}({text}){returns}"
