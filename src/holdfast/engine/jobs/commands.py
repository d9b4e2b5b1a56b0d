"""What is asked of jobs: one function a command. They decide; only events change the state."""

from holdfast.engine.incidents.values import Incident, IncidentIntent, IncidentReason
from holdfast.engine.jobs.backoff import pause_ms
from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Completion,
    Ending,
    Extension,
    Failure,
    FailureRecorded,
    HeadedJob,
    Job,
    JobBatchIntent,
    JobEnded,
    JobIntent,
    JobList,
    JobsAvailable,
    JobsReported,
    JobState,
    Lease,
    NewJob,
    Outcome,
    Purge,
    TaskDefaults,
    TaskDefined,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import PROMISED, RESERVED_JOB, RESERVED_KEY
from holdfast.errors import Code
from holdfast.limits import LEASE_EXPIRIES_MAX, PURGE_ROWS_MAX
from holdfast.records import Record, ValueType

JOB, JOB_BATCH, INCIDENT = ValueType.JOB, ValueType.JOB_BATCH, ValueType.INCIDENT
# The two events of every job: an enum's member is slow to look up.
_CREATED, _COMPLETED = JobIntent.CREATED, JobIntent.COMPLETED
_STATE_COMPLETED = JobState.COMPLETED
# ... and of the many that a batch operation ends.
_CANCELED, _STATE_CANCELED = JobIntent.CANCELED, JobState.CANCELED
_ENDING_CANCELED = Ending("canceled")


# --- one job ----------------------------------------------------------------------------------


def create(turn: Turn[EngineState], command: Record) -> None:
    """A new job, unless its idempotency key names one that is known."""
    new: NewJob = command.value
    if new.idempotency_key:
        known = turn.state.jobs.by_idempotency_key(new.idempotency_key, turn.now_ms)
        if known is not None:
            reason = f"Expected a new idempotency key, but {new.idempotency_key!r} names a task"
            return turn.reject(command, Code.ALREADY_EXISTS, reason, key=known)
        by = turn.state.transactions.reserver(RESERVED_KEY, new.idempotency_key)
        if by is not None:
            reason = f"Idempotency key {new.idempotency_key!r} is reserved by transaction {by}"
            return turn.reject(command, Code.UNAVAILABLE, f"{reason}; try again", key=by)
    add_job_with_key(turn, command.key or turn.new_key(), new)


def add_job(turn: Turn[EngineState], new: NewJob) -> int:
    """Writes the job; also for domains that make jobs of their own."""
    key = turn.new_key()
    add_job_with_key(turn, key, new)
    return key


def add_job_with_key(turn: Turn[EngineState], key: int, new: NewJob) -> None:
    """Writes a job whose key was given out before."""
    now_ms = turn.now_ms
    turn.recorded(JOB, _CREATED, key, new)
    turn.state.jobs.create(key, new, now_ms)
    if new.due_ms <= now_ms and new.type not in turn.said:
        say_available(turn, new.type)


def say_available(turn: Turn[EngineState], type_: str) -> None:
    """Workers are told once in a step that there are jobs of a type."""
    if type_ not in turn.said:
        turn.said[type_] = None
        turn.effect(JobsAvailable(turn.partition, type_))


def define_task(turn: Turn[EngineState], command: Record) -> None:
    """How tasks of a type are run whose submission does not say: a worker knows."""
    new: TaskDefaults = command.value
    if turn.state.jobs.defaults.get(new.type) == new:
        reason = f"Expected other defaults of task {new.type!r}, but they are the same"
        return turn.reject(command, Code.ALREADY_EXISTS, reason)
    key = turn.new_key()
    turn.event(JOB, JobIntent.TASK_DEFINED, key, new)
    turn.effect(TaskDefined(turn.partition, new.type))
    turn.answer(None, key)


def complete(turn: Turn[EngineState], key: int, job: Job, done: Completion) -> None:
    """The task is done, with its result."""
    turn.recorded(JOB, _COMPLETED, key, done)
    turn.state.jobs.complete(key, job, done.result, turn.now_ms)
    turn.effects.append(JobEnded(key, Outcome(_STATE_COMPLETED, done.result, "", turn.now_ms)))


