"""The straight way: from a start or a job that is done to the next job, or to the end.

Most of what instances do is this. What a walk would find out on its way is known from the
definition: `Node.straight` is the element that the token comes to. To cancel an instance with one
job is as plain. What is written here is what a walk writes, record for record; whatever is not as
plain as that is left to a walk.
"""

from typing import TYPE_CHECKING

from holdfast.engine.jobs.commands import add_job_with_key, cancel_job
from holdfast.engine.jobs.values import Backoff, JobEnded, JobState, NewJob, Outcome
from holdfast.engine.kernel import Turn
from holdfast.engine.processes import ops
from holdfast.engine.processes.events import Place, began, ended
from holdfast.engine.processes.ops import Op, Phase
from holdfast.engine.processes.plan import Node, ProcessPlan
from holdfast.engine.processes.state import ElementInstance, Instance, json_object
from holdfast.engine.processes.values import Advance, InstanceIntent, NewInstance
from holdfast.limits import MOVE_BYTES, SMALL_VARIABLES_BYTES
from holdfast.model.definition import ElementKind
from holdfast.records import ValueType

if TYPE_CHECKING:
    from holdfast.engine.state import EngineState

_INSTANCE, _ACTIVE, _BACKOFF = ValueType.PROCESS_INSTANCE, Phase.ACTIVE, Backoff()
_JOB, _COMPLETED, _CANCELED = ElementKind.JOB, JobState.COMPLETED, JobState.CANCELED


def begins(turn: "Turn[EngineState]", new: NewInstance, start: Node) -> bool:
    """Whether a new instance goes straight to its first job."""
    target = start.straight
    return (
        target is not None
        and target.kind is _JOB
        and type(new) is NewInstance  # without headers
        and not (new.parent or new.lock or new.idempotency_key)
        and len(new.variables) < MOVE_BYTES
        and not turn.is_braked
    )


def begin(
    turn: "Turn[EngineState]", key: int, plan: ProcessPlan, new: NewInstance, start: Node,
    variables: dict[str, bytes],
) -> None:  # fmt: skip
    """A new instance, whose token waits for its first job."""
    target = start.straight
    assert target is not None, "the way is not straight"
    begun = ops.Began(variables, 0, new.depth, new.keep_ms, "", new.root)
    began(turn.state, Place(key, plan.key, turn.now_ms), begun)
    passed = ops.Passed(turn.new_key(), start.index, key)
    _to_job(turn, key, plan, target, InstanceIntent.CREATED, (begun, passed))
    turn.moves += 2


def leads_on(
    turn: "Turn[EngineState]", row: Instance, element: ElementInstance, node: Node,
    values_bytes: int,
) -> bool:  # fmt: skip
    """Whether the token of a job that is done, with so much to say, goes straight on."""
    target = node.straight
    return (
        target is not None
        and element.phase is _ACTIVE
        and row.phase is _ACTIVE
        and not (element.item or element.local or element.due_ms or turn.is_braked)
        and (target.kind is _JOB or _ends_with_it(row))
        and values_bytes <= SMALL_VARIABLES_BYTES
    )


def _ends_with_it(row: Instance) -> bool:
    """Whether the instance ends with its last token, and nobody else waits for that."""
    return row.tokens == 1 and not (row.parent or row.lock or row.due_ms)


def go_on(
    turn: "Turn[EngineState]", key: int, row: Instance, element: ElementInstance,
    plan: ProcessPlan, values: dict[str, bytes],
) -> None:  # fmt: skip
    """The job of an element is done, with these variables: its token goes on."""
    target, instance = plan.nodes[element.node].straight, element.instance
    assert target is not None, "the way is not straight"
    processes = turn.state.processes
    done: tuple[Op, ...] = (ops.Completed(key, element.node, element.scope, False),)
    if values:
        processes.set_variables(instance, values)
        done = (ops.VariablesSet(instance, values), *done)
    processes.remove(key, element.scope, False)
    if target.kind is _JOB:
        _to_job(turn, instance, plan, target, InstanceIntent.ADVANCED, done)
    else:
        _to_end(turn, instance, plan, target, row, done)
    turn.moves += 1


def _to_job(
    turn: "Turn[EngineState]", instance: int, plan: ProcessPlan, node: Node,
    intent: InstanceIntent, before: tuple[Op, ...],
) -> None:  # fmt: skip
    """The token comes to a job, after what came before in the same step."""
    type_, retries = node.job_type, node.retries
    assert isinstance(type_, str) and isinstance(retries, int), "a plain job: no expressions"
    job, key = turn.new_key(), turn.new_key()
    element = ElementInstance(instance, node.index, instance, _ACTIVE, job, created_ms=turn.now_ms)
    turn.state.processes.activate(key, element)
    activated = ops.Activated(key, node.index, instance, _ACTIVE, job)
    turn.recorded(_INSTANCE, intent, instance, Advance(plan.key, (*before, activated), key))
    new = NewJob(type_, b"", 0, retries, _BACKOFF, element_key=key, instance_key=instance)
    add_job_with_key(turn, job, new)


def _to_end(
    turn: "Turn[EngineState]", instance: int, plan: ProcessPlan, node: Node, row: Instance,
    before: tuple[Op, ...],
) -> None:  # fmt: skip
    """The token comes to the end, and the instance with it."""
    state, now_ms, key = turn.state, turn.now_ms, turn.new_key()
    variables = json_object(state.processes.variables.get(instance) or {})
    end = ops.Ended(variables if row.keep_ms else b"", False, row.keep_ms)
    ended(state, Place(instance, plan.key, now_ms), end)
    told = (*before, ops.Passed(key, node.index, instance), end)
    turn.recorded(_INSTANCE, InstanceIntent.COMPLETED, instance, Advance(plan.key, told, key))
    outcome = Outcome(_COMPLETED, variables, "", now_ms, plan.process_id)
    turn.effect(JobEnded(instance, outcome))


def cancel(turn: "Turn[EngineState]", instance: int, row: Instance) -> bool:
    """Ends an instance in which one job is all there is; False: it is not as plain as that."""
    state, now_ms = turn.state, turn.now_ms
    processes = state.processes
    plan = processes.plans[row.definition]
    if not plan.cancels_straight or row.tokens != 1 or row.tree is not None:
        return False
    if row.parent or row.root or row.lock or row.due_ms or row.phase is not _ACTIVE:
        return False
    children = processes.children_of(instance, 2)
    element = processes.elements.get(children[0]) if len(children) == 1 else None
    if element is None or not _is_only_a_job(element, plan):
        return False
    key = children[0]
    gone = ops.Terminated(key, element.node, instance, False)
    processes.remove(key, instance, False)
    end = ops.Ended(b"", True, row.keep_ms)
    ended(state, Place(instance, plan.key, now_ms), end)
    step = Advance(plan.key, (gone, end), turn.last_key())
    turn.recorded(_INSTANCE, InstanceIntent.CANCELED, instance, step)
    turn.moves += 1
    outcome = Outcome(_CANCELED, b"null", "canceled", now_ms, plan.process_id)
    turn.effect(JobEnded(instance, outcome))
    cancel_job(turn, element.work)
    return True


def _is_only_a_job(element: ElementInstance, plan: ProcessPlan) -> bool:
    """Whether nothing ends with an element but its job."""
    node = plan.nodes[element.node]
    return (
        node.kind is _JOB
        and not node.events
        and element.work != 0
        and element.phase is _ACTIVE
        and not (element.item or element.local or element.due_ms or element.incident)
    )
