"""The shapes of tasks, jobs, incidents and schedules."""

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.engine.incidents.values import IncidentReason, IncidentState
from holdfast.engine.jobs.values import BackoffKind, JobState
from holdfast.engine.timers.values import CatchUp
from holdfast.gateway.numbers import (
    IntervalMs,
    JobsMax,
    LeaseMs,
    Limit,
    OperationReference,
    PauseMs,
    Percent,
    Priority,
    Retries,
    SpanMs,
    WaitMs,
)
from holdfast.gateway.shapes import ListScope, Question, Shape, no_variables

_NULL = msgspec.Raw(b"null")


def _null() -> msgspec.Raw:
    """JSON's null as a default; by a factory, because JSON Schema cannot be made from a Raw."""
    return _NULL


class RetryBackoff(Question, frozen=True):
    """The delay before a retry."""

    kind: BackoffKind = BackoffKind.EXPONENTIAL
    base_ms: PauseMs = 1_000
    cap_ms: PauseMs = 3_600_000
    jitter_percent: Percent = 20


class NewTask(Question, frozen=True):
    """A task to submit."""

    type: str  # the name of the task, by which workers lease it
    payload: msgspec.Raw = msgspec.field(default_factory=_null)  # any JSON
    key: str | None = None  # idempotency key: the same key within its window names the same task
    # None of the next four: as the task's worker says, else 0, 3, RetryBackoff() and 0
    priority: Priority | None = None  # higher goes first
    retries: Retries | None = None
    backoff: RetryBackoff | None = None
    timeout_ms: SpanMs | None = None  # of an attempt; 0: none, the worker renews its lease
    delay_ms: SpanMs = 0
    due: datetime | None = None  # a point in time, instead of a delay
    window_ms: PauseMs | None = (
        None  # how long the idempotency key is remembered; None: the node's setting
    )
    keep_ms: SpanMs | None = None  # how long the outcome is kept; None: the node's setting
    # for its worker, such as W3C's traceparent
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class NewTasks(Question, frozen=True):
    """Tasks to submit together."""

    tasks: list[NewTask]


class TaskReceipt(Shape, frozen=True):
    """The task is durable."""

    task_key: str
    created: bool  # False: a task with this idempotency key existed already


class TaskReceipts(Shape, frozen=True):
    """One receipt for each task, in the order of the request."""

    tasks: list[TaskReceipt]


class TaskView(Shape, frozen=True):
    """A task."""

    task_key: str
    type: str
    state: JobState
    payload: msgspec.Raw | UnsetType = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    error: str | None = None
    priority: int | None = None
    retries: int | None = None
    failures: int | None = None
    created: datetime | None = None
    due: datetime | None = None
    finished: datetime | None = None
    worker: str | None = None
    incident_key: str | None = None


class TaskQuery(Question, frozen=True):
    """Which tasks to list."""

    type: str | None = None
    state: JobState | None = None  # one that only ended tasks have lists those
    limit: Limit = 100
    after: str | None = None  # from the previous page
    scope: ListScope = ListScope.OPEN


class TaskPage(Shape, frozen=True):
    """Tasks that have not ended, in the order of their keys; then ended ones, the last first."""

    items: list[TaskView]
    after: str | None = None  # the cursor of the next page; None: this is the last page
    # all tasks that ended since then are listed; None: no limit, or ended ones were not requested
    ended_since: datetime | None = None


class ResultQuery(Question, frozen=True):
    """Wait for tasks to end."""

    task_keys: list[str]
    wait_ms: WaitMs = 0

    def at_once(self) -> "ResultQuery":
        return msgspec.structs.replace(self, wait_ms=0)


class TaskOutcome(Shape, frozen=True):
    """The state of a task, and its result or error."""

    task_key: str
    state: JobState | None  # None: unknown, or no longer kept
    result: msgspec.Raw | UnsetType = UNSET
    error: str | None = None


class TaskOutcomes(Shape, frozen=True):
    """One outcome for each task, in the order of the request."""

    tasks: list[TaskOutcome]


class TaskOptions(Question, frozen=True):
    """Default options of a task type, for submissions without their own."""

    priority: Priority = 0
    retries: Retries = 3
    backoff: RetryBackoff = RetryBackoff()
    timeout_ms: SpanMs = 0
    window_ms: PauseMs | None = None
    keep_ms: SpanMs | None = None


class ActivationRequest(Question, frozen=True):
    """A request of a worker for jobs."""

    types: list[str]
    worker: str = "worker"
    jobs_max: JobsMax = 32
    lease_ms: LeaseMs = 30_000  # for jobs without a timeout
    wait_ms: WaitMs = 0  # how long to wait if there is none
    # the variables of a process that the worker needs, by type; all for other types
    variables: dict[str, list[str]] = msgspec.field(default_factory=dict)
    # the options of its tasks, by type; the node stores them, so one request is enough
    options: dict[str, TaskOptions] = msgspec.field(default_factory=dict)

    def at_once(self) -> "ActivationRequest":
        return msgspec.structs.replace(self, wait_ms=0)


