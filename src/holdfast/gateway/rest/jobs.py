"""Jobs: activate by long poll, report by key or by lease, change.

A worker of this API names a job by its key alone, or adds the token of its lease if it activated
with one. Without it the report counts for the lease that holds the job now; a job that is held by
nobody takes no report. Either way the command carries a lease, so a job is never done twice.

`retries` counts attempts that are left in this API; the engine counts failures beyond the next.
"""

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import UPDATE_JOB, WORK
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.numbers import (
    Attempts,
    JobsMax,
    LeaseMs,
    OperationReference,
    Priority,
    RequestTimeoutMs,
    Retries,
    SpanMs,
)
from holdfast.gateway.rest.common import (
    NO_KEY,
    TENANT,
    RestApi,
    check_tenant,
    object_of,
    raise_refusal,
    refuse_given,
)
from holdfast.gateway.shapes import Question, Shape, no_variables
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    HeldJob,
    JobCompletion,
    JobError,
    JobFailure,
)
from holdfast.limits import WAIT_MS_MAX

WAIT_MS = 10_000  # of a long poll that does not say how long
TASK = "task"  # the process and the element of a job that has none

# --- activation -------------------------------------------------------------------------------


class JobActivation(Question, frozen=True):
    """A request of a worker for jobs."""

    type: str
    timeout: LeaseMs  # how long the leases last, in ms
    max_jobs_to_activate: JobsMax
    worker: str | None = None
    fetch_variable: list[str] | None = None  # all if none is named
    request_timeout: RequestTimeoutMs | None = None  # ms; 0: the default, negative: do not wait
    tenant_ids: list[str] | None = None
    tenant_filter: str | None = None
    with_lease: bool | None = None  # return the lease token that fences reports

    @property
    def wait_ms(self) -> int:
        if not self.request_timeout:
            return WAIT_MS
        return min(max(self.request_timeout, 0), WAIT_MS_MAX)

    def at_once(self) -> "JobActivation":
        return msgspec.structs.replace(self, request_timeout=-1)


class JobToDo(Shape, frozen=True):
    """A job that is leased to the worker until its deadline."""

    job_key: str
    type: str
    process_definition_id: str
    process_definition_version: int
    process_definition_key: str
    process_instance_key: str
    element_id: str
    element_instance_key: str
    custom_headers: dict[str, str]
    worker: str
    retries: int
    deadline: int  # ms since 1970
    variables: msgspec.Raw
    priority: int
    job_lease_token: str | None
    tenant_id: str = TENANT
    physical_tenant_id: str = "default"
    kind: str = "BPMN_ELEMENT"
    listener_event_type: str = "UNSPECIFIED"
    user_task: None = None
    tags: list[str] = msgspec.field(default_factory=list)
    root_process_instance_key: str | None = None
    business_id: str | None = None


class JobsToDo(Shape, frozen=True):
    """The jobs that a worker got; empty if none came in time."""

    jobs: list[JobToDo]


async def _give_back(api: RestApi, activated: JobsToDo) -> None:
    if activated.jobs:
        held = [HeldJob(job.job_key, await api.look.lease(job.job_key)) for job in activated.jobs]
        await api.jobs.release(held)


@endpoint("POST", "/v2/jobs/activation", WORK, waits=True, undo=_give_back)
async def activate_jobs(api: RestApi, body: JobActivation) -> JobsToDo:
    """Give waiting jobs of a type to a worker."""
    check_tenant(*(body.tenant_ids or ()))
    if body.tenant_filter not in (None, "PROVIDED", "ASSIGNED"):
        raise InvalidArgument(
            f"Expected PROVIDED or ASSIGNED, but found {body.tenant_filter!r}",
            field="tenantFilter",
        )
    worker = body.worker or "worker"
    wanted = {body.type: body.fetch_variable} if body.fetch_variable else {}
    jobs = await api.jobs.activate(
        ActivationRequest(
            [body.type], worker, body.max_jobs_to_activate, body.timeout, body.wait_ms, wanted
        )
    )
    now_ms = api.look.now_ms()
    return JobsToDo([_job(job, worker, now_ms, with_lease=bool(body.with_lease)) for job in jobs])


def _job(job: ActivatedJob, worker: str, now_ms: int, *, with_lease: bool) -> JobToDo:
    origin = job.origin
    return JobToDo(
        job_key=job.job_key,
        type=job.type,
        process_definition_id=origin.process_id if origin else TASK,
        process_definition_version=origin.version if origin else 0,
        process_definition_key=origin.process_definition_key if origin else NO_KEY,
        process_instance_key=origin.process_instance_key if origin else NO_KEY,
        element_id=origin.element_id if origin else TASK,
        element_instance_key=origin.element_instance_key if origin else NO_KEY,
        custom_headers=origin.headers if origin else {},
        worker=worker,
        retries=job.retries + 1,
        deadline=now_ms + job.lease_ms,
        variables=_variables(job.payload),
        priority=job.priority,
        job_lease_token=job.lease if with_lease else None,
        root_process_instance_key=origin.root_process_instance_key if origin else None,
    )


