"""The tables of the jobs room: which function does what."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.identity.values import Permission
from holdfast.engine.jobs import commands, events, needs, reports
from holdfast.engine.jobs.owner import Owner
from holdfast.engine.jobs.values import (
    JOB_BATCH_VALUES,
    JOB_VALUES,
    ActivatedJob,
    HeadedJob,
    JobBatchIntent,
    JobEnded,
    JobIntent,
    JobList,
    JobsAvailable,
    NewJob,
    Purge,
    TaskDefined,
)
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.records import ValueType

JOB_BATCH: Domain = Domain(
    value_type=ValueType.JOB_BATCH,
    intents=JobBatchIntent,
    values=JOB_BATCH_VALUES,
    commands={
        JobBatchIntent.ACTIVATE: commands.activate,
        JobBatchIntent.EXTEND: commands.extend,
        JobBatchIntent.RELEASE: commands.release,
        JobBatchIntent.EXPIRE: commands.expire,
        JobBatchIntent.WAKE: commands.wake,
        JobBatchIntent.PURGE: commands.purge,
    },
    appliers={
        JobBatchIntent.ACTIVATED: events.activated,
        JobBatchIntent.EXTENDED: events.extended,
        JobBatchIntent.RELEASED: events.released,
        JobBatchIntent.EXPIRED: events.expired,
        JobBatchIntent.WOKEN: events.woken,
        JobBatchIntent.PURGED: events.purged,
    },
    needs={
        JobBatchIntent.ACTIVATE: needs.activate,
        JobBatchIntent.EXTEND: needs.of_lease,
        JobBatchIntent.RELEASE: needs.of_lease,
    },
    answers={JobBatchIntent.ACTIVATE: list[ActivatedJob]},
    followed=(JobsAvailable,),
    due={
        DueKind.JOB: WhenDue(
            JobBatchIntent.WAKE,
            lambda rows: JobList(tuple([key for _, _, key in rows])),
            names_key=False,
            together=True,
        ),
        DueKind.LEASE: WhenDue(JobBatchIntent.EXPIRE, lambda _: JobList(), is_span=True),
        DueKind.BUCKET: WhenDue(
            JobBatchIntent.PURGE, lambda rows: Purge(rows[0][2]), names_key=False
        ),
    },
)


def job_domain(owner: Owner) -> Domain:
    """The table of jobs, which may belong to an owner."""
    return Domain(
        value_type=ValueType.JOB,
        intents=JobIntent,
        values=JOB_VALUES,
        commands={
            JobIntent.CREATE: commands.create,
            JobIntent.COMPLETE: reports.complete(owner),
            JobIntent.FAIL: commands.fail,
            JobIntent.CANCEL: reports.cancel,
            JobIntent.THROW_ERROR: reports.throw_error(owner),
            JobIntent.UPDATE_RETRIES: reports.update_retries,
            JobIntent.DEFINE_TASK: commands.define_task,
        },
        appliers={
            JobIntent.CREATED: events.created,
            JobIntent.COMPLETED: events.completed,
            JobIntent.FAILED: events.failed,
            JobIntent.CANCELED: events.canceled,
            JobIntent.RETRIED: events.retried,
            JobIntent.DISCARDED: events.discarded,
            JobIntent.ERROR_THROWN: events.error_thrown,
            JobIntent.RETRIES_UPDATED: events.retries_updated,
            JobIntent.TASK_DEFINED: events.task_defined,
        },
        needs={
            JobIntent.CREATE: needs.create,
            JobIntent.COMPLETE: needs.of_job(Permission.WORK),
            JobIntent.FAIL: needs.fail(owner),
            JobIntent.THROW_ERROR: needs.of_job(Permission.WORK),
            JobIntent.CANCEL: needs.change(owner),
            JobIntent.UPDATE_RETRIES: needs.change(owner),
            JobIntent.DEFINE_TASK: needs.define_task,
        },
        followed=(JobEnded, TaskDefined),
        variants={NewJob: HeadedJob},
    )
