"""The endpoints of the API, as thin as can be: a shape in, one call of the Api, a shape out.

Those of the Orchestration Cluster REST API are in the room beside this one; here are those that it
has no word for. A `listing` shows what the node itself knows now; a `search` asks the tables.
"""

from holdfast.errors import Unavailable
from holdfast.gateway.api import Api
from holdfast.gateway.http.batch_endpoints import BATCH_ENDPOINTS
from holdfast.gateway.http.distribution_endpoints import DISTRIBUTION_ENDPOINTS
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.http.identity_endpoints import IDENTITY_ENDPOINTS
from holdfast.gateway.http.journal_endpoints import JOURNAL_ENDPOINTS
from holdfast.gateway.http.process_endpoints import PROCESS_ENDPOINTS
from holdfast.gateway.node_shapes import Health
from holdfast.gateway.rest.endpoints import REST_ENDPOINTS
from holdfast.gateway.tasks.shapes import (
    ActivatedJobs,
    ActivationRequest,
    Answers,
    HeldJob,
    HeldJobs,
    IncidentPage,
    IncidentQuery,
    JobCompletions,
    JobFailures,
    LeaseExtension,
    NewSchedule,
    NewTask,
    NewTasks,
    ResultQuery,
    Schedules,
    ScheduleView,
    TaskOutcomes,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskReceipts,
    TaskView,
)
from holdfast.metrics import CONTENT_TYPE


@endpoint("POST", "/v2/tasks")
async def submit_task(api: Api, body: NewTask) -> TaskReceipt:
    """Submit a task."""
    [receipt] = await api.submit([body])
    return receipt


@endpoint("POST", "/v2/tasks/batch")
async def submit_tasks(api: Api, body: NewTasks) -> TaskReceipts:
    """Submit many tasks at once."""
    return TaskReceipts(await api.submit(body.tasks))


@endpoint("GET", "/v2/tasks/{task_key}")
async def get_task(api: Api, task_key: str) -> TaskView:
    """Show what is known of a task."""
    return await api.task(task_key)


@endpoint("POST", "/v2/tasks/search")
async def search_tasks(api: Api, body: TaskQuery) -> TaskPage:
    """List tasks that have not ended."""
    return await api.tasks(body)


@endpoint("POST", "/v2/tasks/results", waits=True)
async def get_results(api: Api, body: ResultQuery) -> TaskOutcomes:
    """Wait for tasks to end."""
    return TaskOutcomes(await api.results(body.task_keys, body.wait_ms))


@endpoint("POST", "/v2/tasks/{task_key}/cancellation")
async def cancel_task(api: Api, task_key: str) -> None:
    """Cancel a task."""
    await api.cancel(task_key)


async def _give_back(api: Api, activated: ActivatedJobs) -> None:
    if activated.jobs:
        await api.release([HeldJob(job.job_key, job.lease) for job in activated.jobs])


@endpoint("POST", "/v2/jobs/leases", waits=True, undo=_give_back)
async def lease_jobs(api: Api, body: ActivationRequest) -> ActivatedJobs:
    """Lease waiting jobs to a worker."""
    return ActivatedJobs(await api.activate(body))


@endpoint("POST", "/v2/jobs/completion")
async def complete_jobs(api: Api, body: JobCompletions) -> Answers:
    """Report jobs as done."""
    return Answers(await api.complete(body.jobs))


@endpoint("POST", "/v2/jobs/failure")
async def fail_jobs(api: Api, body: JobFailures) -> Answers:
    """Report attempts that failed."""
    return Answers(await api.fail(body.jobs))


@endpoint("POST", "/v2/jobs/release")
async def release_jobs(api: Api, body: HeldJobs) -> Answers:
    """Give leased jobs back untouched."""
    return Answers(await api.release(body.jobs))


@endpoint("POST", "/v2/jobs/lease-extension")
async def extend_leases(api: Api, body: LeaseExtension) -> Answers:
    """Hold leased jobs for longer."""
    return Answers(await api.extend(body.leases, body.lease_ms))


@endpoint("POST", "/v2/incidents/listing")
async def list_incidents(api: Api, body: IncidentQuery) -> IncidentPage:
    """List open incidents."""
    return await api.incidents(body)


@endpoint("POST", "/v2/incidents/{incident_key}/discard")
async def discard_incident(api: Api, incident_key: str) -> None:
    """Give up the task of an incident."""
    await api.discard_incident(incident_key)


@endpoint("PUT", "/v2/schedules/{schedule_id}")
async def put_schedule(api: Api, schedule_id: str, body: NewSchedule) -> ScheduleView:
    """Create or replace a schedule."""
    return await api.put_schedule(schedule_id, body)


@endpoint("DELETE", "/v2/schedules/{schedule_id}")
async def delete_schedule(api: Api, schedule_id: str) -> None:
    """Delete a schedule."""
    await api.delete_schedule(schedule_id)


@endpoint("GET", "/v2/schedules")
async def list_schedules(api: Api) -> Schedules:
    """List all schedules."""
    return Schedules(await api.schedules())


@endpoint("GET", "/v2/health")
async def get_health(api: Api) -> Health:
    """Tell how the node is; costs it nothing. While it cannot work it is 503."""
    health = await api.health()
    if health.status not in _WORKING:
        raise Unavailable(f"The node is {health.status}: {'; '.join(health.damage)}")
    return health


_WORKING = frozenset({"UP", "CHECKING", "DEGRADED"})


@endpoint("GET", "/metrics", media_type=CONTENT_TYPE)
async def get_metrics(api: Api) -> bytes:
    """Give the node's numbers to Prometheus."""
    return await api.metrics()


ENDPOINTS: tuple[Endpoint, ...] = (
    submit_task, submit_tasks, get_task, search_tasks, get_results, cancel_task,
    lease_jobs, complete_jobs, fail_jobs, release_jobs, extend_leases,
    list_incidents, discard_incident,
    put_schedule, delete_schedule, list_schedules,
    *PROCESS_ENDPOINTS,
    *DISTRIBUTION_ENDPOINTS,
    *BATCH_ENDPOINTS,
    *IDENTITY_ENDPOINTS,
    *JOURNAL_ENDPOINTS,
    *REST_ENDPOINTS,
    get_health, get_metrics,
)  # fmt: skip
