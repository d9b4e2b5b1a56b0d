"""Jobs of elements: what becomes of an instance when a worker reports."""

import msgspec

from holdfast.engine.jobs import commands as jobs
from holdfast.engine.jobs.values import Failure, Job, JobIntent, NewJob, Retry, ThrowError
from holdfast.engine.kernel import Turn
from holdfast.engine.processes import activities, errors, ops
from holdfast.engine.processes.instances import take_up
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.variables import from_json
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument
from holdfast.records import Record, ValueType


def complete(turn: Turn[EngineState], command: Record) -> None:
    """The job is done; the element that waited for it goes on with the result."""
    job = jobs.held_job(turn, command)
    if job is None:
        return
    if not job.submitted.element_key:
        jobs.complete(turn, command.key, command.value)
        return
    _go_on(turn, command.key, job.submitted, command.value.result, command.value.lease)


def _go_on(turn: Turn[EngineState], key: int, job: NewJob, result: bytes, lease: int) -> None:
    processes = turn.state.processes
    element = processes.elements.get(job.element_key)
    assert element is not None, "a job is there whose element is not"
    walk = take_up(turn, element.instance)
    name = walk.plan.nodes[element.node].element.result
    try:
        values = {name: result} if name else from_json(result)
    except InvalidArgument:
        error = (
            "Expected the result of the job to be an object of variables, or the element to name"
            f" the variable for it, but found {result[:100].decode(errors='replace')}"
        )
        row = turn.state.jobs.jobs.get(key)
        assert row is not None
        jobs.fail_job(turn, key, row, Failure(lease, error, final=True))
        return
    jobs.finish_job(turn, key)
    if not walk.is_ending(element):
        activities.leave(walk, job.element_key, element, values)
        walk.run()
        walk.finish()


def throw_error(turn: Turn[EngineState], command: Record) -> None:
    """The worker says that the work ends in an error that the drawing knows."""
    job = jobs.held_job(turn, command)
    if job is None:
        return None
    error: ThrowError = command.value
    key = job.submitted.element_key
    if not key:
        said = f"{error.code}: {error.message}" if error.message else error.code
        jobs.fail_job(turn, command.key, job, Failure(error.lease, said, final=True))
        return None
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
    thrown = msgspec.structs.replace(error, incident_key=0)
    turn.event(ValueType.JOB, JobIntent.ERROR_THROWN, command.key, thrown)
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
    thrown = msgspec.structs.replace(error, incident_key=incident)
    turn.event(ValueType.JOB, JobIntent.ERROR_THROWN, key, thrown)
    stuck = errors.unhandled(error.code, error.message, f"the job of {element_id!r}")
    jobs.raise_incident(turn, incident, key, job, stuck.reason, stuck.message)


def update_retries(turn: Turn[EngineState], command: Record) -> None:
    """The job may fail so many times more."""
    job: Job | None = turn.state.jobs.jobs.get(command.key)
    if job is None:
        reason = f"Expected a job with key {command.key}, but there is none"
        return turn.reject(command, Code.NOT_FOUND, reason)
    retry: Retry = command.value
    turn.event(ValueType.JOB, JobIntent.RETRIES_UPDATED, command.key, retry)


def cancel(turn: Turn[EngineState], command: Record) -> None:
    """A task is canceled; a job of a process ends with its element only."""
    job = turn.state.jobs.jobs.get(command.key)
    if job is not None and job.submitted.element_key:
        reason = (
            f"Expected a task, but job {command.key} belongs to process instance"
            f" {job.submitted.instance_key}: cancel or modify that"
        )
        return turn.reject(command, Code.INVALID_STATE, reason)
    jobs.cancel(turn, command)
