"""The endpoints about processes and messages."""

from holdfast.gateway.api import Api
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.process_shapes import (
    JobRetries,
    MessageReceipt,
    NewDeployment,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewProcessInstances,
    NewVariables,
    ProcessDefinitionQuery,
    ProcessDefinitions,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceReceipts,
    ProcessInstanceView,
    ProcessSource,
)
from holdfast.gateway.shapes import Answers, JobErrors


@endpoint("POST", "/v2/deployments")
async def deploy(api: Api, body: NewDeployment) -> ProcessDefinitions:
    """Deploy BPMN files on every partition."""
    return ProcessDefinitions(await api.deploy(body.resources))


@endpoint("POST", "/v2/process-definitions/search")
async def search_definitions(api: Api, body: ProcessDefinitionQuery) -> ProcessDefinitions:
    """List process definitions."""
    return ProcessDefinitions(await api.definitions(body))


@endpoint("GET", "/v2/process-definitions/{definition_key}/source")
async def get_definition_source(api: Api, definition_key: str) -> ProcessSource:
    """Show a process definition as BPMN."""
    return await api.definition_source(definition_key)


@endpoint("POST", "/v2/process-instances")
async def start_instance(api: Api, body: NewProcessInstance) -> ProcessInstanceReceipt:
    """Start a process."""
    [receipt] = await api.start([body])
    return receipt


@endpoint("POST", "/v2/process-instances/batch")
async def start_instances(api: Api, body: NewProcessInstances) -> ProcessInstanceReceipts:
    """Start many processes at once."""
    return ProcessInstanceReceipts(await api.start(body.instances))


@endpoint("GET", "/v2/process-instances/{instance_key}")
async def get_instance(api: Api, instance_key: str) -> ProcessInstanceView:
    """Show a process instance with its active elements."""
    return await api.instance(instance_key)


@endpoint("POST", "/v2/process-instances/search")
async def search_instances(api: Api, body: ProcessInstanceQuery) -> ProcessInstancePage:
    """List running process instances."""
    return await api.instances(body)


@endpoint("POST", "/v2/process-instances/{instance_key}/cancellation")
async def cancel_instance(api: Api, instance_key: str) -> None:
    """Cancel a process instance."""
    await api.cancel_instance(instance_key)


@endpoint("POST", "/v2/process-instances/{instance_key}/modification")
async def modify_instance(api: Api, instance_key: str, body: NewModification) -> None:
    """Add, remove and move tokens of a process instance."""
    await api.modify_instance(instance_key, body)


@endpoint("POST", "/v2/process-instances/{instance_key}/migration")
async def migrate_instance(api: Api, instance_key: str, body: NewMigration) -> None:
    """Move a process instance to another version."""
    await api.migrate_instance(instance_key, body)


@endpoint("PUT", "/v2/element-instances/{scope_key}/variables")
async def set_variables(api: Api, scope_key: str, body: NewVariables) -> None:
    """Set variables of a process instance or an element instance."""
    await api.set_variables(scope_key, body)


@endpoint("POST", "/v2/messages/publication")
async def publish_message(api: Api, body: NewMessage) -> MessageReceipt:
    """Publish a message."""
    return await api.publish(body)


@endpoint("POST", "/v2/jobs/error")
async def throw_errors(api: Api, body: JobErrors) -> Answers:
    """Report errors that the processes of the jobs know."""
    return Answers(await api.throw(body.jobs))


@endpoint("POST", "/v2/jobs/{job_key}/retries")
async def update_job_retries(api: Api, job_key: str, body: JobRetries) -> None:
    """Give a job another number of retries."""
    await api.update_retries(job_key, body.retries)


PROCESS_ENDPOINTS: tuple[Endpoint, ...] = (
    deploy, search_definitions, get_definition_source,
    start_instance, start_instances, get_instance, search_instances,
    cancel_instance, modify_instance, migrate_instance, set_variables,
    publish_message, throw_errors, update_job_retries,
)  # fmt: skip
