"""Which parts an element of each kind uses. A part that its kind does not use would be ignored."""

from collections.abc import Iterator

from holdfast.model.definition import Element, ElementKind
from holdfast.model.graph import Graph, is_receive_task
from holdfast.model.rules.problem import Problem

_ACTIVITY = frozenset({"inputs", "outputs", "loop"})
_EVENT = frozenset({"timer", "message", "outputs"})

USES: dict[ElementKind, frozenset[str]] = {
    ElementKind.START: _EVENT,
    ElementKind.END: frozenset({"error", "terminate"}),
    ElementKind.PASS: _ACTIVITY,
    ElementKind.JOB: _ACTIVITY | {"job", "result"},
    ElementKind.EXPRESSION: _ACTIVITY | {"expression", "result"},
    ElementKind.EXCLUSIVE: frozenset({"default"}),
    ElementKind.INCLUSIVE: frozenset({"default"}),
    ElementKind.PARALLEL: frozenset(),
    ElementKind.EVENT_GATEWAY: frozenset(),
    ElementKind.CATCH: _EVENT,
    ElementKind.BOUNDARY: _EVENT | {"error", "host", "interrupting"},
    ElementKind.SUBPROCESS: _ACTIVITY,
    ElementKind.CALL: _ACTIVITY | {"called", "pass_all", "take_all", "binding", "version_tag"},
}
"""The parts besides id, kind, name, scope and drawn_as, which all have."""

_COMMON = frozenset({"id", "kind", "name", "scope", "drawn_as"})
_ABSENT = {
    name: getattr(Element("", ElementKind.PASS), name)
    for name in Element.__struct_fields__
    if name not in _COMMON
}


def uses(element: Element) -> frozenset[str]:
    """The parts that an element may have; a receive task has those of an activity too."""
    return USES[element.kind] | _ACTIVITY if is_receive_task(element) else USES[element.kind]


def parts(graph: Graph) -> Iterator[Problem]:
    """An element has only the parts that its kind uses."""
    for element in graph.definition.elements:
        used = uses(element)
        for name, absent in _ABSENT.items():
            if name not in used and getattr(element, name) != absent:
                yield Problem(
                    element.id,
                    f"Expected '{element.id}' to have no {name.replace('_', ' ')}, "
                    f"for it is of kind {element.kind.name}, but it has one",
                )
