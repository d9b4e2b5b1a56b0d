"""What Zeebe's extension elements add to a BPMN element."""

from holdfast.model.bpmn.errors import Problems
from holdfast.model.bpmn.names import (
    HOLDFAST,
    USER_TASK_HEADERS,
    USER_TASK_TYPE,
    ZEEBE,
    Node,
    child,
    children,
    extension,
    is_true,
    text_of,
)
from holdfast.model.bpmn.texts import RETRIES, expression, failures, value_expression
from holdfast.model.definition import JobSpec, Loop, Mapping

_USUAL = {
    "startQuantity": ("1", "a startQuantity of 1"),
    "completionQuantity": ("1", "a completionQuantity of 1"),
    "isForCompensation": ("false", "no compensation"),
    "instantiate": ("false", "a start event to begin the process"),
    "triggeredByEvent": ("false", "an embedded sub-process"),
    "parallelMultiple": ("false", "one event definition"),
    "eventGatewayType": ("exclusive", "a gateway that goes on with the first event"),
    "behavior": ("all", "a multi-instance activity that throws no events of its own"),
}
"""Attributes that change how an element runs, the only value that runs here, and what it means."""


def check_usual(node: Node, problems: Problems) -> None:
    """Refuses the attributes that would change how an element runs."""
    for attribute, (usual, meaning) in _USUAL.items():
        value = node.get(attribute, usual).strip().lower()
        if value != usual and (usual, value) != ("false", "0"):
            but = f"with {attribute}={value!r}, which is not supported"
            problems.refuse(node, meaning, but)


def read_job(node: Node, problems: Problems, default_type: str) -> JobSpec:
    """The job of a task or a throwing message event."""
    spec = extension(node, "taskDefinition")
    kind, retries = default_type, RETRIES
    if spec is not None:
        kind = spec.get("type", "").strip() or default_type
        retries = spec.get("retries", RETRIES)
    try:
        retries = failures(retries)
    except ValueError:
        problems.refuse(spec, "a number or an expression as retries", f"with {retries!r}")
    return JobSpec(kind, retries, tuple(_headers(node)))


def _headers(node: Node) -> list[tuple[str, str]]:
    headers = extension(node, "taskHeaders")
    pairs = [
        (each.get("key", ""), each.get("value", ""))
        for each in ([] if headers is None else children(headers, "header", ZEEBE))
        if each.get("key")  # Modeler saves the empty row that somebody left behind
    ]
    for (tag, attribute), key in USER_TASK_HEADERS.items():
        source = extension(node, tag)
        if source is not None and source.get(attribute):
            pairs.append((key, source.get(attribute)))
    return pairs


def job_type(node: Node, tag: str) -> str:
    """The type of a job whose drawing names none: a plain drawing runs."""
    return USER_TASK_TYPE if tag == "userTask" else node.get("id", "")


def read_mappings(node: Node, tag: str, problems: Problems) -> tuple[Mapping, ...]:
    """The mappings `input` or `output` of an element."""
    mapping = extension(node, "ioMapping")
    found: list[Mapping] = []
    for each in () if mapping is None else children(mapping, tag, ZEEBE):
        source, target = each.get("source", ""), each.get("target", "").strip()
        if not source.strip() or not target:
            problems.refuse(each, "a mapping with a source and a target", "without one of them")
        else:
            found.append(Mapping(value_expression(source), target))
    return tuple(found)


def read_loop(node: Node, problems: Problems) -> Loop | None:
    """How often an activity is done, where its drawing says more than once."""
    if (once := child(node, "standardLoopCharacteristics")) is not None:
        problems.refuse(once, "<multiInstanceLoopCharacteristics> or none")
    if (many := child(node, "multiInstanceLoopCharacteristics")) is None:
        return None
    check_usual(many, problems)
    spec = extension(many, "loopCharacteristics")
    if spec is None or not spec.get("inputCollection", "").strip():
        problems.refuse(many, "<zeebe:loopCharacteristics> with an inputCollection", "without it")
        return None
    return Loop(
        collection=expression(spec.get("inputCollection")),
        item=spec.get("inputElement", "").strip(),
        sequential=is_true(many, "isSequential"),
        output_collection=spec.get("outputCollection", "").strip(),
        output_item=expression(spec.get("outputElement", "")),
        until=expression(text_of(child(many, "completionCondition"))),
    )


def read_result(node: Node) -> str:
    """The variable that takes a job's whole result: holdfast's own extension."""
    result = extension(node, "result", HOLDFAST)
    return "" if result is None else result.get("variable", "").strip()
