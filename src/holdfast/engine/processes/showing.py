"""A process instance as it is shown: the tree of its active elements."""

from typing import NamedTuple

import msgspec

from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node, ProcessPlan
from holdfast.engine.processes.state import ElementInstance
from holdfast.engine.state import EngineState
from holdfast.limits import ELEMENTS_SHOWN_MAX
from holdfast.model.definition import ElementKind


class FoundWait(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an element waits for: a time, or a message."""

    due_ms: int = 0
    message: str = ""
    correlation: str = ""
    event: str = ""  # the boundary event that waits; empty: the element itself


class FoundElement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An element that has a token, or a scope that has several."""

    key: int
    element_id: str
    kind: ElementKind
    name: str
    created_ms: int
    item: int = 0
    is_ending: bool = False
    job: int = 0
    called_instance: int = 0
    incident: int = 0
    items_total: int = 0
    items_done: int = 0
    waits: list[FoundWait] = []
    children: list["FoundElement"] = []


class Elements(NamedTuple):
    """The elements of an instance, a bounded number of them."""

    found: list[FoundElement]
    has_more: bool
    incidents: int


def elements_of(state: EngineState, plan: ProcessPlan, instance: int) -> Elements:
    """The tree of the active elements of an instance."""
    tree = _Tree(state, plan, ELEMENTS_SHOWN_MAX)
    found = tree.children(instance)
    return Elements(found, tree.left < 0, tree.incidents)


def element_of(
    state: EngineState, plan: ProcessPlan, key: int, row: ElementInstance
) -> FoundElement:
    """One active element, without what is inside it."""
    return _Tree(state, plan, 0).element(key, row)


class _Tree:
    """Collects the elements of one instance."""

    def __init__(self, state: EngineState, plan: ProcessPlan, elements_max: int) -> None:
        self._state = state
        self._plan = plan
        self.left = elements_max
        self.incidents = 0

    def children(self, scope: int) -> list[FoundElement]:
        found: list[FoundElement] = []
        for key, element in self._state.processes.all_children(scope):
            self.left -= 1
            if self.left < 0:
                break
            found.append(self.element(key, element))
        return found

    def element(self, key: int, row: ElementInstance) -> FoundElement:
        node = self._plan.nodes[row.node]
        calls = node.kind == ElementKind.CALL and row.item >= 0
        job = self._state.jobs.jobs.get(row.work) if row.work and not calls else None
        incident = row.incident or (job.incident_key if job else 0)
        self.incidents += bool(incident)
        loop = self._state.processes.loops.get(key) if row.item < 0 else None
        return FoundElement(
            key, node.id, node.kind, node.element.name, row.created_ms, max(row.item, 0),
            row.phase == Phase.TERMINATING,
            job=row.work if job else 0,
            called_instance=row.work if calls else 0,
            incident=incident,
            items_total=loop.total if loop else 0,
            items_done=loop.done if loop else 0,
            waits=self._waits(key, node) if node.events else [],
            children=self.children(key),
        )  # fmt: skip

    def _waits(self, key: int, node: Node) -> list[FoundWait]:
        found: list[FoundWait] = []
        for event in node.events:
            wait = self._state.processes.waits.get((key, event.index))
            if wait is None:
                continue
            beside = "" if event is node else event.id
            if timer := self._state.processes.timers.get(wait):
                found.append(FoundWait(due_ms=timer.due_ms, event=beside))
            elif said := self._state.processes.subscriptions.get(wait):
                found.append(FoundWait(0, said.name, said.correlation, beside))
        return found
