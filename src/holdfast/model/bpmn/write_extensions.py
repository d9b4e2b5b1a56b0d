"""Zeebe's extension elements for what a definition says about an element."""

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from holdfast.model.bpmn.names import (
    BINDINGS,
    BPMN,
    HOLDFAST,
    USER_TASK_HEADERS,
    USER_TASK_TYPE,
    XSI,
    ZEEBE,
    Node,
)
from holdfast.model.bpmn.texts import RETRIES, attempts
from holdfast.model.definition import Binding, Element, ElementKind, JobSpec, Loop


def write_extensions(node: Node, element: Element) -> None:
    """The extension elements of an element; the node has none when there is nothing to say."""
    extensions = etree.Element(f"{{{BPMN}}}extensionElements")
    if element.job is not None:
        _write_job(extensions, element.job, element.drawn_as == "userTask")
    if element.result and element.job is not None:
        etree.SubElement(extensions, f"{{{HOLDFAST}}}result", variable=element.result)
    if element.kind is ElementKind.EXPRESSION:
        _add(extensions, "script", f"={element.expression}", element.result)
    if element.called:
        called = etree.SubElement(extensions, f"{{{ZEEBE}}}calledElement")
        called.set("processId", element.called)
        called.set("propagateAllChildVariables", str(element.take_all).lower())
        if not element.pass_all:
            called.set("propagateAllParentVariables", "false")
        if element.binding is not Binding.LATEST:
            called.set("bindingType", BINDINGS[element.binding])
        if element.version_tag:
            called.set("versionTag", element.version_tag)
    if element.inputs or element.outputs:
        mapping = etree.SubElement(extensions, f"{{{ZEEBE}}}ioMapping")
        for each in element.inputs:
            _add(mapping, "input", f"={each.source}", each.target)
        for each in element.outputs:
            _add(mapping, "output", f"={each.source}", each.target)
    if len(extensions):
        node.append(extensions)


_ATTRIBUTES = {
    "script": ("expression", "resultVariable"),
    "input": ("source", "target"),
    "output": ("source", "target"),
    "header": ("key", "value"),
}


def _add(parent: Node, tag: str, first: str, second: str) -> None:
    """One of the extension elements that are pairs."""
    node = etree.SubElement(parent, f"{{{ZEEBE}}}{tag}")
    for name, value in zip(_ATTRIBUTES[tag], (first, second), strict=True):
        node.set(name, value)


def _write_job(extensions: Node, job: JobSpec, is_user_task: bool) -> None:
    retries = attempts(job.retries)
    if not is_user_task or (job.type, retries) != (USER_TASK_TYPE, RETRIES):
        definition = etree.SubElement(extensions, f"{{{ZEEBE}}}taskDefinition", type=job.type)
        if retries != RETRIES:
            definition.set("retries", retries)
    headers = job.headers
    if is_user_task:
        headers = _write_person(extensions, headers)
    if headers:
        parent = etree.SubElement(extensions, f"{{{ZEEBE}}}taskHeaders")
        for key, value in headers:
            _add(parent, "header", key, value)


def _write_person(
    extensions: Node, headers: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Assignment, dates and form from the headers that tell of them; the headers that are left.

    Reading puts such headers last and in the order of the table. In any other order they stay
    headers, so that reading gives back what was written.
    """
    known = {key: value for key, value in headers if value and key in USER_TASK_HEADERS.values()}
    plain = tuple(pair for pair in headers if pair[0] not in known)
    told = tuple((key, known[key]) for key in USER_TASK_HEADERS.values() if key in known)
    if plain + told != headers:
        return headers
    for (tag, attribute), key in USER_TASK_HEADERS.items():
        if key in known:
            found = extensions.find(f"{{{ZEEBE}}}{tag}")
            node = etree.SubElement(extensions, f"{{{ZEEBE}}}{tag}") if found is None else found
            node.set(attribute, known[key])
    return plain


def write_loop(node: Node, loop: Loop) -> None:
    """A multi-instance activity."""
    many = etree.SubElement(node, f"{{{BPMN}}}multiInstanceLoopCharacteristics")
    if loop.sequential:
        many.set("isSequential", "true")
    extensions = etree.SubElement(many, f"{{{BPMN}}}extensionElements")
    spec = etree.SubElement(extensions, f"{{{ZEEBE}}}loopCharacteristics")
    spec.set("inputCollection", f"={loop.collection}")
    for name, value in (
        ("inputElement", loop.item),
        ("outputCollection", loop.output_collection),
        ("outputElement", loop.output_item and f"={loop.output_item}"),
    ):
        if value:
            spec.set(name, value)
    if loop.until:
        until = etree.SubElement(many, f"{{{BPMN}}}completionCondition")
        until.set(f"{{{XSI}}}type", "bpmn:tFormalExpression")
        until.text = f"={loop.until}"
