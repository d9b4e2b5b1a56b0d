"""What a person can do about an incident."""

from holdfast.engine.incidents.values import (
    Incident,
    IncidentIntent,
    IncidentReason,
)
from holdfast.engine.jobs.commands import say_available
from holdfast.engine.jobs.values import (
    Ending,
    JobEnded,
    JobIntent,
    JobState,
    Outcome,
    Retry,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.processes.commands import resume
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, ValueType

JOB, INCIDENT = ValueType.JOB, ValueType.INCIDENT


def resolve(turn: Turn[EngineState], command: Record) -> None:
    """The cause is fixed: the job gets retries again and goes back to the workers."""
    incident = _open(turn, command)
    if incident is None:
        return
    ending = turn.state.incidents.ending(command.key)
    turn.event(INCIDENT, IncidentIntent.RESOLVED, command.key, ending)
    if not incident.job_key:
        resume(turn, incident.element_key)
        return
    turn.event(JOB, JobIntent.RETRIED, incident.job_key, Retry(_retries(turn, command, incident)))
    say_available(turn, incident.job_type)


def _retries(turn: Turn[EngineState], command: Record, incident: Incident) -> int:
    """A job that threw an error has not failed: it keeps at least the retries that it had."""
    job = turn.state.jobs.jobs.get(incident.job_key)
    thrown = incident.reason is IncidentReason.UNHANDLED_ERROR
    return max(command.value.retries, job.retries if thrown and job is not None else 0)


def discard(turn: Turn[EngineState], command: Record) -> None:
    """Nothing more is to be done: the job ends without a result."""
    incident = _open(turn, command)
    if incident is None:
        return None
    if incident.element_key:
        reason = (
            f"Expected the incident of a task, but it is of {incident.element_id!r} in process"
            f" instance {incident.instance_key}: resolve it, or modify or cancel the instance"
        )
        return turn.reject(command, Code.INVALID_STATE, reason)
    told = turn.state.incidents.ending(command.key)
    turn.event(INCIDENT, IncidentIntent.DISCARDED, command.key, told)
    ending = Ending(incident.error)
    turn.event(JOB, JobIntent.DISCARDED, incident.job_key, ending)
    outcome = Outcome(JobState.DISCARDED, b"null", ending.error, turn.now_ms)
    turn.effect(JobEnded(incident.job_key, outcome))


def _open(turn: Turn[EngineState], command: Record) -> Incident | None:
    incident = turn.state.incidents.open.get(command.key)
    if incident is None:
        reason = f"There is no open incident with key {command.key}"
        turn.reject(command, Code.NOT_FOUND, reason)
    return incident
