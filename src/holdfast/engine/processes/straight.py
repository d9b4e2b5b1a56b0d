"""The straight way: from a start or a job that is done to the next job, or to the end.

Most of what instances do is this. What a walk would find out on its way is known from the
definition: `Node.straight` is the element that the token comes to. What is written here is what a
walk writes, record for record; whatever is not as plain as that is left to a walk.
"""

from typing import TYPE_CHECKING

from holdfast.engine.jobs.commands import add_job_with_key
from holdfast.engine.jobs.values import Backoff, JobEnded, JobState, NewJob, Outcome
from holdfast.engine.kernel import Turn
from holdfast.engine.processes import ops
from holdfast.engine.processes.events import APPLY, Place
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
_JOB, _COMPLETED = ElementKind.JOB, JobState.COMPLETED


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
    assert start.straight is not None, "the way is not straight"
    way = _StraightWay(turn, key, plan)
    way.do(ops.Began(variables, 0, new.depth, new.keep_ms, "", new.root))
    way.passed(start)
    way.to_job(start.straight, InstanceIntent.CREATED)
    turn.moves += 2


def leads_on(
    turn: "Turn[EngineState]", row: Instance, element: ElementInstance, node: Node,
    values: dict[str, bytes],
) -> bool:  # fmt: skip
    """Whether the token of a job that is done goes straight on."""
    target = node.straight
    return (
        target is not None
        and element.phase is _ACTIVE
        and row.phase is _ACTIVE
        and not (element.item or element.local or element.due_ms or turn.is_braked)
        and (target.kind is _JOB or _ends_with_it(row))
        and sum(map(len, values.values())) <= SMALL_VARIABLES_BYTES
    )


def _ends_with_it(row: Instance) -> bool:
    """Whether the instance ends with its last token, and nobody else waits for that."""
    return row.tokens == 1 and not (row.parent or row.lock or row.due_ms)


def go_on(
    turn: "Turn[EngineState]", key: int, row: Instance, element: ElementInstance,
    plan: ProcessPlan, values: dict[str, bytes],
) -> None:  # fmt: skip
    """The job of an element is done, with these variables: its token goes on."""
    target = plan.nodes[element.node].straight
    assert target is not None, "the way is not straight"
    way = _StraightWay(turn, element.instance, plan)
    if values:
        way.do(ops.VariablesSet(element.instance, values))
    way.do(ops.Completed(key, element.node, element.scope, False))
    if target.kind is _JOB:
        way.to_job(target, InstanceIntent.ADVANCED)
    else:
        way.to_end(target, row)
    turn.moves += 1


class _StraightWay:
    """The pen for one instance on its straight way: what happens there is one event."""

    def __init__(self, turn: "Turn[EngineState]", key: int, plan: ProcessPlan) -> None:
        self._turn = turn
        self._key = key
        self._plan = plan
        self._place = Place(key, plan.key, turn.now_ms)
        self._ops: list[Op] = []

    def do(self, op: Op) -> None:
        self._ops.append(op)
        APPLY[type(op)](self._turn.state, self._place, op)

    def passed(self, node: Node) -> None:
        self._ops.append(ops.Passed(self._turn.new_key(), node.index, self._key))  # it only tells

    def to_job(self, node: Node, intent: InstanceIntent) -> None:
        turn, type_, retries = self._turn, node.job_type, node.retries
        assert isinstance(type_, str) and isinstance(retries, int), "a plain job: no expressions"
        job, key = turn.new_key(), turn.new_key()
        self.do(ops.Activated(key, node.index, self._key, _ACTIVE, job))
        self._tell(intent)
        new = NewJob(type_, b"", 0, retries, _BACKOFF, element_key=key, instance_key=self._key)
        add_job_with_key(turn, job, new)

    def to_end(self, node: Node, row: Instance) -> None:
        turn, key = self._turn, self._key
        self.passed(node)
        variables = json_object(turn.state.processes.variables.get(key) or {})
        self.do(ops.Ended(variables if row.keep_ms else b"", False, row.keep_ms))
        self._tell(InstanceIntent.COMPLETED)
        outcome = Outcome(_COMPLETED, variables, "", turn.now_ms, self._plan.process_id)
        turn.effect(JobEnded(key, outcome))

    def _tell(self, intent: InstanceIntent) -> None:
        turn = self._turn
        step = Advance(self._plan.key, tuple(self._ops), turn.last_key())
        turn.recorded(_INSTANCE, intent, self._key, step)
