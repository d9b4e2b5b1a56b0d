"""The XML names that BPMN files are made of, and how a node is asked for its own."""

from collections.abc import Iterator
from typing import Any

from holdfast.model.definition import Binding

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
BPMNDI = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
ZEEBE = "http://camunda.org/schema/zeebe/1.0"
MODELER = "http://camunda.org/schema/modeler/1.0"
HOLDFAST = "https://holdfast.dev/schema/bpmn/1.0"
"""Ours, for the one thing Zeebe has no word for: the variable that takes a job's whole result.

It is a name in files that are stored, not an address that anybody fetches."""

Node = Any
"""An element of the XML tree; lxml has no types of its own."""

BINDINGS: dict[Binding, str] = {
    Binding.LATEST: "latest",
    Binding.DEPLOYMENT: "deployment",
    Binding.VERSION_TAG: "versionTag",
}
"""What a call activity writes for the version that it is bound to."""

USER_TASK_TYPE = "io.camunda.zeebe:userTask"
"""The job type of a user task that names none, as in Zeebe."""

USER_TASK_HEADERS: dict[tuple[str, str], str] = {
    ("assignmentDefinition", "assignee"): "io.camunda.zeebe:assignee",
    ("assignmentDefinition", "candidateGroups"): "io.camunda.zeebe:candidateGroups",
    ("assignmentDefinition", "candidateUsers"): "io.camunda.zeebe:candidateUsers",
    ("taskSchedule", "dueDate"): "io.camunda.zeebe:dueDate",
    ("taskSchedule", "followUpDate"): "io.camunda.zeebe:followUpDate",
    ("formDefinition", "formKey"): "io.camunda.zeebe:formKey",
    ("formDefinition", "formId"): "io.camunda.zeebe:formId",
    ("formDefinition", "externalReference"): "io.camunda.zeebe:externalReference",
    ("priorityDefinition", "priority"): "io.camunda.zeebe:priority",
}
"""What a drawing says about a person's work, and the header that tells the worker."""


def tag_of(node: Node) -> str:
    """The name of a BPMN node without its namespace; empty for nodes of other namespaces."""
    space, _, local = str(node.tag).rpartition("}")
    return local if space == "{" + BPMN else ""


def take(node: Node) -> Node:
    """Marks a node as read: its attributes and children still have to be, one by one."""
    node.taken = True
    return node


def leave(node: Node, attribute: str) -> None:
    """Marks an attribute as not read after all: it was looked at, and nothing comes of it."""
    node.read.discard(attribute)


def children(node: Node, tag: str, space: str = BPMN) -> Iterator[Node]:
    """The children of a name, each taken as it is reached."""
    return map(take, node.iterchildren(f"{{{space}}}{tag}"))


def has(node: Node, tag: str) -> bool:
    """Whether there is such a child, which is not read by asking."""
    return next(node.iterchildren(f"{{{BPMN}}}{tag}"), None) is not None


def child(node: Node, tag: str, space: str = BPMN) -> Node | None:
    return next(children(node, tag, space), None)


def extension(node: Node, tag: str, space: str = ZEEBE) -> Node | None:
    """An extension element of a node, as modelers add them."""
    elements = child(node, "extensionElements")
    return None if elements is None else child(elements, tag, space)


def text_of(node: Node | None) -> str:
    """All text in a node, without the space around it."""
    return "" if node is None else "".join(node.itertext()).strip()


def owner_id(node: Node | None) -> str:
    """The id by which a person finds the node: that of the flow element, message or flow it is in.

    Modelers give ids to parts that nobody sees, such as event definitions; their owner is named.
    """
    while node is not None:
        tag = tag_of(node)
        part = not tag or tag.endswith(("EventDefinition", "Characteristics", "Expression"))
        if not part and node.get("id"):
            return node.get("id")
        node = node.getparent()
    return ""


def is_true(node: Node, attribute: str, default: bool = False) -> bool:
    """An attribute of the type xsd:boolean."""
    return node.get(attribute, str(default).lower()).strip() in ("true", "1")


def local_id(reference: str) -> str:
    """What a QName refers to: ids are those of the same file, whatever prefix they came with."""
    return reference.strip().rpartition(":")[2]