class JobOrigin(Shape, frozen=True):
    """The element of a process that a job is done for."""

    process_id: str
    version: int
    process_instance_key: str
    element_id: str
    element_instance_key: str
    headers: dict[str, str]
    process_definition_key: str = ""
    root_process_instance_key: str = ""  # of the instance that no other called


class ActivatedJob(Shape, frozen=True, omit_defaults=True):
    """A job that is leased to the worker until its deadline."""

    job_key: str
    type: str
    payload: msgspec.Raw
    lease: str
    lease_ms: int  # how long the lease lasts from now
    attempt: int
    retries: int
    extendable: bool  # False: the lease is the timeout of the job
    origin: JobOrigin | None = None  # None: it is a task
    priority: int = 0
    # those that the task was submitted with, or the process started with; None: there are none
    headers: dict[str, str] | None = None


class ActivatedJobs(Shape, frozen=True):
    """The jobs that a worker got; empty if none came in time."""

    jobs: list[ActivatedJob]


class JobCompletion(Question, frozen=True):
    """A completed job."""

    job_key: str
    lease: str
    result: msgspec.Raw = msgspec.field(default_factory=_null)


class JobCompletions(Question, frozen=True):
    """Completed jobs."""

    jobs: list[JobCompletion]


class JobFailure(Question, frozen=True):
    """An attempt failed."""

    job_key: str
    lease: str
    error: str
    final: bool = False  # no retry: the job gets an incident at once
    retry_after_ms: SpanMs | None = None  # until the next attempt, instead of the back-off
    retries: Retries | None = None  # retries left, instead of one fewer than before


class JobFailures(Question, frozen=True):
    """Failed attempts to store a snapshot."""

    jobs: list[JobFailure]


class JobError(Question, frozen=True):
    """The job ended in a BPMN error that its process may catch."""

    job_key: str
    lease: str
    code: str
    message: str = ""
    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)


class JobErrors(Question, frozen=True):
    """Errors for processes."""

    jobs: list[JobError]


class HeldJob(Question, frozen=True):
    """A leased job that the worker releases."""

    job_key: str
    lease: str


class HeldJobs(Question, frozen=True):
    """Jobs that the worker releases."""

    jobs: list[HeldJob]


class LeaseExtension(Question, frozen=True):
    """Leases that are to run on."""

    leases: list[str]
    lease_ms: LeaseMs = 30_000


class JobRetries(Question, frozen=True):
    """How many failures a job may have from now on."""

    retries: Retries


class Answer(Shape, frozen=True):
    """The outcome of one item of a batch request; without a code it succeeded."""

    key: str
    code: str | None = None
    message: str | None = None


class Answers(Shape, frozen=True):
    """One answer for each item, in the order of the items."""

    answers: list[Answer]


class IncidentView(Shape, frozen=True):
    """An incident: of a task, of an element's job, or of an element itself."""

    incident_key: str
    task_key: str | None  # of a task or a job
    type: str
    reason: IncidentReason
    error: str
    created: datetime
    process_instance_key: str | None = None
    process_id: str | None = None
    element_id: str | None = None
    element_instance_key: str | None = None
    state: IncidentState = IncidentState.OPEN
    ended: datetime | None = None  # when it was resolved or discarded


class IncidentQuery(Question, frozen=True):
    """Which incidents to list."""

    type: str | None = None
    limit: Limit = 100
    after: str | None = None
    process_id: str | None = None
    process_instance_key: str | None = None
    scope: ListScope = ListScope.OPEN
    state: IncidentState | None = None  # one that only ended incidents have lists those
    # of open incidents alone, as a group of incidents has them
    element_id: str | None = None
    reason: IncidentReason | None = None
    cause: str | None = None


class IncidentPage(Shape, frozen=True):
    """Open incidents in the order of their keys; then ended ones, the last first."""

    items: list[IncidentView]
    after: str | None = None
    # everything that ended since then is listed; None: no limit, or ended ones were not requested
    ended_since: datetime | None = None


class IncidentResolution(Question, frozen=True):
    """Retries the job or element of an incident."""

    # further retries after the next attempt; None: those that the job was given meanwhile
    retries: Retries | None = None
    operation_reference: OperationReference | None = (
        None  # a number of the caller; it is not stored
    )


class NewSchedule(Question, frozen=True):
    """A schedule to create: it submits a task at each due time."""

    task: NewTask
    cron: str | None = None
    interval_ms: IntervalMs | None = None
    timezone: str = "UTC"
    # missed due times that fire: "all", "one" (the latest) or "none"; true means all, false one
    catch_up: CatchUp | bool = CatchUp.ONE


class ScheduleView(Shape, frozen=True):
    """A schedule and when it fires next."""

    schedule_id: str
    type: str
    cron: str | None
    interval_ms: int | None
    timezone: str
    catch_up: CatchUp
    next_due: datetime | None
    fired: int
    error: str | None = None  # why its next due time is unknown


class Schedules(Shape, frozen=True):
    """All schedules, in the order of their ids."""

    items: list[ScheduleView]
