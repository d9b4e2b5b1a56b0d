"""Definitions written as BPMN 2.0 with Zeebe's extensions, as Camunda Modeler opens them."""

from collections import deque
from collections.abc import Iterable

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from holdfast.errors import InvalidArgument
from holdfast.model.bpmn.elements import PLAIN_TAGS
from holdfast.model.bpmn.events import TIMERS
from holdfast.model.bpmn.names import (
    BPMN,
    BPMNDI,
    DC,
    DI,
    HOLDFAST,
    MODELER,
    XSI,
    ZEEBE,
    Node,
)
from holdfast.model.bpmn.write_extensions import write_extensions, write_loop
from holdfast.model.bpmn.write_picture import write_picture
from holdfast.model.definition import Definition, Element, ElementKind, Flow, Message
from holdfast.model.drawing.layout import drawing_of

_SPACES = {"bpmn": BPMN, "bpmndi": BPMNDI, "dc": DC, "di": DI, "zeebe": ZEEBE, "xsi": XSI,
           "modeler": MODELER}  # fmt: skip
PLATFORM_VERSION = "8.6.0"
"""The first Zeebe that has every element that holdfast runs: inclusive joins came last."""


def write_bpmn(definition: Definition) -> bytes:
    """A BPMN file of one process; reading it gives the same definition, and a drawing."""
    results = any(each.result and each.job for each in definition.elements)
    root = etree.Element(
        f"{{{BPMN}}}definitions",
        nsmap=_SPACES | ({"holdfast": HOLDFAST} if results else {}),
        id="Definitions_1",
        targetNamespace="http://bpmn.io/schema/bpmn",
        exporter="holdfast",
    )
    root.set(f"{{{MODELER}}}executionPlatform", "Camunda Cloud")
    root.set(f"{{{MODELER}}}executionPlatformVersion", PLATFORM_VERSION)
    try:
        _Writer(definition, root).write()
    except ValueError as error:  # a text with characters that XML cannot have
        message = f"Expected texts that fit into XML, but process '{definition.id}' has {error}"
        raise InvalidArgument(message) from None
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


