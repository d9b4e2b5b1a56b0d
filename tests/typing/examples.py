"""The Python examples of the documents as modules that a type checker reads.

Each block is a module of its own, because blocks of a page may define a name anew. It imports the
names that it takes from earlier blocks of its page. A line has the number that it has in the
document.
"""

import ast
import builtins
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.documents import DOCS, ROOT

_BLOCK = re.compile(r"^(?:<!-- ?([^\n]*?) ?-->\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


_SCOPES = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp  # of their own


class Example(NamedTuple):
    """A block of a document."""

    document: Path
    line: int  # where its text begins, from 1
    file: str | None  # which it is written to, for other programs to import
    text: str


def documents() -> list[Path]:
    """What has examples for people."""
    folders = (DOCS / "how-to", DOCS / "explanation")
    return [
        ROOT / "README.md",
        *sorted(DOCS.glob("tutorial*.md")),
        *sorted(path for folder in folders for path in folder.glob("*.md")),
    ]


def examples_of(document: Path) -> Iterator[Example]:
    """All Python of a document, also what is not run; but not parts of programs."""
    text = document.read_text()
    for found in _BLOCK.finditer(text):
        if found[1] == "not run: fragment":
            continue
        marker = re.fullmatch(r"file: (\S+)", found[1] or "")
        yield Example(
            document, text.count("\n", 0, found.start(2)) + 1, marker and marker[1], found[2]
        )


def write_examples(documents: Iterable[Path], folder: Path) -> dict[Path, Path]:
    """Writes all examples into a folder; returns which document each came from."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    written: dict[Path, Path] = {}
    for document in documents:
        known: dict[str, str] = {}  # how a name of an earlier block is imported
        for example in examples_of(document):
            path = _path(example, folder, written)
            path.write_text(_module(example, known))
            written[path] = document
            tree = ast.parse(example.text)
            known |= {name: f"from {path.stem} import {name} as {name}" for name in _defined(tree)}
            known |= _imported(tree)
    return written


def _path(example: Example, folder: Path, written: dict[Path, Path]) -> Path:
    if example.file is not None and folder / example.file not in written:
        return folder / example.file
    page = re.sub(r"\W", "_", "_".join(example.document.with_suffix("").parts[-2:]))
    return folder / f"{page}_{example.line}.py"


def _module(example: Example, known: dict[str, str]) -> str:
    tree = ast.parse(example.text)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    used = {node.id for node in names}
    first = {node.id: node for node in reversed(names)}
    anew = {name for name in used if isinstance(first[name].ctx, ast.Load)} - _bound(tree)
    missing = (used - _defined(tree) | anew) - set(dir(builtins))
    imports = sorted({known[name] for name in missing & known.keys()})
    return "; ".join(imports) + "\n" * (example.line - 1) + example.text


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that a module imports, each with the statement that does it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            alone = (
                ast.Import([alias])
                if isinstance(node, ast.Import)
                else ast.ImportFrom(node.module, [alias], node.level)
            )
            found[alias.asname or alias.name.partition(".")[0]] = ast.unparse(alone)
    return found


def _bound(tree: ast.Module) -> set[str]:
    """What is a function, a class or an import of its own: it is not another block's."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    own = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    return own | _imported(tree).keys()


def _defined(tree: ast.Module) -> set[str]:
    """The names that a module has after it was run."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    for node in todo:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        todo += ast.iter_child_nodes(node)
    return found
