"""What can be asked of a node about tasks, jobs, incidents and schedules."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import READ_JOB, UPDATE_JOB, WORK, one
from holdfast.gateway.operation import Namespace, operation
from holdfast.gateway.tasks.causes import IncidentGroupQuery, IncidentGroups
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivatedJobs,
    ActivationRequest,
    Answer,
    Answers,
    HeldJob,
    HeldJobs,
    IncidentPage,
    IncidentQuery,
    IncidentResolution,
    IncidentView,
    JobCompletion,
    JobCompletions,
    JobError,
    JobErrors,
    JobFailure,
    JobFailures,
    JobRetries,
    LeaseExtension,
    NewSchedule,
    NewTask,
    NewTasks,
    ResultQuery,
    Schedules,
    ScheduleView,
    TaskOutcome,
    TaskOutcomes,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskReceipts,
    TaskView,
)

_R, _P = ResourceType, Permission


class TaskApi(Namespace, Protocol):
    """Tasks: submit them, look at them, wait for their results."""

    @operation(
        "submit_tasks", "POST", "/v2/tasks/batch", one(_R.TASK, _P.CREATE),
        body=NewTasks, answer=TaskReceipts,
    )  # fmt: skip
    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        """Submit many tasks at once.

        Durable when it returns. Tasks without a key are appended together, all or none.
        """
        ...

    @operation("get_task", "GET", "/v2/tasks/{task_key}", READ_JOB)
    async def get(self, task_key: str) -> TaskView:
        """Show a task."""
        ...

    @operation("get_task_details", "GET", "/v2/tasks/{task_key}/details", READ_JOB)
    async def details(self, task_key: str) -> TaskView:
        """Show a task, including one that ended recently.

        A task that ended recently comes with its payload, though nothing else is kept of it.
        """
        ...

    @operation("search_tasks", "POST", "/v2/tasks/search", READ_JOB)
    async def page(self, query: TaskQuery) -> TaskPage:
        """List tasks that have not ended, or that ended recently."""
        ...

    @operation(
        "get_results", "POST", "/v2/tasks/results", READ_JOB,
        body=ResultQuery, answer=TaskOutcomes, waits=True,
    )  # fmt: skip
    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        """Wait for tasks to end.

        Those that have not in time come with the state they are in.
        """
        ...

    @operation("cancel_task", "POST", "/v2/tasks/{task_key}/cancellation", one(_R.TASK, _P.UPDATE))
    async def cancel(self, task_key: str) -> None:
        """Cancel a task."""


async def _give_back(jobs: "JobApi", activated: list[ActivatedJob]) -> None:
    if activated:
        await jobs.release([HeldJob(each.job_key, each.lease) for each in activated])


class JobApi(Namespace, Protocol):
    """Jobs: what workers ask for and report."""

    @operation(
        "lease_jobs", "POST", "/v2/jobs/leases", WORK,
        answer=ActivatedJobs, waits=True, undo=_give_back,
    )  # fmt: skip
    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        """Lease waiting jobs to a worker.

        Waits for some if there is none.
        """
        ...

    @operation(
        "complete_jobs", "POST", "/v2/jobs/completion", WORK, body=JobCompletions, answer=Answers
    )
    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]:
        """Complete jobs."""
        ...

    @operation("fail_jobs", "POST", "/v2/jobs/failure", WORK, body=JobFailures, answer=Answers)
    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]:
        """Report attempts that failed."""
        ...

    @operation("throw_errors", "POST", "/v2/jobs/error", WORK, body=JobErrors, answer=Answers)
    async def throw(self, jobs: Sequence[JobError]) -> list[Answer]:
        """Report BPMN errors of jobs."""
        ...

    @operation("release_jobs", "POST", "/v2/jobs/release", WORK, body=HeldJobs, answer=Answers)
    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]:
        """Release leased jobs."""
        ...

    @operation(
        "extend_leases", "POST", "/v2/jobs/lease-extension", WORK,
        body=LeaseExtension, answer=Answers,
    )  # fmt: skip
    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]:
        """Extend the leases of jobs."""
        ...

    @operation(
        "update_job_retries", "POST", "/v2/jobs/{job_key}/retries", UPDATE_JOB, body=JobRetries
    )
    async def update_retries(self, job_key: str, retries: int) -> None:
        """Set the retries of a job."""


class IncidentApi(Namespace, Protocol):
    """Incidents: what waits for a person."""

    @operation("list_incidents", "POST", "/v2/incidents/listing", READ_JOB)
    async def page(self, query: IncidentQuery) -> IncidentPage:
        """List open incidents, or those that ended recently."""
        ...

    @operation("group_incidents", "POST", "/v2/incidents/groups", READ_JOB)
    async def groups(self, query: IncidentGroupQuery) -> IncidentGroups:
        """Group open incidents by their cause.

        Incidents have the same cause if they stop the same element, or jobs of the same type, for
        the same reason, and if their errors differ in numbers only. A bounded number is looked at.
        """
        ...

    @operation("get_incident_details", "GET", "/v2/incidents/{incident_key}/details", READ_JOB)
    async def get(self, incident_key: str) -> IncidentView:
        """Show an incident that is open or ended recently."""
        ...

    @operation(
        "resolve_incident", "POST", "/v2/incidents/{incident_key}/resolution", UPDATE_JOB,
        body=IncidentResolution,
    )  # fmt: skip
    async def resolve(self, incident_key: str, retries: int) -> None:
        """Retries the job or element of an incident."""

    @operation("discard_incident", "POST", "/v2/incidents/{incident_key}/discard", UPDATE_JOB)
    async def discard(self, incident_key: str) -> None:
        """Discard the task of an incident."""


class ScheduleApi(Namespace, Protocol):
    """Schedules: rules that submit tasks."""

    @operation("put_schedule", "PUT", "/v2/schedules/{schedule_id}", one(_R.SCHEDULE, _P.UPDATE))
    async def put(self, schedule_id: str, new: NewSchedule) -> ScheduleView:
        """Create or replace a schedule."""
        ...

    @operation(
        "delete_schedule", "DELETE", "/v2/schedules/{schedule_id}", one(_R.SCHEDULE, _P.DELETE)
    )
    async def delete(self, schedule_id: str) -> None:
        """Delete a schedule."""

    @operation(
        "list_schedules", "GET", "/v2/schedules", one(_R.SCHEDULE, _P.READ), answer=Schedules
    )
    async def all(self) -> list[ScheduleView]:
        """List all schedules."""
        ...