def _variables(payload: msgspec.Raw) -> msgspec.Raw:
    """Variables are an object; what else a task has for a payload becomes one."""
    text = bytes(payload).strip()
    return msgspec.Raw(text if text.startswith(b"{") else b'{"payload":' + text + b"}")


# --- reports ----------------------------------------------------------------------------------


class JobDone(Question, frozen=True):
    """A completed job."""

    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    result: msgspec.Raw = msgspec.field(default_factory=no_variables)
    job_lease_token: str | None = None
    business_id: str | None = None


class JobFailed(Question, frozen=True):
    """An attempt failed."""

    retries: Retries = 0  # retries left; 0: the job gets an incident
    error_message: str = ""
    retry_back_off: SpanMs = 0  # ms until the next attempt
    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    job_lease_token: str | None = None


class JobThrown(Question, frozen=True):
    """The job ended in a BPMN error that its process may catch."""

    error_code: str
    error_message: str | None = None
    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    job_lease_token: str | None = None


@endpoint("POST", "/v2/jobs/{job_key}/completion", WORK)
async def complete_job(api: RestApi, job_key: str, body: JobDone | None) -> None:
    """Report a job as done."""
    body = body or JobDone()
    refuse_given(result=_given(body.result), businessId=body.business_id)
    variables = object_of(body.variables, "variables")
    done = JobCompletion(job_key, await _lease(api, job_key, body.job_lease_token), variables)
    [answer] = await api.jobs.complete([done])
    raise_refusal(answer)


@endpoint("POST", "/v2/jobs/{job_key}/failure", WORK)
async def fail_job(api: RestApi, job_key: str, body: JobFailed | None) -> None:
    """Report an attempt that failed."""
    body = body or JobFailed()
    refuse_given(variables=_given(body.variables))
    lease = await _lease(api, job_key, body.job_lease_token)
    failure = JobFailure(
        job_key, lease, body.error_message, body.retries == 0, body.retry_back_off, body.retries
    )
    [answer] = await api.jobs.fail([failure])
    raise_refusal(answer)


@endpoint("POST", "/v2/jobs/{job_key}/error", WORK)
async def throw_job_error(api: RestApi, job_key: str, body: JobThrown) -> None:
    """Report an error that the process of the job knows."""
    thrown = JobError(
        job_key, await _lease(api, job_key, body.job_lease_token), body.error_code,
        body.error_message or "", object_of(body.variables, "variables"),
    )  # fmt: skip
    [answer] = await api.jobs.throw([thrown])
    raise_refusal(answer)


async def _lease(api: RestApi, job_key: str, token: str | None) -> str:
    return token or await api.look.lease(job_key)


def _given(raw: msgspec.Raw) -> bool:
    return bytes(raw).strip() not in (b"null", b"{}")


# --- changes ----------------------------------------------------------------------------------


class JobChanges(Question, frozen=True):
    """Changes to a job."""

    retries: Attempts | None = None
    timeout: LeaseMs | None = None  # the new lease from now on, in ms
    priority: Priority | None = None


class JobUpdate(Question, frozen=True):
    """A change of a job."""

    changeset: JobChanges
    operation_reference: OperationReference | None = None
    job_lease_token: str | None = None


@endpoint("PATCH", "/v2/jobs/{job_key}", UPDATE_JOB)
async def update_job(api: RestApi, job_key: str, body: JobUpdate) -> None:
    """Give a job other retries, or its worker more time."""
    changes = body.changeset
    await api.look.job(job_key)  # one that is not there has nothing that could be changed wrongly
    if changes.priority is not None:
        refuse_given(priority=True)
    if changes.retries is None and changes.timeout is None:
        raise InvalidArgument(
            "Expected retries or timeout in the changeset, but found neither", field="changeset"
        )
    if changes.timeout is not None:
        [answer] = await api.jobs.extend(
            [await _lease(api, job_key, body.job_lease_token)], changes.timeout
        )
        raise_refusal(answer)
    if changes.retries is not None:
        await api.jobs.update_retries(job_key, changes.retries - 1)


JOB_ENDPOINTS: tuple[Endpoint, ...] = (
    activate_jobs, complete_job, fail_job, throw_job_error, update_job,
)  # fmt: skip
