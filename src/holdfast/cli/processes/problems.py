"""Everything that is wrong with the processes to deploy, each with the line that it is on.

They are checked here before the node is asked, so that one run of `deploy` tells all.
"""

import ast
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidArgument
from holdfast.model.bpmn import read_processes
from holdfast.model.bpmn.errors import BpmnError
from holdfast.model.check import ModelError

if TYPE_CHECKING:
    from holdfast.gateway.processes.shapes import Resource
    from holdfast.model.definition import Definition
    from holdfast.model.dsl import Process


class _Placed(NamedTuple):
    """A problem, and where its author looks for it."""

    resource: str
    line: int  # 0 where it is about the whole
    element: str  # its id; empty where no element is to blame
    message: str

    @property
    def text(self) -> str:
        where = f"{self.resource}:{self.line}" if self.line else self.resource
        return f"{where}: {self.message.removesuffix(f' (line {self.line})')}"


class _Misplaced(InvalidArgument):
    """Problems of one process, already with their lines."""


def checked(names: Iterable[str], resource_of: Callable[[str], "Resource"]) -> "list[Resource]":
    """What is to be deployed; InvalidArgument with all that is wrong with all of it."""
    resources: list[Resource] = []
    problems: list[_Placed] = []
    for name in names:
        try:
            resource = resource_of(name)
            if Path(name).is_file():
                read_processes(resource.content)
        except BpmnError as error:
            problems += [
                _Placed(name, each.line, each.element, each.message) for each in error.problems
            ]
        except _Misplaced as error:
            problems += error.fields["placed"]
        except ModelError as error:  # as its module was imported
            problems.append(_Placed(name, 0, "", error.message))
        else:
            resources.append(resource)
    if not problems:
        return resources
    first = problems[0]._asdict()
    del first["message"]
    told = f"Nothing was deployed. {problems[0].text}"
    if len(problems) > 1:
        lines = "".join(f"\n  {each.text}" for each in problems)
        told = f"Nothing was deployed, because of {len(problems)} problems:{lines}"
    raise InvalidArgument(told, **first, problems=[each._asdict() for each in problems])


def definition_of(process: "Process | Definition", target: str) -> "Definition":
    """The definition of a process that a module has; what is wrong with it is told by lines."""
    from holdfast.model.check import check
    from holdfast.model.dsl import Process

    try:
        if isinstance(process, Process):
            return process.definition()
        check(process)
        return process
    except ModelError as error:
        module_name, _, attribute = target.partition(":")
        path = Path(str(sys.modules[module_name].__file__))
        lines = _Lines(path, attribute)
        rows = error.fields.get("problems") or [
            {"element": error.fields.get("element", ""), "message": error.message}
        ]
        placed = [
            _Placed(_shown(path), lines.of(row["element"]), row["element"], row["message"])
            for row in rows
        ]
        raise _Misplaced(error.message, placed=placed) from error


class _Lines:
    """The lines of a module on which the steps of a process are written."""

    def __init__(self, path: Path, attribute: str) -> None:
        tree = ast.parse(path.read_text())
        self._first, nodes = _statement(tree, attribute)
        self._texts = [
            (each.value, each.lineno)
            for node in nodes
            for each in ast.walk(node)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]

    def of(self, element: str) -> int:
        """The line with the id of an element, or with the id that its own was derived from."""
        _, arrow, target = element.rpartition("--")  # the id of a flow that nobody named
        if arrow and any(text == target for text, _ in self._texts):
            element = target
        near = [
            (len(text), -line)
            for text, line in self._texts
            if text and (element == text or element.startswith(f"{text}-"))
        ]
        return -max(near)[1] if near else self._first


def _statement(tree: ast.Module, attribute: str) -> tuple[int, list[ast.AST]]:
    """The statement that gives a name its value, and its line; all of the module if none does."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == attribute for each in targets):
            return node.lineno, [node]
    return 0, [tree]


def _shown(path: Path) -> str:
    """A path as short as it can be written here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
