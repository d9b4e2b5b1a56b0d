"""What becomes of a job when its worker reports, or when a person changes it."""

from holdfast.engine.jobs import commands as jobs
from holdfast.engine.jobs.owner import Owner
from holdfast.engine.jobs.values import Failure, Job, JobIntent, Retry, ThrowError
from holdfast.engine.kernel import CommandHandler, Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, ValueType


def complete(owner: Owner) -> CommandHandler:
    """The job is done; an owner that waited for it goes on with the result."""

    def handle(turn: Turn[EngineState], command: Record) -> None:
        job = jobs.held_job(turn, command)
        if job is None:
            return
        lease_key = command.value.lease
        reported = turn.said.get(lease_key)
        if reported is None:
            reported = jobs.reported(turn, lease_key, job)
        reported.completed += 1
        if job.submitted.element_key:
            owner.done(turn, command.key, job, command.value)
        else:
            jobs.complete(turn, command.key, job, command.value)

    return handle


def throw_error(owner: Owner) -> CommandHandler:
    """The work ended in an error that the owner may know; a task has failed for good."""

    def handle(turn: Turn[EngineState], command: Record) -> None:
        job = jobs.held_job(turn, command)
        if job is None:
            return
        jobs.reported(turn, command.value.lease, job).failed += 1
        if job.submitted.element_key:
            owner.thrown(turn, command, job)
            return
        error: ThrowError = command.value
        said = f"{error.code}: {error.message}" if error.message else error.code
        jobs.fail_job(turn, command.key, job, Failure(error.lease, said, final=True))

    return handle


def update_retries(turn: Turn[EngineState], command: Record) -> None:
    """The job may fail so many times more."""
    job: Job | None = turn.state.jobs.jobs.get(command.key)
    if job is None:
        reason = f"There is no job with key {command.key}"
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
