"""The words of jobs: what the records of a job and of many jobs at once say."""

from enum import IntEnum, StrEnum

import msgspec

from holdfast.records import Value, partition_of


class JobState(StrEnum):
    """The state of a job. The last four are final, except for an uncaught error."""

    WAITING = "WAITING"  # a worker may lease it now
    SCHEDULED = "SCHEDULED"  # not due yet: a delay, or the back-off before a retry
    ACTIVE = "ACTIVE"  # leased to a worker
    INCIDENT = "INCIDENT"  # it has an incident
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    DISCARDED = "DISCARDED"
    ERROR_THROWN = "ERROR_THROWN"  # the work ended in a BPMN error


FINAL_STATES = frozenset(
    {JobState.COMPLETED, JobState.CANCELED, JobState.DISCARDED, JobState.ERROR_THROWN}
)


class JobIntent(IntEnum):
    """Commands and events of a job. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    COMPLETE = 2
    COMPLETED = 3
    FAIL = 4
    FAILED = 5
    CANCEL = 6
    CANCELED = 7
    RETRIED = 8  # its incident was resolved: it has retries again
    DISCARDED = 9  # its incident was discarded
    THROW_ERROR = 10
    ERROR_THROWN = 11  # its work ended in a BPMN error
    UPDATE_RETRIES = 12
    RETRIES_UPDATED = 13
    DEFINE_TASK = 14  # of a type of tasks, not of a job
    TASK_DEFINED = 15


class JobBatchIntent(IntEnum):
    """Commands and events of many jobs at once. The numbers are on disk."""

    ACTIVATE = 0
    ACTIVATED = 1
    EXTEND = 2
    EXTENDED = 3
    RELEASE = 4
    RELEASED = 5
    EXPIRE = 6
    EXPIRED = 7
    WAKE = 8
    WOKEN = 9
    PURGE = 10
    PURGED = 11


TRANSITIONS: dict[tuple[JobState | None, str], JobState] = {
    (None, "CREATED"): JobState.WAITING,
    (None, "CREATED (with a delay)"): JobState.SCHEDULED,
    (JobState.SCHEDULED, "WOKEN"): JobState.WAITING,
    (JobState.WAITING, "ACTIVATED"): JobState.ACTIVE,
    (JobState.ACTIVE, "COMPLETED"): JobState.COMPLETED,
    (JobState.ACTIVE, "RELEASED"): JobState.WAITING,
    (JobState.ACTIVE, "EXPIRED"): JobState.WAITING,
    (JobState.ACTIVE, "EXPIRED (too often)"): JobState.INCIDENT,
    (JobState.ACTIVE, "FAILED"): JobState.SCHEDULED,
    (JobState.ACTIVE, "FAILED (no retries left)"): JobState.INCIDENT,
    (JobState.INCIDENT, "RETRIED"): JobState.WAITING,
    (JobState.INCIDENT, "DISCARDED"): JobState.DISCARDED,
    (JobState.WAITING, "CANCELED"): JobState.CANCELED,
    (JobState.SCHEDULED, "CANCELED"): JobState.CANCELED,
    (JobState.ACTIVE, "CANCELED"): JobState.CANCELED,
    (JobState.INCIDENT, "CANCELED"): JobState.CANCELED,
}
"""The life of a task as a table; the docs are drawn from it and the model test walks it."""


class BackoffKind(StrEnum):
    """How the delay before a retry grows."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class Backoff(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The delay before a retry."""

    kind: BackoffKind = BackoffKind.EXPONENTIAL
    base_ms: int = 1_000
    cap_ms: int = 3_600_000
    jitter_percent: int = (
        20  # spreads retries that failed together by up to this share of the pause
    )


