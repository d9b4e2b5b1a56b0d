"""What the events of jobs change."""

from holdfast.engine.jobs.values import (
    Ending,
    FailureRecorded,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobState,
    Lease,
    NewJob,
    Retry,
    ThrowError,
)
from holdfast.pipeline.changes.rows import Applier, Rows, add
from holdfast.pipeline.schema import JOBS
from holdfast.records import Record


def _created(rows: Rows, event: Record) -> None:
    new: NewJob = event.value
    row = rows.row(JOBS, event.key, event)
    row["type"] = new.type
    row["state"] = JobState.SCHEDULED if new.due_ms else JobState.WAITING
    row["priority"] = new.priority
    row["retries"] = new.retries
    row["failures"] = row["expiries"] = 0
    row["created"] = event.timestamp_ms
    if new.due_ms:
        row["due"] = new.due_ms
    if new.idempotency_key:
        row["idempotency_key"] = new.idempotency_key
    if new.element_key:
        row["element_instance_key"] = new.element_key
        row["process_instance_key"] = new.instance_key


def _completed(rows: Rows, event: Record) -> None:
    row = rows.row(JOBS, event.key, event)
    row["state"] = JobState.COMPLETED
    row["ended"] = event.timestamp_ms


def _error_thrown(rows: Rows, event: Record) -> None:
    thrown: ThrowError = event.value
    row = rows.row(JOBS, event.key, event)
    row["state"] = JobState.ERROR_THROWN
    row["error_code"] = thrown.code
    row["error"] = thrown.message
    if thrown.incident_key:
        row["incident_key"] = thrown.incident_key
    else:
        row["ended"] = event.timestamp_ms


def _failed(rows: Rows, event: Record) -> None:
    failure: FailureRecorded = event.value
    row = rows.row(JOBS, event.key, event)
    add(row, "failures")
    row["retries"] = failure.retries
    row["error"] = failure.error
    if failure.incident_key:
        row["state"] = JobState.INCIDENT
        row["incident_key"] = failure.incident_key
    else:
        row["state"] = JobState.SCHEDULED
        row["due"] = failure.due_ms


def _ended(state: JobState) -> Applier:
    def ended(rows: Rows, event: Record) -> None:
        ending: Ending = event.value
        row = rows.row(JOBS, event.key, event)
        row["state"] = state
        row["ended"] = event.timestamp_ms
        row["due"] = row["incident_key"] = None
        if ending.error:
            row["error"] = ending.error

    return ended


def _retried(rows: Rows, event: Record) -> None:
    retry: Retry = event.value
    row = rows.row(JOBS, event.key, event)
    row["state"] = JobState.WAITING
    row["retries"] = retry.retries
    row["incident_key"] = row["error_code"] = None


def _retries_updated(rows: Rows, event: Record) -> None:
    retry: Retry = event.value
    rows.row(JOBS, event.key, event)["retries"] = retry.retries


def _activated(rows: Rows, event: Record) -> None:
    lease: Lease = event.value
    for key in lease.jobs:
        row = rows.row(JOBS, key, event)
        row["state"] = JobState.ACTIVE
        row["worker"] = lease.worker
        row["activated"] = event.timestamp_ms


def _waiting(rows: Rows, event: Record) -> None:
    """Given back by their worker, or their time has come."""
    back: JobList = event.value
    for key in back.jobs:
        row = rows.row(JOBS, key, event)
        row["state"] = JobState.WAITING
        row["due"] = None


def _expired(rows: Rows, event: Record) -> None:
    lost: JobList = event.value
    for key in lost.jobs:
        row = rows.row(JOBS, key, event)
        row["state"] = JobState.WAITING
        add(row, "expiries")
    for key, incident in lost.incidents:
        row = rows.row(JOBS, key, event)
        row["state"] = JobState.INCIDENT
        row["incident_key"] = incident
        add(row, "expiries")


APPLIERS: dict[JobIntent, Applier] = {
    JobIntent.CREATED: _created,
    JobIntent.COMPLETED: _completed,
    JobIntent.ERROR_THROWN: _error_thrown,
    JobIntent.FAILED: _failed,
    JobIntent.CANCELED: _ended(JobState.CANCELED),
    JobIntent.DISCARDED: _ended(JobState.DISCARDED),
    JobIntent.RETRIED: _retried,
    JobIntent.RETRIES_UPDATED: _retries_updated,
}
BATCH_APPLIERS: dict[JobBatchIntent, Applier] = {
    JobBatchIntent.ACTIVATED: _activated,
    JobBatchIntent.RELEASED: _waiting,
    JobBatchIntent.EXPIRED: _expired,
    JobBatchIntent.WOKEN: _waiting,
}
