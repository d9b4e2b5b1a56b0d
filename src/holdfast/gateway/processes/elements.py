"""A process instance as people see it: the tree of its active elements."""

from msgspec import UNSET

from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node, Plan
from holdfast.engine.processes.state import ElementInstance, Instance, json_object
from holdfast.engine.state import EngineState
from holdfast.gateway import checks
from holdfast.gateway.processes.shapes import (
    ElementState,
    ElementView,
    InstanceState,
    ProcessInstanceView,
)
from holdfast.limits import ELEMENTS_SHOWN_MAX
from holdfast.model.definition import ElementKind


def instance_view(
    state: EngineState, key: int, row: Instance, *, whole: bool = True
) -> ProcessInstanceView:
    """A running instance; `whole` with its variables and elements."""
    processes = state.processes
    plan = processes.plan(row.definition)
    tree = _Tree(state, plan)
    elements = tree.children(key) if whole else []
    ending = row.phase == Phase.TERMINATING
    return ProcessInstanceView(
        str(key), plan.process_id,
        InstanceState.TERMINATING if ending else InstanceState.ACTIVE,
        plan.version, str(row.definition),
        str(row.parent) if row.parent else None,
        checks.moment(row.created_ms),
        variables=checks.raw(json_object(processes.variables.get(key) or {}))
        if whole
        else UNSET,
        elements=elements,
        more_elements=tree.left < 0,
        incidents=tree.incidents,
    )  # fmt: skip


class _Tree:
    """Collects the elements of one instance, a bounded number of them."""

    def __init__(self, state: EngineState, plan: Plan) -> None:
        self._state = state
        self._plan = plan
        self.left = ELEMENTS_SHOWN_MAX
        self.incidents = 0

    def children(self, scope: int) -> list[ElementView]:
        found: list[ElementView] = []
        for key, element in self._state.processes.all_children(scope):
            self.left -= 1
            if self.left < 0:
                break
            found.append(self._view(key, element))
        return found

    def _view(self, key: int, element: ElementInstance) -> ElementView:
        node = self._plan.nodes[element.node]
        calls = node.kind == ElementKind.CALL and element.item >= 0
        job = self._state.jobs.jobs.get(element.work) if element.work and not calls else None
        incident = element.incident or (job.incident_key if job else 0)
        self.incidents += bool(incident)
        state = ElementState.INCIDENT if incident else ElementState.ACTIVE
        if element.phase == Phase.TERMINATING:
            state = ElementState.TERMINATING
        loop = self._state.processes.loops.get(key) if element.item < 0 else None
        created = checks.moment(element.created_ms)
        assert created is not None
        return ElementView(
            str(key), node.id, node.kind.name, state, created, node.element.name,
            max(element.item, 0),
            job_key=str(element.work) if job else None,
            called_instance_key=str(element.work) if calls and element.work else None,
            incident_key=str(incident) if incident else None,
            waits_for=self._waits(key, node) if node.events else [],
            items_total=loop.total if loop else 0,
            items_done=loop.done if loop else 0,
            children=self.children(key),
        )  # fmt: skip

    def _waits(self, key: int, node: Node) -> list[str]:
        """What the element waits for, in words."""
        found: list[str] = []
        for event in node.events:
            wait = self._state.processes.waits.get((key, event.index))
            if wait is None:
                continue
            beside = "" if event is node else f" ({event.id})"
            if timer := self._state.processes.timers.get(wait):
                moment = checks.moment(timer.due_ms)
                found.append(f"time {moment:%Y-%m-%d %H:%M:%S} UTC{beside}")
            elif subscription := self._state.processes.subscriptions.get(wait):
                said = f"message {subscription.name!r} for {subscription.correlation!r}"
                found.append(f"{said}{beside}")
        return found