class NewJob(Value, frozen=True, tag=1):
    """A job as it was submitted: the value of CREATE and CREATED."""

    type: str  # the name of the task, by which workers lease it
    payload: bytes  # JSON
    priority: int = 0  # higher goes first
    retries: int = 3  # retries after the first failure
    backoff: Backoff = Backoff()
    timeout_ms: int = 0  # the timeout of an attempt; 0: none, the worker renews its lease
    due_ms: int = 0  # not before; 0: at once
    idempotency_key: str = ""
    window_ms: int = 0  # how long the idempotency key is remembered
    keep_ms: int = 0  # how long the outcome is kept
    element_key: int = 0  # the element of a process that waits for it; 0: it is a task
    instance_key: int = 0  # ... and the process instance


class HeadedJob(NewJob, frozen=True, tag=10):
    """A job with headers, instead of a `NewJob`."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Job(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job in the state: what was submitted and what has happened since."""

    submitted: NewJob | HeadedJob
    retries: int
    due_ms: int = 0  # when it wakes up, while it is scheduled
    incident_key: int = 0
    failures: int = 0
    expiries: int = 0  # leases that ran out since it last failed or was created
    created_ms: int = 0
    error: str = ""
    error_code: str = ""  # it threw an error that nobody caught; its incident is open
    waiting_ms: int = 0  # since when it waits for a worker; 0: since it was created


class JobRef(Value, frozen=True, tag=2):
    """Only the job itself: the value of CANCEL."""


class Completion(Value, frozen=True, tag=3):
    """The job was completed. `lease` proves that the worker still holds it."""

    lease: int
    result: bytes = b"null"  # JSON


class Failure(Value, frozen=True, tag=4):
    """The attempt failed: the value of FAIL."""

    lease: int
    error: str
    final: bool = False  # no retry: the worker knows that it would not help
    retry_after_ms: int | None = None  # a delay set by the worker, instead of the back-off
    retries: int | None = None  # retries left, set by the worker


class FailureRecorded(Value, frozen=True, tag=5):
    """What the failure led to: the value of FAILED."""

    error: str
    retries: int
    due_ms: int  # the time of the next attempt; 0 with an incident
    incident_key: int = 0


class Ending(Value, frozen=True, tag=6):
    """The end of a job without a result: the value of CANCELED and DISCARDED."""

    error: str = ""


class Retry(Value, frozen=True, tag=7):
    """The job is retried."""

    retries: int


class ThrowError(Value, frozen=True, tag=8):
    """The work ended in an error that the process knows: THROW_ERROR and ERROR_THROWN."""

    lease: int
    code: str
    message: str = ""
    variables: bytes = b"{}"  # JSON
    incident_key: int = 0  # with ERROR_THROWN: set if the error is not caught; 0: the job has ended


class TaskDefaults(Value, frozen=True, tag=9):
    """Default options of a task type: DEFINE_TASK and TASK_DEFINED."""

    type: str
    priority: int = 0
    retries: int = 3
    backoff: Backoff = Backoff()
    timeout_ms: int = 0
    window_ms: int | None = None  # None: the node's setting
    keep_ms: int | None = None  # None: the node's setting


class Activation(Value, frozen=True, tag=16):
    """A worker's request for jobs: the value of ACTIVATE."""

    types: tuple[str, ...]
    worker: str
    jobs_max: int
    lease_ms: int
    # the variables of a process that the worker needs, by type; all for other types
    variables: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Lease(Value, frozen=True, tag=17):
    """Jobs that a worker holds until a deadline: the value of ACTIVATED. Its key is the lease's."""

    worker: str
    deadline_ms: int
    # all jobs of a lease are of one type and priority: their rows are found without reading them
    type: str
    priority: int
    jobs: tuple[int, ...]
    fixed: bool = False  # the deadline is the timeout of the jobs and cannot be extended
    since_ms: int = 0  # when it started; 0: written by an earlier version


class Extension(Value, frozen=True, tag=18):
    """A worker extends its lease: EXTEND with a span, EXTENDED with a deadline."""

    until_ms: int


class JobList(Value, frozen=True, tag=19):
    """Jobs that something happened to together: RELEASE(D), EXPIRE(D), WAKE, WOKEN."""

    jobs: tuple[int, ...] = ()
    incidents: tuple[tuple[int, int], ...] = ()  # (job, incident) of those that expired too often