def finish_job(turn: Turn[EngineState], key: int, job: Job) -> None:
    """The job of an element is done; its result is in the variables."""
    turn.recorded(JOB, _COMPLETED, key, _NO_RESULT)
    turn.state.jobs.complete(key, job, _NO_RESULT.result, turn.now_ms)


_NO_RESULT = Completion(0)


def held_job(turn: Turn[EngineState], command: Record) -> Job | None:
    """The job that a worker reports about, if it still holds it; else rejects the command."""
    job = turn.state.jobs.jobs.get(command.key)
    held = turn.state.jobs.active.get(command.key) if job is not None else None
    if job is not None and held == command.value.lease:
        return job
    if job is None:
        _reject_missing(turn, command)
    else:
        if is_reserved(turn, command):
            return None
        lease = command.value.lease
        reason = f"Expected lease {lease} to hold job {command.key}, but it has ended"
        turn.reject(command, Code.INVALID_STATE, reason)
    return None


def reported(turn: Turn[EngineState], lease_key: int, job: Job) -> JobsReported:
    """What came of the jobs of a lease in this step, to be counted up while it is there."""
    if (known := turn.said.get(lease_key)) is not None:
        return known
    lease = turn.state.jobs.leases.get(lease_key)
    held_ms = waited_ms = -1
    if lease is not None and lease.since_ms:
        held_ms = turn.now_ms - lease.since_ms
        waited_ms = lease.since_ms - (job.waiting_ms or job.created_ms)
    first = turn.said[lease_key] = JobsReported(job.submitted.type, held_ms, waited_ms)
    turn.effect(first)
    return first


def is_reserved(turn: Turn[EngineState], command: Record) -> bool:
    """Rejects a command about a job that a transaction is about to complete."""
    by = turn.state.transactions.reserver(RESERVED_JOB, command.key)
    if by is None:
        return False
    reason = f"Job {command.key} is reserved by transaction {by}, which is not decided; try again"
    turn.reject(command, Code.UNAVAILABLE, reason, key=by)
    return True


def fail(turn: Turn[EngineState], command: Record) -> None:
    """The attempt failed: try again after a pause, or call a person."""
    job = held_job(turn, command)
    if job is not None:
        reported(turn, command.value.lease, job).failed += 1
        fail_job(turn, command.key, job, command.value)


def fail_job(turn: Turn[EngineState], key: int, job: Job, failure: Failure) -> None:
    """Records a failure, reported by a worker or found by the engine."""
    left = job.retries if failure.retries is None else failure.retries
    if failure.final or left <= 0:
        incident = turn.new_key()
        recorded = FailureRecorded(failure.error, 0, 0, incident)
        turn.event(JOB, JobIntent.FAILED, key, recorded)
        raise_incident(turn, incident, key, job, IncidentReason.NO_RETRIES_LEFT, failure.error)
        return
    pause = failure.retry_after_ms
    if pause is None:
        pause = pause_ms(job.submitted.backoff, job.failures + 1, key)
    recorded = FailureRecorded(failure.error, left - 1, turn.now_ms + max(pause, 1))
    turn.event(JOB, JobIntent.FAILED, key, recorded)


def cancel(turn: Turn[EngineState], command: Record) -> None:
    """The task is not wanted any more, whatever it is doing."""
    job = turn.state.jobs.jobs.get(command.key)
    if job is None:
        return _reject_missing(turn, command)
    if is_reserved(turn, command):
        return None
    cancel_job(turn, command.key)
    turn.answer(None, command.key)


def cancel_job(turn: Turn[EngineState], key: int) -> None:
    """Ends a job, if it has not ended, with its incident."""
    job = turn.state.jobs.jobs.get(key)
    if job is None:
        return
    if job.incident_key:
        told = turn.state.incidents.ending(job.incident_key)
        turn.event(INCIDENT, IncidentIntent.DISCARDED, job.incident_key, told)
    turn.recorded(JOB, _CANCELED, key, _ENDING_CANCELED)
    turn.state.jobs.cancel(key, job, _ENDING_CANCELED.error, turn.now_ms)
    outcome = Outcome(_STATE_CANCELED, b"null", _ENDING_CANCELED.error, turn.now_ms)
    turn.effects.append(JobEnded(key, outcome))


