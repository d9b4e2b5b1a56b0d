"""Deployments: BPMN files, as a form or as JSON."""

from holdfast.errors import InvalidArgument
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, serves
from holdfast.gateway.processes.api import ProcessApi
from holdfast.gateway.processes.shapes import (
    NewDeployment,
    ProcessDefinition,
    ProcessDefinitions,
    Resource,
)
from holdfast.gateway.rest.common import TENANT, check_tenant
from holdfast.gateway.shapes import Shape


class DeployedProcess(Shape, frozen=True):
    """A process of a deployment."""

    process_definition_id: str
    process_definition_version: int
    resource_name: str
    process_definition_key: str
    tenant_id: str = TENANT


class Deployed(Shape, frozen=True):
    """One deployed resource; of the kinds that the API knows, holdfast has processes only."""

    process_definition: DeployedProcess | None
    decision_definition: None = None
    decision_requirements: None = None
    form: None = None
    resource: None = None


class Deployment(ProcessDefinitions, frozen=True, kw_only=True):
    """What was deployed. The key is that of its newest process."""

    deployment_key: str
    deployments: list[Deployed]
    tenant_id: str = TENANT


def _of_form(parts: list[tuple[str, str, bytes]]) -> NewDeployment:
    resources: list[Resource] = []
    for name, file_name, content in parts:
        if name == "tenantId":
            check_tenant(content.decode(errors="replace"))
        elif file_name or name == "resources":
            resources.append(Resource(file_name or name, _text(file_name or name, content)))
        else:
            raise InvalidArgument(
                f"Expected files and tenantId in the form, but found {name!r}", field=name
            )
    return NewDeployment(resources)


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"Expected {name} to be BPMN in UTF-8, but it is not: {error}", field="resources"
        ) from error


@serves(ProcessApi.deploy, form=_of_form)
async def deploy(api: Api, body: NewDeployment) -> Deployment:
    """Deploy BPMN files on every partition."""
    definitions = await api.processes.deploy(body.resources)
    return Deployment(
        items=definitions,
        deployment_key=max((each.process_definition_key for each in definitions), key=int),
        deployments=[Deployed(_process(each, body.resources)) for each in definitions],
    )


def _process(definition: ProcessDefinition, resources: list[Resource]) -> DeployedProcess:
    process_id = definition.process_id
    named = [each.name for each in resources if f'"{process_id}"' in each.content]
    name = named[0] if named else resource_name(process_id)
    return DeployedProcess(process_id, definition.version, name, definition.process_definition_key)


def resource_name(process_id: str) -> str:
    """What a file of a process is called: names of files are not kept."""
    return f"{process_id}.bpmn"


DEPLOYMENT_ENDPOINTS: tuple[Endpoint, ...] = (deploy,)
