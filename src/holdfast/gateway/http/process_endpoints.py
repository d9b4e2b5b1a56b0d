"""The endpoints about processes that the REST API has no word for, or another one."""

from holdfast.gateway.api import Api
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.processes.shapes import (
    JobRetries,
    NewModification,
    NewProcessInstances,
    ProcessDefinitionQuery,
    ProcessDefinitions,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipts,
    ProcessInstanceView,
    ProcessSource,
)
from holdfast.gateway.tasks.shapes import Answers, JobErrors


@endpoint("POST", "/v2/process-definitions/listing")
async def list_definitions(api: Api, body: ProcessDefinitionQuery) -> ProcessDefinitions:
    """List process definitions."""
    return ProcessDefinitions(await api.definitions(body))


@endpoint("GET", "/v2/process-definitions/{definition_key}/source")
async def get_definition_source(api: Api, definition_key: str) -> ProcessSource:
    """Show a process definition as BPMN."""
    return await api.definition_source(definition_key)


@endpoint("POST", "/v2/process-instances/batch")
async def start_instances(api: Api, body: NewProcessInstances) -> ProcessInstanceReceipts:
    """Start many processes at once."""
    return ProcessInstanceReceipts(await api.start(body.instances))


@endpoint("GET", "/v2/process-instances/{instance_key}/details")
async def get_instance_details(api: Api, instance_key: str) -> ProcessInstanceView:
    """Show a process instance with its variables and its active elements."""
    return await api.instance(instance_key)


@endpoint("POST", "/v2/process-instances/listing")
async def list_instances(api: Api, body: ProcessInstanceQuery) -> ProcessInstancePage:
    """List running process instances."""
    return await api.instances(body)


@endpoint("POST", "/v2/process-instances/{instance_key}/tokens")
async def change_tokens(api: Api, instance_key: str, body: NewModification) -> None:
    """Add, remove and move tokens of a process instance."""
    await api.modify_instance(instance_key, body)


@endpoint("POST", "/v2/jobs/error")
async def throw_errors(api: Api, body: JobErrors) -> Answers:
    """Report errors that the processes of the jobs know."""
    return Answers(await api.throw(body.jobs))


@endpoint("POST", "/v2/jobs/{job_key}/retries")
async def update_job_retries(api: Api, job_key: str, body: JobRetries) -> None:
    """Give a job another number of retries."""
    await api.update_retries(job_key, body.retries)


PROCESS_ENDPOINTS: tuple[Endpoint, ...] = (
    list_definitions, get_definition_source,
    start_instances, get_instance_details, list_instances, change_tokens,
    throw_errors, update_job_retries,
)  # fmt: skip
