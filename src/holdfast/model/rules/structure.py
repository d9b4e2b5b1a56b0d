"""Ids, sizes, scopes and flows: what has to hold before an element's meaning can be asked about."""

import re
from collections.abc import Collection, Iterator

from holdfast.limits import NAME_CHARS_MAX
from holdfast.model.definition import Element, ElementKind, Flow
from holdfast.model.graph import Graph
from holdfast.model.rules.problem import Problem

# A definition is deployed as one record, and an element with its parts takes some 200 bytes: 10,000
# are half of ENTRY_BYTES_MAX. Drawings that people can read have fewer than 200.
ELEMENTS_MAX = 10_000
FLOWS_MAX = 2 * ELEMENTS_MAX  # as many again for the ways of gateways, at some 100 bytes each
DEPTH_MAX = 20  # a token's scopes are walked for every variable it reads; people stop at three

# The start and the rest of an XML NCName (Namespaces in XML 1.0, rule 4): ids go to BPMN as they
# are, where a colon is not part of an id.
_FIRST = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_REST = _FIRST + "0-9.\u00b7\u0300-\u036f\u203f\u2040-"
_NCNAME = re.compile(f"[{_FIRST}][{_REST}]*")
NOT_IN_IDS = re.compile(f"[^{_REST}]")


def sizes(graph: Graph) -> Iterator[Problem]:
    """Elements and flows are counted first: the other rules look at each of them."""
    definition = graph.definition
    for what, count, limit in (
        ("elements", len(definition.elements), ELEMENTS_MAX),
        ("flows", len(definition.flows), FLOWS_MAX),
    ):
        if count > limit:
            yield Problem(
                definition.id,
                f"Expected process '{definition.id}' to have at most {limit:,} {what}, "
                f"but it has {count:,}",
            )


def ids(graph: Graph) -> Iterator[Problem]:
    """Each id is there, is a name in XML, and is used once: process, elements and flows share."""
    definition = graph.definition
    seen: set[str] = set()
    for what, id_ in (
        ("process", definition.id),
        *(("element", element.id) for element in definition.elements),
        *(("flow", flow.id) for flow in definition.flows),
    ):
        if not id_:
            yield Problem(id_, f"Expected every {what} to have an id, but one has none")
        elif len(id_) > NAME_CHARS_MAX:
            yield Problem(
                id_,
                f"Expected the id of {what} '{id_[:40]}...' to have at most {NAME_CHARS_MAX} "
                f"characters, but it has {len(id_)}",
            )
        elif not _NCNAME.fullmatch(id_):
            yield Problem(
                id_,
                f"Expected the id of {what} '{id_}' to begin with a letter or an underscore and "
                "to continue with letters, digits, '.', '-' and '_', but it does not",
            )
        elif id_ in seen:
            yield Problem(
                id_,
                f"Expected the id of {what} '{id_}' to be used once in the process, "
                "but something else has it too",
            )
        seen.add(id_)


def scopes(graph: Graph) -> Iterator[Problem]:
    """The scopes of an element lead through sub-processes to the process itself, and soon."""
    depths: dict[str, int | None] = {"": 0}
    for element in graph.definition.elements:
        outer = graph.elements.get(element.scope)
        if element.scope and (outer is None or outer.kind is not ElementKind.SUBPROCESS):
            found = "there is no such element" if outer is None else f"it is {_a(outer)}"
            yield Problem(
                element.id,
                f"Expected the scope '{element.scope}' of '{element.id}' to be a sub-process, "
                f"but {found}",
            )
        elif element.kind is ElementKind.SUBPROCESS:
            depth = _depth(graph, element, depths)
            if depth is None:
                yield Problem(
                    element.id,
                    f"Expected sub-process '{element.id}' to be in another scope than its own, "
                    "but its scopes lead back to it",
                )
            elif depth > DEPTH_MAX:
                yield Problem(
                    element.id,
                    f"Expected sub-process '{element.id}' to be at most {DEPTH_MAX} deep, "
                    f"but it is {depth} deep",
                )


def _depth(graph: Graph, element: Element, depths: dict[str, int | None]) -> int | None:
    """How many sub-processes deep one is, itself counted; None where its scopes go in a circle.

    What was walked is remembered, so that deep nests cost no more than flat ones.
    """
    walked: list[str] = []
    scope = element.id
    while scope not in depths:
        depths[scope] = None  # met again before it is known: a circle
        walked.append(scope)
        outer = graph.elements.get(scope)
        scope = outer.scope if outer else ""
    depth = depths[scope]
    for inner in reversed(walked):
        depth = None if depth is None else depth + 1
        depths[inner] = depth
    return depths[element.id]


def flows(graph: Graph) -> Iterator[Problem]:
    """A flow joins two elements of one scope, and neither enters a start nor leaves an end."""
    for flow in graph.definition.flows:
        source, target = graph.elements.get(flow.source), graph.elements.get(flow.target)
        yield from loose_ends(flow, graph.elements)
        if source and target and source.scope != target.scope:
            yield Problem(
                flow.id,
                f"Expected flow '{flow.id}' to stay in one scope, but it leads from "
                f"'{source.id}' in {_scope(source)} to '{target.id}' in {_scope(target)}",
            )
        if target and target.kind in (ElementKind.START, ElementKind.BOUNDARY):
            yield Problem(
                target.id,
                f"Expected no flow to lead to '{target.id}', for it is {_a(target)}, "
                f"but flow '{flow.id}' does",
            )
        if source and source.kind is ElementKind.END:
            yield Problem(
                source.id,
                f"Expected no flow to leave the end '{source.id}', but flow '{flow.id}' does",
            )


def loose_ends(flow: Flow, ids: Collection[str]) -> Iterator[Problem]:
    """The ends of a flow that are at none of these elements."""
    for what, id_ in (("leave", flow.source), ("lead to", flow.target)):
        if id_ not in ids:
            yield Problem(
                flow.id, f"Expected flow '{flow.id}' to {what} an element, but there is no '{id_}'"
            )


def _a(element: Element) -> str:
    return f"of kind {element.kind.name}"


def _scope(element: Element) -> str:
    return f"sub-process '{element.scope}'" if element.scope else "the process itself"
