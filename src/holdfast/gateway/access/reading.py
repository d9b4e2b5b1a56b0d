"""What whoever asks may see of the state, thing by thing."""

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.incidents.values import Incident
from holdfast.engine.jobs.values import Job, Outcome
from holdfast.engine.state import EngineState
from holdfast.gateway.access.asking import Asked

_DEFINITION, _TASK = ResourceType.PROCESS_DEFINITION, ResourceType.TASK


def may_read_definition(asked: Asked, process_id: str) -> bool:
    return asked.may(_DEFINITION, Permission.READ_PROCESS_DEFINITION, process_id)


def may_read_instance(asked: Asked, process_id: str) -> bool:
    return asked.may(_DEFINITION, Permission.READ_PROCESS_INSTANCE, process_id)


def may_read_task(asked: Asked, type_: str) -> bool:
    return asked.may(_TASK, Permission.READ, type_)


def may_read_job(asked: Asked, job: Job, state: EngineState) -> bool:
    """A plain task by its type; the job of an element by the process it is done for, too."""
    if may_read_task(asked, job.submitted.type):
        return True
    origin = state.processes.origin(job.submitted.element_key)
    return origin is not None and may_read_instance(asked, origin.process_id)


def may_read_outcome(asked: Asked, outcome: Outcome, state: EngineState) -> bool:
    """How a task ended, by its type; how a process instance ended, by its process.

    An outcome of an earlier release does not say which of them it is of. Where both are possible
    both permissions are needed.
    """
    if outcome.definition:
        return may_read_instance(asked, outcome.type)
    if outcome.is_job or not may_be_of_instance(outcome, state):
        return may_read_task(asked, outcome.type)
    return may_read_task(asked, outcome.type) and may_read_instance(asked, outcome.type)


def may_be_of_instance(outcome: Outcome, state: EngineState) -> bool:
    """Whether an outcome can be that of a process instance."""
    if outcome.definition:
        return True
    return not outcome.is_job and state.processes.latest.get(outcome.type) is not None


def may_read_incident(asked: Asked, incident: Incident) -> bool:
    """By the process that it stops, or by the type of the job."""
    if incident.process_id and may_read_instance(asked, incident.process_id):
        return True
    return bool(incident.job_type) and may_read_task(asked, incident.job_type)
