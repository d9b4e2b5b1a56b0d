"""Gateways: where ways part, it is clear which one is taken."""

from collections.abc import Iterator

from holdfast.model.definition import Element, ElementKind, Flow
from holdfast.model.graph import Graph
from holdfast.model.rules.problem import Problem

DECIDING = frozenset({ElementKind.EXCLUSIVE, ElementKind.INCLUSIVE})


def conditions(graph: Graph) -> Iterator[Problem]:
    """Conditions are where something decides by them, and there on each way but the default."""
    for flow in graph.definition.flows:
        source = graph.elements.get(flow.source)
        if flow.condition and source is not None and source.kind not in DECIDING:
            yield Problem(
                flow.id,
                f"Expected flow '{flow.id}' to have no condition, for '{source.id}' is neither an "
                "exclusive nor an inclusive gateway, but it has one",
            )
    for element in graph.definition.elements:
        outgoing = graph.outgoing(element.id)
        if element.kind in DECIDING and len(outgoing) > 1:
            for flow in outgoing:
                if not flow.condition and flow.id != element.default:
                    yield Problem(
                        element.id,
                        f"Expected each flow out of gateway '{element.id}' to have a condition or "
                        f"to be its default, but flow '{flow.id}' has none",
                    )


def defaults(graph: Graph) -> Iterator[Problem]:
    """A default is one of the gateway's own flows and is not asked."""
    for element in graph.definition.elements:
        if element.kind in DECIDING and element.default:
            found = _wrong_default(element, graph.flows.get(element.default))
            if found:
                yield Problem(
                    element.id,
                    f"Expected the default '{element.default}' of gateway '{element.id}' to be a "
                    f"flow out of it without a condition, but {found}",
                )


def _wrong_default(element: Element, flow: Flow | None) -> str:
    if flow is None:
        return "there is no such flow"
    if flow.source != element.id:
        return f"it leaves '{flow.source}'"
    return "it has a condition" if flow.condition else ""


def races(graph: Graph) -> Iterator[Problem]:
    """An event gateway waits for its events itself: they are reached by no other way."""
    for element in graph.definition.elements:
        if element.kind is not ElementKind.EVENT_GATEWAY:
            continue
        outgoing = graph.outgoing(element.id)
        if len(outgoing) < 2:
            yield Problem(
                element.id,
                f"Expected event gateway '{element.id}' to have at least two outgoing flows, "
                f"but it has {len(outgoing)}",
            )
        for flow in outgoing:
            target = graph.elements.get(flow.target)
            found = _wrong_racer(graph, target) if target else ""
            if found:
                yield Problem(
                    element.id,
                    f"Expected event gateway '{element.id}' to lead to events that only wait for "
                    f"their timer or message, but '{flow.target}' {found}",
                )


def _wrong_racer(graph: Graph, target: Element) -> str:
    if target.kind is not ElementKind.CATCH:
        return f"is of kind {target.kind.name}"
    if len(graph.incoming(target.id)) > 1:
        return "has another incoming flow"
    if graph.boundaries(target.id):
        return "has boundary events"
    return "is repeated" if target.loop else ""
