"""One BPMN element, with what its tag, its event and its extensions mean, as a model element."""

from collections.abc import Callable

import msgspec

from holdfast.model.bpmn.errors import Problems
from holdfast.model.bpmn.events import File, event_definition, read_event, read_message
from holdfast.model.bpmn.extensions import (
    check_usual,
    job_type,
    read_job,
    read_loop,
    read_mappings,
    read_result,
)
from holdfast.model.bpmn.names import (
    BINDINGS,
    Node,
    child,
    extension,
    has,
    is_true,
    local_id,
    tag_of,
    take,
)
from holdfast.model.bpmn.support import BESIDE, verdict
from holdfast.model.bpmn.texts import value_expression
from holdfast.model.definition import Binding, Element, ElementKind

KINDS: dict[str, ElementKind] = {
    "startEvent": ElementKind.START,
    "endEvent": ElementKind.END,
    "intermediateThrowEvent": ElementKind.PASS,
    "intermediateCatchEvent": ElementKind.CATCH,
    "boundaryEvent": ElementKind.BOUNDARY,
    "task": ElementKind.PASS,
    "manualTask": ElementKind.PASS,
    "serviceTask": ElementKind.JOB,
    "sendTask": ElementKind.JOB,
    "businessRuleTask": ElementKind.JOB,
    "userTask": ElementKind.JOB,
    "scriptTask": ElementKind.EXPRESSION,
    "receiveTask": ElementKind.CATCH,
    "subProcess": ElementKind.SUBPROCESS,
    "callActivity": ElementKind.CALL,
    "exclusiveGateway": ElementKind.EXCLUSIVE,
    "inclusiveGateway": ElementKind.INCLUSIVE,
    "parallelGateway": ElementKind.PARALLEL,
    "eventBasedGateway": ElementKind.EVENT_GATEWAY,
}

PLAIN_TAGS: dict[ElementKind, str] = {
    **{kind: tag for tag, kind in KINDS.items()},
    ElementKind.PASS: "task",
    ElementKind.JOB: "serviceTask",
    ElementKind.CATCH: "intermediateCatchEvent",
}
"""The tag of a kind that says nothing about how it is drawn."""

_DECIDING = {ElementKind.EXCLUSIVE, ElementKind.INCLUSIVE}
"""Where a default flow means something; elsewhere all flows are taken, and conditions refused."""

_PARTS = {"multiInstanceLoopCharacteristics", "standardLoopCharacteristics", "script"}
"""What is read or refused with the activity that has it."""


def read_element(file: File, node: Node, scope: str) -> Element:
    """A flow node of a process or of a sub-process; what is wrong with it goes to the problems."""
    tag = tag_of(take(node))
    kind = KINDS[tag]
    _check_children(file.problems, node, tag)
    check_usual(node, file.problems)
    element = Element(
        id=node.get("id", ""),
        kind=kind,
        name=node.get("name", ""),
        scope=scope,
        drawn_as="" if PLAIN_TAGS[kind] == tag else tag,
        inputs=read_mappings(node, "input", file.problems),
        outputs=read_mappings(node, "output", file.problems),
        loop=read_loop(node, file.problems),
        default=node.get("default", "").strip() if kind in _DECIDING else "",
    )
    fill = _FILL.get(tag)
    return fill(file, node, element) if fill else element


def _check_children(problems: Problems, node: Node, tag: str) -> None:
    if tag == "subProcess":
        return  # its children are elements of their own
    for each in node:
        name = tag_of(each)
        if not name or name in _PARTS or name.endswith("EventDefinition"):
            continue
        if verdict(name) not in BESIDE:
            problems.refuse(each, f"what belongs into <{tag}>")


def _job(file: File, node: Node, element: Element) -> Element:
    spec = read_job(node, file.problems, job_type(node, tag_of(node)))
    return msgspec.structs.replace(element, job=spec, result=read_result(node))


def _script(file: File, node: Node, element: Element) -> Element:
    script = extension(node, "script")
    if script is None:
        if extension(node, "taskDefinition") is None and has(node, "script"):
            expected = "<zeebe:script> or <zeebe:taskDefinition> in a script task"
            file.problems.refuse(child(node, "script"), expected, "which is not supported")
        plain = msgspec.structs.replace(element, kind=ElementKind.JOB, drawn_as="scriptTask")
        return _job(file, node, plain)
    text, result = script.get("expression", ""), script.get("resultVariable", "").strip()
    if not text.strip() or not result:
        expected = "a script with an expression and a resultVariable"
        file.problems.refuse(script, expected, "without one of them")
    return msgspec.structs.replace(element, expression=value_expression(text), result=result)


def _receive(file: File, node: Node, element: Element) -> Element:
    return msgspec.structs.replace(element, message=read_message(file, node, keyed=True))


def _call(file: File, node: Node, element: Element) -> Element:
    spec = extension(node, "calledElement")
    called = "" if spec is None else spec.get("processId", "").strip()
    called = called or local_id(node.get("calledElement", ""))
    if not called:
        file.problems.refuse(node, "<zeebe:calledElement> with a processId", "without it")
    if called in file.global_tasks:
        expected = "a process as the called element"
        file.problems.refuse(node, expected, f"which calls the global task {called!r}")
    if spec is None:
        return msgspec.structs.replace(element, called=called)
    binding, version_tag = _binding(file, spec)
    return msgspec.structs.replace(
        element,
        called=called,
        pass_all=is_true(spec, "propagateAllParentVariables", True),
        take_all=is_true(spec, "propagateAllChildVariables", True),
        binding=binding,
        version_tag=version_tag,
    )


def _binding(file: File, spec: Node) -> tuple[Binding, str]:
    """Which version a call starts, and its tag."""
    said = spec.get("bindingType", "").strip() or BINDINGS[Binding.LATEST]
    binding = next((each for each, name in BINDINGS.items() if name == said), None)
    if binding is None:
        expected = f"a bindingType of {', '.join(BINDINGS.values())}"
        file.problems.refuse(spec, expected, f"with {said!r}")
        return Binding.LATEST, ""
    if binding is not Binding.VERSION_TAG:
        return binding, ""
    if not (tag := spec.get("versionTag", "").strip()):
        file.problems.refuse(spec, "a versionTag, for its bindingType asks for it", "without one")
    return binding, tag


def _event(file: File, node: Node, element: Element) -> Element:
    return read_event(file, node, element, event_definition(file, node))


def _throw(file: File, node: Node, element: Element) -> Element:
    """A thrown message is a job: who sends it, and how, is the worker's affair."""
    definition = event_definition(file, node)
    if definition is not None and tag_of(definition) == "messageEventDefinition":
        thrown = msgspec.structs.replace(element, kind=ElementKind.JOB, drawn_as=tag_of(node))
        return _job(file, node, thrown)
    return read_event(file, node, element, definition)


def _boundary(file: File, node: Node, element: Element) -> Element:
    waiting = msgspec.structs.replace(
        element,
        host=local_id(node.get("attachedToRef", "")),
        interrupting=is_true(node, "cancelActivity", True),
    )
    return _event(file, node, waiting)


_FILL: dict[str, Callable[[File, Node, Element], Element]] = {
    "startEvent": _event,
    "endEvent": _throw,
    "intermediateThrowEvent": _throw,
    "intermediateCatchEvent": _event,
    "boundaryEvent": _boundary,
    "serviceTask": _job,
    "sendTask": _job,
    "businessRuleTask": _job,
    "userTask": _job,
    "scriptTask": _script,
    "receiveTask": _receive,
    "callActivity": _call,
}
