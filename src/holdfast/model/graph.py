"""A definition as a graph that is asked for neighbours: what leaves, what arrives, what is inside.

It reads any definition, a wrong one too: what names nothing is simply not found.
"""

from collections import defaultdict
from collections.abc import Sequence

from holdfast.model.definition import ACTIVITIES, Definition, Element, ElementKind, Flow

RECEIVE_TASK = "receiveTask"
"""How a CATCH is drawn that is a task: it can have what activities have."""


def is_activity(element: Element) -> bool:
    """Whether it can be repeated and be the host of boundary events.

    A job that is drawn as an event, such as one that sends a message, is none.
    """
    drawn_as_event = element.drawn_as.endswith("Event")
    return (element.kind in ACTIVITIES and not drawn_as_event) or is_receive_task(element)


def is_receive_task(element: Element) -> bool:
    return element.kind is ElementKind.CATCH and element.drawn_as == RECEIVE_TASK


class Graph:
    """The elements of a definition by id, with their neighbours in the order of the definition."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.elements: dict[str, Element] = {}
        self.flows: dict[str, Flow] = {}
        self._outgoing: defaultdict[str, list[Flow]] = defaultdict(list)
        self._incoming: defaultdict[str, list[Flow]] = defaultdict(list)
        self._children: defaultdict[str, list[Element]] = defaultdict(list)
        self._boundaries: defaultdict[str, list[Element]] = defaultdict(list)
        for element in definition.elements:
            self.elements.setdefault(element.id, element)
            self._children[element.scope].append(element)
            if element.kind is ElementKind.BOUNDARY:
                self._boundaries[element.host].append(element)
        for flow in definition.flows:
            self.flows.setdefault(flow.id, flow)
            self._outgoing[flow.source].append(flow)
            self._incoming[flow.target].append(flow)

    def outgoing(self, element_id: str) -> Sequence[Flow]:
        """The flows that leave an element; of a gateway, in the order of asking."""
        return self._outgoing.get(element_id, ())

    def incoming(self, element_id: str) -> Sequence[Flow]:
        return self._incoming.get(element_id, ())

    def children(self, scope: str) -> Sequence[Element]:
        """The elements directly in a sub-process; in the process itself for an empty scope."""
        return self._children.get(scope, ())

    def boundaries(self, host: str) -> Sequence[Element]:
        return self._boundaries.get(host, ())

    def starts(self, scope: str) -> list[Element]:
        return [each for each in self.children(scope) if each.kind is ElementKind.START]
