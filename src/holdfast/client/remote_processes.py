"""What a remote node is asked about processes and messages."""

from collections.abc import Sequence

from holdfast.client.wire import Wire, quoted
from holdfast.gateway.processes.shapes import (
    JobRetries,
    MessagePublication,
    MessageReceipt,
    NewDeployment,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewProcessInstances,
    NewVariables,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessDefinitions,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceReceipts,
    ProcessInstanceView,
    ProcessSource,
    Resource,
)
from holdfast.gateway.tasks.shapes import Answer, Answers, JobError, JobErrors


class RemoteProcesses:
    """The part of the remote Api that is about processes."""

    async def deploy(self: Wire, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        body = NewDeployment(list(resources))
        return (await self._post("/v2/deployments", body, ProcessDefinitions)).items

    async def definitions(self: Wire, query: ProcessDefinitionQuery) -> list[ProcessDefinition]:
        path = "/v2/process-definitions/listing"
        return (await self._post(path, query, ProcessDefinitions)).items

    async def definition_source(self: Wire, definition_key: str) -> ProcessSource:
        path = f"/v2/process-definitions/{quoted(definition_key)}/source"
        return await self._get(path, ProcessSource)

    async def start(
        self: Wire, instances: Sequence[NewProcessInstance]
    ) -> list[ProcessInstanceReceipt]:
        body = NewProcessInstances(list(instances))
        path = "/v2/process-instances/batch"
        return (await self._post(path, body, ProcessInstanceReceipts)).instances

    async def instance(self: Wire, instance_key: str) -> ProcessInstanceView:
        path = f"/v2/process-instances/{quoted(instance_key)}/details"
        return await self._get(path, ProcessInstanceView)

    async def instances(self: Wire, query: ProcessInstanceQuery) -> ProcessInstancePage:
        return await self._post("/v2/process-instances/listing", query, ProcessInstancePage)

    async def cancel_instance(self: Wire, instance_key: str) -> None:
        await self._send("POST", f"/v2/process-instances/{quoted(instance_key)}/cancellation")

    async def set_variables(self: Wire, scope_key: str, variables: NewVariables) -> None:
        path = f"/v2/element-instances/{quoted(scope_key)}/variables"
        await self._send("PUT", path, variables)

    async def modify_instance(self: Wire, instance_key: str, modification: NewModification) -> None:
        path = f"/v2/process-instances/{quoted(instance_key)}/tokens"
        await self._send("POST", path, modification)

    async def migrate_instance(self: Wire, instance_key: str, migration: NewMigration) -> None:
        path = f"/v2/process-instances/{quoted(instance_key)}/migration"
        await self._send("POST", path, migration)

    async def publish(self: Wire, message: NewMessage) -> MessageReceipt:
        body = MessagePublication(
            message.name, message.correlation_key, message.variables, message.message_id,
            message.ttl_ms,
        )  # fmt: skip
        return await self._post("/v2/messages/publication", body, MessageReceipt)

    async def throw(self: Wire, jobs: Sequence[JobError]) -> list[Answer]:
        return (await self._post("/v2/jobs/error", JobErrors(list(jobs)), Answers)).answers

    async def update_retries(self: Wire, job_key: str, retries: int) -> None:
        path = f"/v2/jobs/{quoted(job_key)}/retries"
        await self._send("POST", path, JobRetries(retries))
