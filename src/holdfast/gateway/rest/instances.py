"""Process instances: create, get, cancel, search, migrate."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.engine.identity.values import Permission
from holdfast.engine.jobs.values import JobState
from holdfast.engine.processes.queries import FoundDefinition
from holdfast.errors import DeadlineExceeded, InvalidArgument, InvalidState, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.needs import READ_INSTANCE, of_process
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.numbers import AnyVersion, OperationReference, RequestTimeoutMs
from holdfast.gateway.processes.api import InstanceApi
from holdfast.gateway.processes.shapes import NewMigration, NewProcessInstance
from holdfast.gateway.rest.common import (
    TENANT,
    PageAnswer,
    Reference,
    RestApi,
    SearchQuery,
    check_tenant,
    object_of,
    refuse_given,
)
from holdfast.gateway.rest.families import PARENT, InstanceFamily, by_parent, family_of
from holdfast.gateway.rest.fields import (
    KEY,
    TENANT_FIELD,
    TIME,
    WHOLE,
    Resource,
    flag,
    page_of,
    plain,
    search,
    word,
)
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.shapes import Question, Shape, no_variables
from holdfast.limits import WAIT_MS_MAX

WAIT_MS = 10_000  # for an instance to end, if the request does not say how long
_STATES: dict[str, tuple[str, ...]] = {
    "ACTIVE": ("ACTIVE",),
    "COMPLETED": ("COMPLETED",),
    "TERMINATED": ("CANCELED",),
    "SUSPENDED": (),  # there is no such state here
}
_STATE_OF = {column: name for name, columns in _STATES.items() for column in columns}

# --- creating ---------------------------------------------------------------------------------


class InstanceCreation(Question, frozen=True):
    """A process to start: by the id of a process, or by the key of one version."""

    process_definition_id: str | None = None
    process_definition_version: AnyVersion | None = None  # -1: the latest
    process_definition_key: str | None = None
    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    await_completion: bool = False  # respond when the instance has ended, with its variables
    fetch_variables: list[str] | None = None  # all if none is named
    request_timeout: RequestTimeoutMs | None = None  # ms to wait for the end; 0: the default
    tenant_id: str | None = None
    operation_reference: OperationReference | None = None
    start_instructions: list[dict[str, Any]] | None = None
    runtime_instructions: list[dict[str, Any]] | None = None
    tags: list[str] | None = None
    business_id: str | None = None


class CreatedInstance(Shape, frozen=True):
    """The instance is durable."""

    process_definition_id: str
    process_definition_version: int
    process_definition_key: str
    process_instance_key: str
    variables: msgspec.Raw  # empty, unless awaitCompletion is set
    tenant_id: str = TENANT
    tags: list[str] = msgspec.field(default_factory=list)
    business_id: str | None = None


@endpoint("POST", "/v2/process-instances", of_process(Permission.CREATE_PROCESS_INSTANCE))
async def create_instance(api: RestApi, body: InstanceCreation) -> CreatedInstance:
    """Start a process, and wait for its end if that is wanted."""
    check_tenant(body.tenant_id)
    refuse_given(
        startInstructions=body.start_instructions, runtimeInstructions=body.runtime_instructions,
        tags=body.tags, businessId=body.business_id,
    )  # fmt: skip
    variables = object_of(body.variables, "variables")
    key, process_id, version = await _definition(api, body)
    [receipt] = await api.instances.start([NewProcessInstance(process_id, version, variables)])
    instance_key = receipt.process_instance_key
    result = await _end(api, instance_key, body) if body.await_completion else msgspec.Raw(b"{}")
    return CreatedInstance(process_id, version, str(key), instance_key, result)


async def _definition(api: RestApi, body: InstanceCreation) -> tuple[int, str, int]:
    """The key, the process id and the number of the version that is to run."""
    if (body.process_definition_key is None) == (body.process_definition_id is None):
        raise InvalidArgument(
            "Expected either processDefinitionId or processDefinitionKey, but found"
            f" {'neither' if body.process_definition_id is None else 'both'}",
            field="processDefinitionId",
        )
    if body.process_definition_key is not None:
        asked = f"key {body.process_definition_key}"
        key = api.look.key(body.process_definition_key, "process definition")
        found = await api.look.definition(key)
    else:
        version = body.process_definition_version
        version = 0 if version is None else version
        asked = f"id {body.process_definition_id!r}" + (f", version {version}" if version else "")
        version = version
        found = await api.look.version(str(body.process_definition_id), max(version, 0))
    if found is None:
        raise NotFound(f"There is no process definition with {asked}")
    return found.key, found.process_id, found.version


async def _end(api: RestApi, instance_key: str, body: InstanceCreation) -> msgspec.Raw:
    wait_ms = min(body.request_timeout or WAIT_MS, WAIT_MS_MAX)
    [outcome] = await api.tasks.results([instance_key], max(wait_ms, 1))
    if outcome.state is None or outcome.state == JobState.ACTIVE:
        raise DeadlineExceeded(
            f"Expected process instance {instance_key} to end within {wait_ms} ms, but it runs",
            key=instance_key,
        )
    if outcome.state != JobState.COMPLETED:
        raise InvalidState(
            f"Process instance {instance_key} was canceled",
            key=instance_key,
        )
    result = outcome.result if isinstance(outcome.result, msgspec.Raw) else msgspec.Raw(b"{}")
    if not body.fetch_variables:
        return result
    values = msgspec.json.decode(bytes(result), type=dict[str, msgspec.Raw])
    wanted = {name: values[name] for name in body.fetch_variables if name in values}
    return msgspec.Raw(msgspec.json.encode(wanted))


# --- looking ----------------------------------------------------------------------------------


class InstanceResult(Shape, frozen=True):
    """A process instance."""

    process_instance_key: str
    process_definition_id: str
    process_definition_name: str | None
    process_definition_version: int
    process_definition_key: str
    parent_process_instance_key: str | None
    parent_element_instance_key: str | None
    start_date: datetime | None
    end_date: datetime | None
    state: str
    has_incident: bool
    process_definition_version_tag: str | None = None
    suspended_date: datetime | None = None
    tenant_id: str = TENANT
    root_process_instance_key: str | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    business_id: str | None = None


class InstanceSearchResult(Shape, frozen=True):
    """A page of process instances."""

    items: list[InstanceResult]
    page: PageAnswer


INSTANCES = Resource(
    "process_instances",
    "processInstanceKey",
    {
        "processInstanceKey": plain("processInstanceKey", KEY),
        "processDefinitionId": plain("processId"),
        "processDefinitionKey": plain("processDefinitionKey", KEY),
        "processDefinitionVersion": plain("version", WHOLE),
        "parentElementInstanceKey": plain("parentElementInstanceKey", KEY),
        "startDate": plain("started", TIME),
        "endDate": plain("ended", TIME),
        "state": word("state", _STATES),
        "hasIncident": flag("incidents", {"$gt": 0}, {"$lte": 0}),
        "tenantId": TENANT_FIELD,
    },
    {"state": {"$neq": "DELETED"}},
)


class InstanceQuery(SearchQuery, frozen=True):
    """Which process instances to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(INSTANCES, PARENT)] = msgspec.field(
        default_factory=dict
    )
    sort: Annotated[list[dict[str, Any]], sort_of(INSTANCES)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/process-instances/search", READ_INSTANCE)
async def search_instances(api: RestApi, body: InstanceQuery | None) -> InstanceSearchResult:
    """Search process instances, running or ended."""
    query, also = await by_parent(api.tables, body or InstanceQuery())
    found = await search(api.tables, INSTANCES, query, also)
    family = await family_of(api.tables, found.rows)
    return InstanceSearchResult(await _of_rows(api, found.rows, family), page_of(found))


@endpoint("GET", "/v2/process-instances/{instance_key}", READ_INSTANCE)
async def get_instance(api: RestApi, instance_key: str) -> InstanceResult:
    """Show a process instance: as it is now while it runs, from the tables once it has ended."""
    key = api.look.key(instance_key, "process instance")
    if (instance := await api.look.instance(key)) is not None:
        definition = await api.look.definition(instance.definition)
        assert definition is not None, "an instance runs whose definition is not there"
        return InstanceResult(
            instance_key, definition.process_id, definition.name or None, definition.version,
            str(instance.definition),
            str(instance.parent_instance) if instance.parent_instance else None,
            str(instance.parent) if instance.parent else None,
            checks.moment(instance.created_ms), None, "ACTIVE", await api.look.has_incident(key),
            root_process_instance_key=await api.look.root(key),
            process_definition_version_tag=definition.version_tag or None,
        )  # fmt: skip
    row = await row_of(api.tables, "process_instances", key)
    if row is None or row["state"] == "DELETED":
        raise NotFound(
            f"There is no process instance with key {instance_key}",
            key=instance_key,
        )
    [found] = await _of_rows(api, [row], await family_of(api.tables, [row]))
    return found


async def _of_rows(
    api: RestApi, rows: Sequence[Row], families: Mapping[int, InstanceFamily]
) -> list[InstanceResult]:
    definitions = await api.look.definitions(row["process_definition_key"] for row in rows)
    return [
        _of_row(
            row,
            families[row["process_instance_key"]],
            definitions.get(row["process_definition_key"]),
        )
        for row in rows
    ]


def _of_row(row: Row, family: InstanceFamily, definition: FoundDefinition | None) -> InstanceResult:
    return InstanceResult(
        str(row["process_instance_key"]), row["process_id"],
        (definition.name or None) if definition else None, row["version"],
        str(row["process_definition_key"]), family.parent, family.parent_element,
        row["started"], row["ended"], _STATE_OF[row["state"]], (row["incidents"] or 0) > 0,
        root_process_instance_key=family.root,
        process_definition_version_tag=(definition.version_tag or None) if definition else None,
    )  # fmt: skip


# --- changing ---------------------------------------------------------------------------------


@serves(InstanceApi.cancel)
async def cancel_instance(api: RestApi, instance_key: str, body: Reference | None) -> None:
    """Cancel a process instance."""
    await api.instances.cancel(instance_key)


class Migration(NewMigration, frozen=True, kw_only=True):
    """Another version for a running instance."""

    operation_reference: OperationReference | None = None


@serves(InstanceApi.migrate)
async def migrate_instance(api: RestApi, instance_key: str, body: Migration) -> None:
    """Move a process instance to another version."""
    migration = NewMigration(body.process_definition_key, body.elements)
    await api.instances.migrate(instance_key, migration)


INSTANCE_ENDPOINTS: tuple[Endpoint, ...] = (
    create_instance, search_instances, get_instance, cancel_instance, migrate_instance,
)  # fmt: skip
