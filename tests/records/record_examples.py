"""One example of every value that can be on the log, in its (value type, intent)."""

from enum import IntEnum

import msgspec
from batch_examples import BATCH_EXAMPLES
from distribution_examples import DISTRIBUTION_EXAMPLES
from identity_examples import IDENTITY_EXAMPLES
from process_examples import PROCESS_EXAMPLES
from transaction_examples import TRANSACTION_EXAMPLES

from holdfast.engine.incidents.values import (
    Incident,
    IncidentIntent,
    IncidentReason,
    JobIncident,
    Resolution,
)
from holdfast.engine.jobs.values import (
    Activation,
    Backoff,
    BackoffKind,
    Completion,
    Ending,
    Extension,
    Failure,
    FailureRecorded,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobRef,
    Lease,
    NewJob,
    Purge,
    Retry,
    TaskDefaults,
)
from holdfast.engine.requests.values import Accepted, Answered, PurgeRequests, RequestIntent
from holdfast.engine.timers.values import (
    Firing,
    Schedule,
    ScheduleCreated,
    ScheduleId,
    ScheduleIntent,
)
from holdfast.errors import Code
from holdfast.records import Rejection, ValueType

NEW_JOB = NewJob(
    type="send",
    payload=b'{"order":42}',
    priority=7,
    retries=5,
    backoff=Backoff(BackoffKind.LINEAR, 10, 1_000, 0),
    timeout_ms=30_000,
    due_ms=1_700_000_000_000,
    idempotency_key="order-42",
    window_ms=60_000,
    keep_ms=3_600_000,
)
DEFAULTS = TaskDefaults(
    "send", 7, 5, Backoff(BackoffKind.FIXED, 10, 1_000, 0), 30_000, 60_000, 3_600_000
)
SCHEDULE = Schedule("nightly", NEW_JOB, "0 3 * * *", 0, "Europe/Berlin", False)

EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.JOB, JobIntent.CREATE): NEW_JOB,
    (ValueType.JOB, JobIntent.CREATED): NEW_JOB,
    (ValueType.JOB, JobIntent.COMPLETE): Completion(7, b"42"),
    (ValueType.JOB, JobIntent.COMPLETED): Completion(7, b"42"),
    (ValueType.JOB, JobIntent.FAIL): Failure(7, "no answer", True, 500),
    (ValueType.JOB, JobIntent.FAILED): FailureRecorded("no answer", 2, 99, 8),
    (ValueType.JOB, JobIntent.CANCEL): JobRef(),
    (ValueType.JOB, JobIntent.CANCELED): Ending("canceled"),
    (ValueType.JOB, JobIntent.RETRIED): Retry(3),
    (ValueType.JOB, JobIntent.DISCARDED): Ending("no answer"),
    (ValueType.JOB, JobIntent.DEFINE_TASK): DEFAULTS,
    (ValueType.JOB, JobIntent.TASK_DEFINED): DEFAULTS,
    (ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE): Activation(("send", "load"), "w", 32, 30_000),
    (ValueType.JOB_BATCH, JobBatchIntent.ACTIVATED): Lease("w", 99, "send", 7, (1, 2, 3), True),
    (ValueType.JOB_BATCH, JobBatchIntent.EXTEND): Extension(30_000),
    (ValueType.JOB_BATCH, JobBatchIntent.EXTENDED): Extension(1_700_000_030_000),
    (ValueType.JOB_BATCH, JobBatchIntent.RELEASE): JobList((1, 2)),
    (ValueType.JOB_BATCH, JobBatchIntent.RELEASED): JobList((1, 2)),
    (ValueType.JOB_BATCH, JobBatchIntent.EXPIRE): JobList(),
    (ValueType.JOB_BATCH, JobBatchIntent.EXPIRED): JobList((1,), ((2, 9),)),
    (ValueType.JOB_BATCH, JobBatchIntent.WAKE): JobList((1, 2)),
    (ValueType.JOB_BATCH, JobBatchIntent.WOKEN): JobList((1, 2)),
    (ValueType.JOB_BATCH, JobBatchIntent.PURGE): Purge(1_700_000_000_000),
    (ValueType.JOB_BATCH, JobBatchIntent.PURGED): Purge(1_700_000_000_000, 1_000),
    (ValueType.INCIDENT, IncidentIntent.CREATED): Incident(
        1, "send", IncidentReason.NO_RETRIES_LEFT, "no answer", 99
    ),
    (ValueType.INCIDENT, IncidentIntent.RESOLVE): Resolution(2),
    (ValueType.INCIDENT, IncidentIntent.RESOLVED): JobIncident(1),
    (ValueType.INCIDENT, IncidentIntent.DISCARD): JobIncident(),
    (ValueType.INCIDENT, IncidentIntent.DISCARDED): JobIncident(1),
    (ValueType.INCIDENT, IncidentIntent.MIGRATED): Incident(
        1, "send", IncidentReason.NO_RETRIES_LEFT, "no answer", 99, 4, 3, "pack", "order"
    ),
    (ValueType.SCHEDULE, ScheduleIntent.CREATE): SCHEDULE,
    (ValueType.SCHEDULE, ScheduleIntent.CREATED): ScheduleCreated(SCHEDULE, 99),
    (ValueType.SCHEDULE, ScheduleIntent.FIRE): Firing(99),
    (ValueType.SCHEDULE, ScheduleIntent.FIRED): Firing(99, 199),
    (ValueType.SCHEDULE, ScheduleIntent.SKIPPED): Firing(99, 199),
    (ValueType.SCHEDULE, ScheduleIntent.DELETE): ScheduleId("nightly"),
    (ValueType.SCHEDULE, ScheduleIntent.DELETED): ScheduleId("nightly"),
    **PROCESS_EXAMPLES,
    **DISTRIBUTION_EXAMPLES,
    **BATCH_EXAMPLES,
    **IDENTITY_EXAMPLES,
    **TRANSACTION_EXAMPLES,
    (ValueType.REQUEST, RequestIntent.ACCEPTED): Accepted("r-1", 17),
    (ValueType.REQUEST, RequestIntent.ANSWERED): Answered(
        "r-1", 1, 0, 77, b"\x91\x05", Rejection(Code.NOT_FOUND, "no"), 0, 17
    ),
    (ValueType.REQUEST, RequestIntent.PURGE): PurgeRequests(),
    (ValueType.REQUEST, RequestIntent.PURGED): PurgeRequests(5),
}