def _reject_missing(turn: Turn[EngineState], command: Record) -> None:
    by = turn.state.transactions.reserver(PROMISED, command.key)
    if by is not None:
        reason = f"Transaction {by} makes job {command.key}, which is not there yet; try again"
        return turn.reject(command, Code.UNAVAILABLE, reason)
    reason = f"There is no job with key {command.key}"
    return turn.reject(command, Code.NOT_FOUND, reason)


def raise_incident(
    turn: Turn[EngineState], key: int, job_key: int, job: Job, reason: IncidentReason, error: str
) -> None:
    """A person is called about a job; it waits until the incident is resolved."""
    new = job.submitted
    element_id = process_id = ""
    if new.element_key and (origin := turn.state.processes.origin(new.element_key)) is not None:
        element_id, process_id = origin.element_id, origin.process_id
    incident = Incident(
        job_key, new.type, reason, error, turn.now_ms, new.element_key, new.instance_key,
        element_id, process_id,
    )  # fmt: skip
    turn.event(INCIDENT, IncidentIntent.CREATED, key, incident)
    turn.effect(JobEnded(job_key, Outcome(JobState.INCIDENT, b"null", error, turn.now_ms)))


# --- many jobs --------------------------------------------------------------------------------


def activate(turn: Turn[EngineState], command: Record) -> None:
    """Leases waiting jobs to a worker, the most urgent of each type it asked for."""
    asked: Activation = command.value
    jobs = turn.state.jobs
    found: list[int] = []
    for type_ in asked.types:
        found += jobs.waiting.next(type_, asked.jobs_max - len(found))
        if len(found) >= asked.jobs_max:
            say_available(turn, type_)
            break
    if not found:
        return turn.reject(command, Code.NOT_FOUND, "There is no waiting job")
    groups: dict[tuple[str, int, int], list[tuple[int, Job]]] = {}
    for key, job in zip(found, jobs.jobs.get_many(found), strict=True):
        assert job is not None, "a waiting job has no row"
        new = job.submitted
        groups.setdefault((new.type, new.priority, new.timeout_ms), []).append((key, job))
    activated: list[ActivatedJob] = []
    for (type_, priority, timeout_ms), members in groups.items():
        lease_key, fixed = turn.new_key(), timeout_ms > 0
        deadline = turn.now_ms + (timeout_ms or asked.lease_ms)
        keys = tuple([key for key, _ in members])
        lease = Lease(asked.worker, deadline, type_, priority, keys, fixed, turn.now_ms)
        turn.event(JOB_BATCH, JobBatchIntent.ACTIVATED, lease_key, lease)
        wanted = asked.variables.get(type_)
        activated += [
            _activated(turn, key, job, lease_key, deadline, fixed, wanted) for key, job in members
        ]
    turn.answer(activated)


def _activated(
    turn: Turn[EngineState], key: int, job: Job, lease: int, deadline: int, fixed: bool,
    wanted: tuple[str, ...] | None,
) -> ActivatedJob:  # fmt: skip
    """The job as its worker gets it; that of an element comes with the variables it can see."""
    new, attempt = job.submitted, job.failures + job.expiries + 1
    payload, origin, headers = new.payload, None, None
    if new.element_key:
        processes = turn.state.processes
        payload, origin, headers = processes.work_of(new.element_key, new.instance_key, wanted)
    elif type(new) is HeadedJob:
        headers = new.headers
    return ActivatedJob(
        key, new.type, payload, lease, deadline, attempt, job.retries, fixed, origin, new.priority,
        headers,
    )  # fmt: skip


def extend(turn: Turn[EngineState], command: Record) -> None:
    """The worker lives: its lease runs on."""
    lease = turn.state.jobs.leases.get(command.key)
    if lease is None:
        reason = f"There is no lease with key {command.key}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    if lease.fixed:
        reason = "Expected a lease that can be extended, but its jobs have a timeout of their own"
        return turn.reject(command, Code.INVALID_STATE, reason)
    until = turn.now_ms + command.value.until_ms
    turn.event(JOB_BATCH, JobBatchIntent.EXTENDED, command.key, Extension(until))


