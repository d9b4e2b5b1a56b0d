"""What nobody read of a file: refused, or named as ignored; never dropped.

The reader takes elements and reads attributes; this walks over the whole file behind it. So what a
new version of BPMN or of Zeebe adds is named here before anybody has heard of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.limits import IGNORED_PARTS_MAX
from holdfast.model.bpmn.errors import Problems, shown
from holdfast.model.bpmn.names import BPMN, HOLDFAST, ZEEBE, Node, owner_id
from holdfast.model.bpmn.support import NOTES, Verdict, verdict
from holdfast.model.bpmn.support_extensions import (
    ATTRIBUTES,
    DEFAULTS,
    EXTENSIONS,
    FOREIGN_SPACES,
    HARMLESS_ATTRIBUTES,
    HARMLESS_SPACES,
    MODELER_ATTRIBUTES,
)

_REFERRED = ("message", "error")  # they are for the events that refer to them
_UNREAD = "nothing here reads it"
_VALUE_CHARS_MAX = 60


class Ignored(NamedTuple):
    """One thing that a file asks for and that does not happen."""

    element: str  # the id of the element that has it; empty where the file as a whole is meant
    line: int  # counted from 1
    what: str  # the element or the attribute, as its author knows it
    why: str


class Leftovers:
    """What is left over of one process, or of what stands beside the processes in a file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._found: list[Ignored] = []
        self._foreign: dict[str, list[Node]] = {}
        self._more = 0

    def visit(self, node: Node) -> None:
        """Looks at a node and at everything inside it: in a loop, for a file may be deep."""
        todo = [node]
        while todo:
            todo += reversed(self._look(todo.pop()))

    def _look(self, node: Node) -> list[Node]:
        """Looks at one node; gives those inside it that are to be looked at."""
        space, tag = _name(node.tag)
        if space in HARMLESS_SPACES:
            return []
        if space == BPMN:
            return self._look_at_bpmn(node, tag)
        if space in (ZEEBE, HOLDFAST):
            return self._look_at_extension(node, space, tag)
        self._foreign.setdefault(space, []).append(node)
        return []

    def skip(self, node: Node, why: str) -> None:
        """A node that is not read at all, with all inside it."""
        self._note(node, shown(node), why)

    def found(self) -> list[Ignored]:
        """In the order of the file; the parts of another maker's namespace are one."""
        for space, nodes in self._foreign.items():
            first = nodes[0]
            what = f"{len(nodes)} part{'s' * (len(nodes) > 1)} of the namespace {space or 'none'}"
            why = FOREIGN_SPACES.get(space, "nothing here knows extensions of this maker")
            self._found.append(Ignored(owner_id(first), first.sourceline or 0, what, why))
        found = sorted(self._found, key=lambda each: each.line)
        if self._more:
            found.append(Ignored("", 0, f"{self._more} more", "only the first are named"))
        return found

    def _look_at_bpmn(self, node: Node, tag: str) -> list[Node]:
        if node.taken or tag == "extensionElements":
            self.visit_attributes(node, tag)
            return list(node)
        if tag in _REFERRED:
            return []  # nothing refers to it
        if verdict(tag) is not Verdict.SKIPPED:
            self._note(node, shown(node), NOTES.get(tag) or _unread_in(node))
        # Whatever it is in, Zeebe might do something with an extension.
        return [each for each in node.iter(f"{{{ZEEBE}}}*") if _is_outermost(each)]

    def _look_at_extension(self, node: Node, space: str, tag: str) -> list[Node]:
        if node.taken:
            self.visit_attributes(node, tag)
            return list(node)
        known = EXTENSIONS.get(tag) if space == ZEEBE else None
        if space == ZEEBE and (known is None or known.holdfast is Verdict.REFUSED):
            but = f"which is not supported: {known.note}" if known else "which is not supported"
            self._problems.refuse(node, "extension elements that holdfast knows", but)
            return []
        is_ignored = known is not None and known.holdfast is Verdict.IGNORED
        self._note(node, shown(node), known.note if known and is_ignored else _unread_in(node))
        return []

    def visit_attributes(self, node: Node, tag: str) -> None:
        """Looks at the attributes that nobody read."""
        for name, value in node.attrib.items():
            if name not in node.read:
                self._visit_attribute(node, tag, name, value)

    def _visit_attribute(self, node: Node, tag: str, full_name: str, value: str) -> None:
        space, name = _name(full_name)
        if space in HARMLESS_SPACES or name in MODELER_ATTRIBUTES:
            return
        if space and space != ZEEBE:
            self._foreign.setdefault(space, []).append(node)
            return
        name = f"zeebe:{name}" if space else name
        here = f"{tag} {name}"
        if name in HARMLESS_ATTRIBUTES or here in HARMLESS_ATTRIBUTES:
            return
        if value.strip() in ("", DEFAULTS.get(name)):
            return
        if len(value) > _VALUE_CHARS_MAX:
            value = value[:_VALUE_CHARS_MAX] + "..."
        why = ATTRIBUTES.get(here) or ATTRIBUTES.get(name) or f"{_UNREAD} in {shown(node)}"
        self._note(node, f"{name}={value!r} of {shown(node)}", why)

    def _note(self, node: Node, what: str, why: str) -> None:
        if len(self._found) < IGNORED_PARTS_MAX:
            self._found.append(Ignored(owner_id(node), node.sourceline or 0, what, why))
        else:
            self._more += 1


def leftovers(root: Node, processes: list[Node], problems: Problems) -> Iterator[list[Ignored]]:
    """What is left over, for each process that was read; the first has what stands beside them."""
    beside = Leftovers(problems)
    beside.visit_attributes(root, "definitions")
    for node in root:
        if node in processes:
            continue
        if _name(node.tag) == (BPMN, "process"):
            beside.skip(node, "its isExecutable is not true: it is not deployed")
        else:
            beside.visit(node)
    found = beside.found()
    for node in processes:
        inside = Leftovers(problems)
        inside.visit(node)
        yield found + inside.found()
        found = []


def _name(full_name: str) -> tuple[str, str]:
    """The namespace and the name of a tag or an attribute."""
    space, _, name = str(full_name).rpartition("}")
    return space.removeprefix("{"), name


def _is_outermost(node: Node) -> bool:
    """Whether no other extension element is around it."""
    parent = node.getparent()
    return parent is None or _name(parent.tag)[0] != ZEEBE


def _unread_in(node: Node) -> str:
    """Why a part that runs elsewhere does nothing here."""
    parent = node.getparent()
    if parent is not None and _name(parent.tag) == (BPMN, "extensionElements"):
        parent = parent.getparent()
    return _UNREAD if parent is None else f"{_UNREAD} in {shown(parent)}"
