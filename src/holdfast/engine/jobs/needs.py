"""What one must be permitted for the commands about jobs: by the type of the job."""

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.jobs.owner import Owner
from holdfast.engine.jobs.values import Activation, Failure, NewJob, TaskDefaults
from holdfast.engine.kernel import Need, Required
from holdfast.engine.state import EngineState
from holdfast.records import Record


def create(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: NewJob = command.value
    return _task(Permission.CREATE, new.type)


def define_task(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: TaskDefaults = command.value
    return _task(Permission.WORK, new.type)


def activate(state: EngineState, command: Record) -> tuple[Required, ...]:
    asked: Activation = command.value
    return _task(Permission.WORK, *asked.types)


def of_lease(state: EngineState, command: Record) -> tuple[Required, ...]:
    lease = state.jobs.leases.get(command.key)
    return _task(Permission.WORK, *([lease.type] if lease is not None else ()))


def of_job(permission: Permission) -> Need:
    """A permission for the type of the job that a command names; for none if there is no such."""

    def need(state: EngineState, command: Record) -> tuple[Required, ...]:
        job = state.jobs.jobs.get(command.key)
        return _task(permission, *([job.submitted.type] if job is not None else ()))

    return need


def fail(owner: Owner) -> Need:
    """To set another number of attempts is to change the job; to give it up is not."""
    work, change_it = of_job(Permission.WORK), change(owner)

    def need(state: EngineState, command: Record) -> tuple[Required, ...]:
        failure: Failure = command.value
        job = state.jobs.jobs.get(command.key) if failure.retries else None
        if job is None or failure.retries == job.retries:
            return work(state, command)
        return work(state, command) + change_it(state, command)

    return need


def change(owner: Owner) -> Need:
    """The job of an element may be changed by users who may change instances of its process."""
    update = of_job(Permission.UPDATE)

    def need(state: EngineState, command: Record) -> tuple[Required, ...]:
        job = state.jobs.jobs.get(command.key)
        if job is not None and job.submitted.instance_key:
            instance = job.submitted.instance_key
            return owner.need(state, Permission.UPDATE_PROCESS_INSTANCE, instance)
        return update(state, command)

    return need


def _task(permission: Permission, *types: str) -> tuple[Required, ...]:
    return (Required(ResourceType.TASK, (permission,), types),)
