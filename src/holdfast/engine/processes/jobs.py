"""Jobs of elements: what becomes of an instance when a worker reports."""

import msgspec

from holdfast.engine.jobs import commands as jobs
from holdfast.engine.jobs.owner import Owner
from holdfast.engine.jobs.values import Completion, Failure, Job, JobIntent, ThrowError
from holdfast.engine.kernel import Turn
from holdfast.engine.processes import activities, errors, ops, straight
from holdfast.engine.processes.behaviours import BEHAVIOURS
from holdfast.engine.processes.instances import take_up
from holdfast.engine.processes.needs import of_instance
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.variables import from_json
from holdfast.engine.processes.walk import Walk
from holdfast.engine.state import EngineState
from holdfast.errors import InvalidArgument
from holdfast.records import Record, ValueType


def done(turn: Turn[EngineState], key: int, job: Job, completion: Completion) -> None:
    """The element that waited for the job goes on with the result."""
    element_key, result = job.submitted.element_key, completion.result
    processes = turn.state.processes
    element = processes.elements.get(element_key)
    row = processes.instances.get(element.instance) if element is not None else None
    assert element is not None and row is not None, "a job is there whose element is not"
    plan = processes.plans[row.definition]
    node = plan.nodes[element.node]
    name = node.element.result
    try:
        values = {name: result} if name else from_json(result)
    except InvalidArgument:
        error = (
            "Expected the result of the job to be an object of variables, or the element to name"
            f" the variable for it, but found {result[:100].decode(errors='replace')}"
        )
        jobs.fail_job(turn, key, job, Failure(completion.lease, error, final=True))
        return
    jobs.finish_job(turn, key, job)
    if straight.leads_on(turn, row, element, node, len(result)):
        straight.go_on(turn, element_key, row, element, plan, values)
        return
    walk = Walk(turn, element.instance, row, plan, BEHAVIOURS)
    if not walk.is_ending(element):
        activities.leave(walk, element_key, element, values)
        walk.run()
        walk.finish()


def thrown(turn: Turn[EngineState], command: Record, job: Job) -> None:
    """The worker says that the work ends in an error that the drawing knows."""
    error: ThrowError = command.value
    key = job.submitted.element_key
    try:
        values = from_json(error.variables)
    except InvalidArgument as invalid:
        return turn.reject(command, invalid.code, invalid.message)
    element = turn.state.processes.elements.get(key)
    assert element is not None, "a job is there whose element is not"
    walk = take_up(turn, element.instance)
    is_ending = walk.is_ending(element)
    if not is_ending and errors.find(walk.processes, walk.plan, walk.key, key, error.code) is None:
        return _nobody_catches(turn, command.key, job, error, walk.plan.nodes[element.node].id)
    told = msgspec.structs.replace(error, incident_key=0)
    turn.event(ValueType.JOB, JobIntent.ERROR_THROWN, command.key, told)
    if is_ending:
        return None
    walk.do(ops.Changed(key, Phase.ACTIVE))  # the job is gone
    errors.throw(walk, key, error.code, error.message, values)
    walk.run()
    walk.finish()


def _nobody_catches(
    turn: Turn[EngineState], key: int, job: Job, error: ThrowError, element_id: str
) -> None:
    """The job stays with its element; a worker has it again once the incident is resolved."""
    incident = turn.new_key()
    told = msgspec.structs.replace(error, incident_key=incident)
    turn.event(ValueType.JOB, JobIntent.ERROR_THROWN, key, told)
    stuck = errors.unhandled(error.code, error.message, f"the job of {element_id!r}")
    jobs.raise_incident(turn, incident, key, job, stuck.reason, stuck.message)


OWNER = Owner(done, thrown, of_instance)
"""What elements of processes do about their jobs."""
