"""What is wrong with a BPMN file: each problem with its element and its line."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.errors import InvalidArgument
from holdfast.model.bpmn.names import HOLDFAST, ZEEBE, Node, owner_id


class Problem(NamedTuple):
    """One thing that keeps a file from being read."""

    message: str  # what was expected, and what is there instead
    element: str  # the id of the element that has it; empty where no element is to blame
    line: int  # counted from 1; 0 where the file as a whole is meant


class BpmnError(InvalidArgument):
    """A BPMN file cannot become a process; `problems` has everything that was found."""

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> "BpmnError":
        """The first problem as the message, and how many more there are."""
        found = sorted(problems, key=lambda problem: problem.line)
        first, more = found[0], len(found) - 1
        tail = f" (and {more} more problem{'s' * (more > 1)})" if more else ""
        return cls(
            first.message + tail,
            element=first.element,
            line=first.line,
            problems=[problem._asdict() for problem in found],
        )

    @property
    def element(self) -> str:
        return self.fields.get("element", "")

    @property
    def line(self) -> int:
        return self.fields.get("line", 0)

    @property
    def problems(self) -> list[Problem]:
        rows: list[dict[str, Any]] = self.fields.get("problems", [])
        return [Problem(**row) for row in rows]


class Problems(list[Problem]):
    """What was found so far: reading goes on, so that one look at a file tells all."""

    def refuse(self, node: Node, expected: str, but: str = "which is not supported") -> None:
        """Say that a node is not what was expected there."""
        own, owner = node.get("id"), owner_id(node)
        where = f" '{own}'" if own and own == owner else f" in '{owner}'" if owner else ""
        message = f"Expected {expected}, but line {node.sourceline} has {shown(node)}{where}, {but}"
        self.append(Problem(message, owner, node.sourceline or 0))


_PREFIXES = {ZEEBE: "zeebe:", HOLDFAST: "holdfast:"}


def shown(node: Node) -> str:
    """A node as its author knows it: `<serviceTask>`, `<zeebe:script>`."""
    local = str(node.tag).rpartition("}")[2]
    prefix = next((name for space, name in _PREFIXES.items() if space in str(node.tag)), "")
    return f"<{prefix}{local}>"