class _Writer:
    """One process on its way into a file, with the messages and errors that it needs there."""

    def __init__(self, definition: Definition, root: Node) -> None:
        self.definition = definition
        self.root = root
        self.ids = {definition.id, "Definitions_1"}
        self.ids |= {part.id for part in (*definition.elements, *definition.flows)}
        self.messages: dict[Message, str] = {}
        self.errors: dict[str, str] = {}
        self.inside: dict[str, list[Element]] = {}
        for element in definition.elements:
            self.inside.setdefault(element.scope, []).append(element)
        scope_of = {element.id: element.scope for element in definition.elements}
        self.flows: dict[str, list[Flow]] = {}
        for flow in definition.flows:
            self.flows.setdefault(scope_of[flow.source], []).append(flow)
        self.place = {flow.id: index for index, flow in enumerate(definition.flows)}
        self.first: dict[str, int] = {}  # of the flows inside of a sub-process
        for index, flow in enumerate(definition.flows):
            scope = scope_of[flow.source]
            while scope and scope not in self.first:
                self.first[scope] = index
                scope = scope_of[scope]

    def write(self) -> None:
        process = self._add(self.root, "process", id=self.definition.id, name=self.definition.name)
        process.set("isExecutable", "true")
        if self.definition.version_tag:
            extensions = self._add(process, "extensionElements")
            tag = etree.SubElement(extensions, f"{{{ZEEBE}}}versionTag")
            tag.set("value", self.definition.version_tag)
        self._scope(process, "")
        for message, identity in self.messages.items():
            node = self._add(self.root, "message", id=identity, name=message.name)
            if message.key:
                extensions = self._add(node, "extensionElements")
                subscription = etree.SubElement(extensions, f"{{{ZEEBE}}}subscription")
                subscription.set("correlationKey", f"={message.key}")
        for code, identity in self.errors.items():
            self._add(self.root, "error", id=identity, name=code, errorCode=code)
        write_picture(self.root, self.definition, drawing_of(self.definition), self._fresh)

    def _scope(self, parent: Node, scope: str) -> None:
        """The elements of a scope with all inside them, and its flows.

        Reading keeps the order of the file, so flows come last but for those that a definition has
        before the flows inside of a sub-process.
        """
        incoming: dict[str, list[str]] = {}
        outgoing: dict[str, list[str]] = {}
        for flow in self.flows.get(scope, ()):
            outgoing.setdefault(flow.source, []).append(flow.id)
            incoming.setdefault(flow.target, []).append(flow.id)
        flows = deque(self.flows.get(scope, ()))
        for element in self.inside.get(scope, ()):
            while flows and self.place[flows[0].id] < self.first.get(element.id, 0):
                self._flow(parent, flows.popleft())
            tag = element.drawn_as or PLAIN_TAGS[element.kind]
            node = self._add(parent, tag, id=element.id, name=element.name, default=element.default)
            write_extensions(node, element)
            self._listed(node, "incoming", incoming.get(element.id, ()))
            self._listed(node, "outgoing", outgoing.get(element.id, ()))
            if element.loop is not None:
                write_loop(node, element.loop)
            self._event(node, element)
            self._scope(node, element.id)
        for flow in flows:
            self._flow(parent, flow)

    def _flow(self, parent: Node, flow: Flow) -> None:
        node = self._add(parent, "sequenceFlow", id=flow.id, name=flow.name)
        node.set("sourceRef", flow.source)
        node.set("targetRef", flow.target)
        if flow.condition:
            self._expression(node, "conditionExpression", f"={flow.condition}")

    def _event(self, node: Node, element: Element) -> None:
        """What an event waits for or throws, with the references that this takes."""
        if element.kind is ElementKind.BOUNDARY:
            node.set("attachedToRef", element.host)
            if not element.interrupting:
                node.set("cancelActivity", "false")
        if element.message is not None:
            reference = self.messages.get(element.message) or self._fresh("Message")
            self.messages[element.message] = reference
            is_task = element.drawn_as == "receiveTask"
            owner = node if is_task else self._add(node, "messageEventDefinition")
            owner.set("messageRef", reference)
        if element.timer is not None:
            timer = self._add(node, "timerEventDefinition")
            tag = next(tag for tag, kind in TIMERS.items() if kind is element.timer.kind)
            self._expression(timer, tag, element.timer.value)
        if element.error is not None:
            definition = self._add(node, "errorEventDefinition")
            if element.error:
                reference = self.errors.get(element.error) or self._fresh("Error")
                self.errors[element.error] = reference
                definition.set("errorRef", reference)
        if element.terminate:
            self._add(node, "terminateEventDefinition")
        if element.kind is ElementKind.JOB and element.drawn_as.endswith("Event"):
            self._add(node, "messageEventDefinition")

    def _fresh(self, stem: str) -> str:
        """An id that nothing else in the file has."""
        number = 1
        while f"{stem}_{number}" in self.ids:
            number += 1
        self.ids.add(f"{stem}_{number}")
        return f"{stem}_{number}"

    def _listed(self, node: Node, tag: str, ids: Iterable[str]) -> None:
        for each in ids:
            self._add(node, tag).text = each

    def _expression(self, node: Node, tag: str, text: str) -> None:
        expression = self._add(node, tag)
        expression.set(f"{{{XSI}}}type", "bpmn:tFormalExpression")
        expression.text = text

    @staticmethod
    def _add(parent: Node, tag: str, **attributes: str) -> Node:
        """A child with the attributes that are not empty."""
        said = {name: value for name, value in attributes.items() if value}
        return etree.SubElement(parent, f"{{{BPMN}}}{tag}", said)