def release(turn: Turn[EngineState], command: Record) -> None:
    """A worker gives jobs back that it has not done; that costs them nothing."""
    held = _still_held(turn, command.key, command.value.jobs)
    if not held:
        reason = f"Expected jobs held under lease {command.key}, but there are none"
        return turn.reject(command, Code.NOT_FOUND, reason)
    turn.event(JOB_BATCH, JobBatchIntent.RELEASED, command.key, JobList(held))
    _announce(turn, held)


def expire(turn: Turn[EngineState], command: Record) -> None:
    """The time of a lease is over."""
    lease = turn.state.jobs.leases.get(command.key)
    if lease is None:
        reason = f"There is no lease with key {command.key}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    held = _still_held(turn, command.key, lease.jobs)
    jobs = dict(zip(held, turn.state.jobs.jobs.get_many(list(held)), strict=True))
    known = {key: job for key, job in jobs.items() if job is not None}
    assert len(known) == len(held), "an active job has no row"
    (_time_out if lease.fixed else _hand_on)(turn, command.key, known)


def _time_out(turn: Turn[EngineState], lease: int, held: dict[int, Job]) -> None:
    """Jobs took longer than the timeout of their own: their attempts have failed."""
    for key, job in held.items():
        error = f"The attempt took longer than its timeout of {job.submitted.timeout_ms} ms"
        reported(turn, lease, job).failed += 1
        fail_job(turn, key, job, Failure(lease, error))


def _hand_on(turn: Turn[EngineState], lease: int, held: dict[int, Job]) -> None:
    """A worker did not come back: its jobs go to others, or to a person if too often."""
    stuck = {key: job for key, job in held.items() if job.expiries + 1 >= LEASE_EXPIRIES_MAX}
    incidents = {key: turn.new_key() for key in stuck}
    again = tuple(key for key in held if key not in stuck)
    value = JobList(again, tuple(incidents.items()))
    for job in held.values():
        reported(turn, lease, job).expired += 1
    turn.event(JOB_BATCH, JobBatchIntent.EXPIRED, lease, value)
    for key, job in stuck.items():
        error = f"The leases of {LEASE_EXPIRIES_MAX} workers ran out while they held this job"
        raise_incident(turn, incidents[key], key, job, IncidentReason.LEASES_EXPIRED, error)
    _announce(turn, again)


def wake(turn: Turn[EngineState], command: Record) -> None:
    """Delays and pauses are over: these jobs wait for a worker now."""
    keys = list(command.value.jobs)
    # What was due just before, in the same step, may have ended some of them.
    awake = tuple(
        key
        for key, job in zip(keys, turn.state.jobs.jobs.get_many(keys), strict=True)
        if job is not None and job.due_ms
    )
    if not awake:
        return turn.reject(command, Code.NOT_FOUND, "Expected jobs that sleep, but there are none")
    turn.event(JOB_BATCH, JobBatchIntent.WOKEN, command.key, JobList(awake))
    _announce(turn, awake)


def purge(turn: Turn[EngineState], command: Record) -> None:
    """Forgets outcomes and idempotency keys whose time is over, a bounded number at a time."""
    bucket: Purge = command.value
    turn.event(
        JOB_BATCH, JobBatchIntent.PURGED, command.key, Purge(bucket.bucket_ms, PURGE_ROWS_MAX)
    )


def _still_held(turn: Turn[EngineState], lease: int, jobs: tuple[int, ...]) -> tuple[int, ...]:
    held = turn.state.jobs.active.get_many(list(jobs))
    return tuple(key for key, by in zip(jobs, held, strict=True) if by == lease)


def _announce(turn: Turn[EngineState], jobs: tuple[int, ...]) -> None:
    for job in turn.state.jobs.jobs.get_many(list(jobs)):
        if job is not None:
            say_available(turn, job.submitted.type)