class Purge(Value, frozen=True, tag=20):
    """Expired outcomes and idempotency keys, `rows` of them at a time."""

    bucket_ms: int
    rows: int = 0


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a job ended, kept for as long as it asked for."""

    state: JobState
    result: bytes
    error: str
    finished_ms: int
    type: str = ""
    definition: int = 0  # of a process instance: the version that it followed
    created_ms: int = 0  # ... and when it began
    is_job: bool = False  # with neither: an earlier release did not say what it is of


class JobOrigin(msgspec.Struct, frozen=True, gc=False):
    """The element that a job is done for."""

    process_id: str
    version: int
    instance_key: int
    element_id: str
    element_key: int
    headers: dict[str, str]
    definition_key: int
    root_key: int  # the instance at the root of its tree of calls; its own if nobody called it


class ActivatedJob(msgspec.Struct, frozen=True, gc=False):
    """A job as a worker gets it: the answer to ACTIVATE, never on the log."""

    key: int
    type: str
    payload: bytes
    lease: int
    deadline_ms: int
    attempt: int
    retries: int
    fixed: bool
    origin: JobOrigin | None = None
    priority: int = 0
    headers: dict[str, str] | None = None  # of the task, or of the process instance


JOB_VALUES: dict[JobIntent, type[msgspec.Struct]] = {
    JobIntent.CREATE: NewJob,
    JobIntent.CREATED: NewJob,
    JobIntent.COMPLETE: Completion,
    JobIntent.COMPLETED: Completion,
    JobIntent.FAIL: Failure,
    JobIntent.FAILED: FailureRecorded,
    JobIntent.CANCEL: JobRef,
    JobIntent.CANCELED: Ending,
    JobIntent.RETRIED: Retry,
    JobIntent.DISCARDED: Ending,
    JobIntent.THROW_ERROR: ThrowError,
    JobIntent.ERROR_THROWN: ThrowError,
    JobIntent.UPDATE_RETRIES: Retry,
    JobIntent.RETRIES_UPDATED: Retry,
    JobIntent.DEFINE_TASK: TaskDefaults,
    JobIntent.TASK_DEFINED: TaskDefaults,
}

JOB_BATCH_VALUES: dict[JobBatchIntent, type[msgspec.Struct]] = {
    JobBatchIntent.ACTIVATE: Activation,
    JobBatchIntent.ACTIVATED: Lease,
    JobBatchIntent.EXTEND: Extension,
    JobBatchIntent.EXTENDED: Extension,
    JobBatchIntent.RELEASE: JobList,
    JobBatchIntent.RELEASED: JobList,
    JobBatchIntent.EXPIRE: JobList,
    JobBatchIntent.EXPIRED: JobList,
    JobBatchIntent.WAKE: JobList,
    JobBatchIntent.WOKEN: JobList,
    JobBatchIntent.PURGE: Purge,
    JobBatchIntent.PURGED: Purge,
}


# --- effects: what leaves the partition once a step is durable -----------------------------------


class JobsAvailable(msgspec.Struct, frozen=True, gc=False):
    """There is work of this type on this partition."""

    partition: int
    type: str

    @property
    def about(self) -> str:
        return self.type


class TaskDefined(msgspec.Struct, frozen=True, gc=False):
    """A worker said something new about a type of tasks."""

    partition: int
    type: str

    @property
    def about(self) -> str:
        return self.type


class JobsReported(msgspec.Struct, gc=False):
    """What came of jobs of one lease in one step; counted up while the step goes on."""

    type: str
    held_ms: int  # for how long their worker had them; -1: not known
    waited_ms: int  # for how long the first of them had waited for a worker; -1: not known
    completed: int = 0
    failed: int = 0
    expired: int = 0  # nothing came: the lease ran out


class JobEnded(msgspec.Struct, frozen=True, gc=False):
    """A job came to its end, or to an incident; clients that wait for its result are told."""

    key: int
    outcome: Outcome

    @property
    def about(self) -> int:
        return self.key

    @property
    def partition(self) -> int:
        return partition_of(self.key)
