"""What happens to the state when something happened to jobs: one applier an event."""

import msgspec

from holdfast.engine.due.dates import DueKind
from holdfast.engine.jobs.values import (
    Completion,
    Ending,
    Extension,
    FailureRecorded,
    Job,
    JobList,
    JobState,
    Lease,
    NewJob,
    Outcome,
    Purge,
    Retry,
    TaskDefaults,
    ThrowError,
)
from holdfast.engine.state import EngineState
from holdfast.records import Record

_replace = msgspec.structs.replace


def created(state: EngineState, event: Record) -> None:
    new: NewJob = event.value
    state.jobs.create(event.key, new, event.timestamp_ms)


def task_defined(state: EngineState, event: Record) -> None:
    new: TaskDefaults = event.value
    state.jobs.defaults.put(new.type, new)


def completed(state: EngineState, event: Record) -> None:
    done: Completion = event.value
    job = _job(state, event.key)
    state.jobs.complete(event.key, job, done.result, event.timestamp_ms)


def failed(state: EngineState, event: Record) -> None:
    failure: FailureRecorded = event.value
    job = _job(state, event.key)
    state.jobs.let_go(event.key)
    changed = _replace(
        job,
        retries=failure.retries,
        due_ms=failure.due_ms,
        incident_key=failure.incident_key,
        failures=job.failures + 1,
        expiries=0,
        error=failure.error,
    )
    state.jobs.jobs.put(event.key, changed)
    if failure.due_ms:
        state.due.add(failure.due_ms, DueKind.JOB, event.key)


def canceled(state: EngineState, event: Record) -> None:
    ending: Ending = event.value
    job = _job(state, event.key)
    state.jobs.cancel(event.key, job, ending.error, event.timestamp_ms)


def discarded(state: EngineState, event: Record) -> None:
    ending: Ending = event.value
    job = _job(state, event.key)
    outcome = Outcome(
        JobState.DISCARDED, b"null", ending.error, event.timestamp_ms, job.submitted.type,
        is_job=True,
    )  # fmt: skip
    state.jobs.end(event.key, job, outcome)


def retried(state: EngineState, event: Record) -> None:
    retry: Retry = event.value
    job = _job(state, event.key)
    waiting = _replace(job, retries=retry.retries, incident_key=0, expiries=0, error_code="")
    state.jobs.wait_again(event.key, waiting, event.timestamp_ms)


def error_thrown(state: EngineState, event: Record) -> None:
    job = _job(state, event.key)
    thrown: ThrowError = event.value
    if thrown.incident_key:
        state.jobs.let_go(event.key)
        stuck = _replace(
            job,
            incident_key=thrown.incident_key,
            error=thrown.message,
            error_code=thrown.code,
            expiries=0,
        )
        state.jobs.jobs.put(event.key, stuck)
        return
    outcome = Outcome(
        JobState.ERROR_THROWN,
        b"null",
        thrown.code,
        event.timestamp_ms,
        job.submitted.type,
        is_job=True,
    )
    state.jobs.end(event.key, job, outcome)


def retries_updated(state: EngineState, event: Record) -> None:
    retry: Retry = event.value
    job = _job(state, event.key)
    state.jobs.jobs.put(event.key, _replace(job, retries=retry.retries))


def activated(state: EngineState, event: Record) -> None:
    lease: Lease = event.value
    state.jobs.lease(event.key, lease)


def extended(state: EngineState, event: Record) -> None:
    extension: Extension = event.value
    state.jobs.extend(event.key, extension.until_ms)


def released(state: EngineState, event: Record) -> None:
    given_back: JobList = event.value
    for key in given_back.jobs:
        state.jobs.let_go(key)
        state.jobs.wait_again(key, _job(state, key), event.timestamp_ms)


def expired(state: EngineState, event: Record) -> None:
    lost: JobList = event.value
    for key in lost.jobs:
        job = _job(state, key)
        state.jobs.let_go(key)
        again = _replace(job, expiries=job.expiries + 1)
        state.jobs.wait_again(key, again, event.timestamp_ms)
    for key, incident in lost.incidents:
        job = _job(state, key)
        state.jobs.let_go(key)
        state.jobs.jobs.put(key, _replace(job, expiries=job.expiries + 1, incident_key=incident))


def woken(state: EngineState, event: Record) -> None:
    awake: JobList = event.value
    for key in awake.jobs:
        job = _job(state, key)
        state.due.remove(job.due_ms, DueKind.JOB, key)
        state.jobs.wait_again(key, _replace(job, due_ms=0), event.timestamp_ms)


def purged(state: EngineState, event: Record) -> None:
    purge: Purge = event.value
    state.jobs.purge(purge.bucket_ms, purge.rows)


def _job(state: EngineState, key: int) -> Job:
    job = state.jobs.jobs.get(key)
    assert job is not None, f"an event names job {key}, which is not in the state"
    return job
