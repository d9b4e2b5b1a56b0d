"""What tests say to a partition about jobs, in one line each."""

from partition_driver import Driver

from holdfast.engine.incidents.values import IncidentIntent, JobIncident, Resolution
from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Backoff,
    BackoffKind,
    Completion,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobRef,
    JobState,
    NewJob,
)
from holdfast.engine.kernel import Command
from holdfast.records import ValueType

LEASE_MS = 1_000
PAUSE_MS = 500
NEW = NewJob("a", b"null", retries=1, backoff=Backoff(BackoffKind.FIXED, PAUSE_MS, PAUSE_MS, 0))


def create(driver: Driver, delay_ms: int = 0, new: NewJob = NEW) -> int:
    due_ms = driver.now_ms + delay_ms if delay_ms else 0
    value = NewJob(new.type, new.payload, new.priority, new.retries, new.backoff, due_ms=due_ms,
                   keep_ms=60_000)  # fmt: skip
    return driver.do(Command(ValueType.JOB, JobIntent.CREATE, 0, value)).key


def activate(driver: Driver, lease_ms: int = LEASE_MS) -> ActivatedJob:
    value = Activation(("a",), "worker", 1, lease_ms)
    return driver.do(Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)).value[0]


def complete(driver: Driver, job: ActivatedJob) -> None:
    value = Completion(job.lease, b"42")
    assert driver.do(Command(ValueType.JOB, JobIntent.COMPLETE, job.key, value)).rejection is None


def fail(driver: Driver, job: ActivatedJob, *, final: bool = False) -> None:
    value = Failure(job.lease, "boom", final)
    assert driver.do(Command(ValueType.JOB, JobIntent.FAIL, job.key, value)).rejection is None


def release(driver: Driver, job: ActivatedJob) -> None:
    value = JobList((job.key,))
    driver.do(Command(ValueType.JOB_BATCH, JobBatchIntent.RELEASE, job.lease, value))


def cancel(driver: Driver, key: int) -> None:
    assert driver.do(Command(ValueType.JOB, JobIntent.CANCEL, key, JobRef())).rejection is None


def incident_of(driver: Driver, key: int) -> int:
    return driver.view.jobs.jobs.get(key).incident_key


def resolve(driver: Driver, key: int) -> None:
    incident = incident_of(driver, key)
    driver.do(Command(ValueType.INCIDENT, IncidentIntent.RESOLVE, incident, Resolution(1)))


def discard(driver: Driver, key: int) -> None:
    incident = incident_of(driver, key)
    driver.do(Command(ValueType.INCIDENT, IncidentIntent.DISCARD, incident, JobIncident()))


def state(driver: Driver, key: int) -> JobState | None:
    """Where a job stands, ended or not; None before it is there."""
    jobs = driver.view.jobs
    if (job := jobs.jobs.get(key)) is not None:
        return jobs.state_of(key, job)
    outcome = jobs.outcome(key)
    return None if outcome is None else outcome.state
