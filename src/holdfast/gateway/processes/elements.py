"""A process instance as people see it: the tree of its active elements."""

from msgspec import UNSET

from holdfast.engine.ended.values import EndedThing
from holdfast.engine.jobs.values import JobState
from holdfast.engine.processes.queries import FoundInstance
from holdfast.engine.processes.showing import FoundElement, FoundWait
from holdfast.gateway import checks
from holdfast.gateway.processes.shapes import (
    ElementState,
    ElementView,
    InstanceState,
    ProcessInstanceView,
)


def instance_view(found: FoundInstance, *, whole: bool = True) -> ProcessInstanceView:
    """An instance; `whole` with its variables and elements."""
    if found.outcome is not None:
        return _ended_view(found)
    return ProcessInstanceView(
        str(found.key), found.process_id,
        InstanceState.TERMINATING if found.is_ending else InstanceState.ACTIVE,
        found.version, str(found.definition),
        str(found.parent) if found.parent else None,
        checks.moment(found.created_ms),
        variables=checks.raw(found.variables) if whole else UNSET,
        elements=[_element_view(each) for each in found.elements],
        more_elements=found.has_more_elements,
        incidents=found.incidents,
    )  # fmt: skip


def _ended_view(found: FoundInstance) -> ProcessInstanceView:
    outcome = found.outcome
    assert outcome is not None
    completed = outcome.state == JobState.COMPLETED
    return ProcessInstanceView(
        str(found.key), found.process_id,
        InstanceState.COMPLETED if completed else InstanceState.CANCELED,
        found.version,
        str(found.definition) if found.definition else None,
        created=checks.moment(found.created_ms),
        finished=checks.moment(outcome.finished_ms),
        variables=checks.raw(outcome.result) if completed else checks.raw(b"{}"),
    )  # fmt: skip


def ended_view(thing: EndedThing, variables: bytes = b"") -> ProcessInstanceView:
    """An instance that ended recently, with the variables that it ended with, if they are kept."""
    return ProcessInstanceView(
        str(thing.key), thing.process_id, InstanceState(thing.state), thing.version,
        str(thing.definition),
        created=checks.moment(thing.created_ms),
        finished=checks.moment(thing.ended_ms),
        variables=checks.raw(variables) if variables else UNSET,
    )  # fmt: skip


def _element_view(found: FoundElement) -> ElementView:
    state = ElementState.INCIDENT if found.incident else ElementState.ACTIVE
    if found.is_ending:
        state = ElementState.TERMINATING
    created = checks.moment(found.created_ms)
    assert created is not None
    return ElementView(
        str(found.key), found.element_id, found.kind.name, state, created, found.name, found.item,
        job_key=str(found.job) if found.job else None,
        called_instance_key=str(found.called_instance) if found.called_instance else None,
        incident_key=str(found.incident) if found.incident else None,
        waits_for=[_wait_text(each) for each in found.waits],
        items_total=found.items_total,
        items_done=found.items_done,
        children=[_element_view(each) for each in found.children],
    )  # fmt: skip


def _wait_text(wait: FoundWait) -> str:
    """What an element waits for, in words."""
    beside = f" ({wait.event})" if wait.event else ""
    if wait.due_ms:
        return f"time {checks.moment(wait.due_ms):%Y-%m-%d %H:%M:%S} UTC{beside}"
    return f"message {wait.message!r} for {wait.correlation!r}{beside}"
