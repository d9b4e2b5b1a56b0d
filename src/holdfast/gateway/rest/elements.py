"""Element instances: get, search, set variables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.engine.processes.queries import FoundDefinition
from holdfast.errors import NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.needs import READ_INSTANCE
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.numbers import OperationReference
from holdfast.gateway.processes.api import InstanceApi
from holdfast.gateway.processes.shapes import NewVariables
from holdfast.gateway.rest.common import TENANT, PageAnswer, RestApi, SearchQuery
from holdfast.gateway.rest.fields import (
    KEY,
    TENANT_FIELD,
    TIME,
    Resource,
    flag,
    page_of,
    plain,
    search,
    with_unused,
    word,
)
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.shapes import Shape
from holdfast.model.definition import ElementKind

_TYPES = {
    ElementKind.START: "START_EVENT",
    ElementKind.END: "END_EVENT",
    ElementKind.PASS: "TASK",
    ElementKind.JOB: "SERVICE_TASK",
    ElementKind.EXPRESSION: "SCRIPT_TASK",
    ElementKind.EXCLUSIVE: "EXCLUSIVE_GATEWAY",
    ElementKind.INCLUSIVE: "INCLUSIVE_GATEWAY",
    ElementKind.PARALLEL: "PARALLEL_GATEWAY",
    ElementKind.EVENT_GATEWAY: "EVENT_BASED_GATEWAY",
    ElementKind.CATCH: "INTERMEDIATE_CATCH_EVENT",
    ElementKind.BOUNDARY: "BOUNDARY_EVENT",
    ElementKind.SUBPROCESS: "SUB_PROCESS",
    ElementKind.CALL: "CALL_ACTIVITY",
}
_KINDS = with_unused(
    {name: (kind.name,) for kind, name in _TYPES.items()},
    "AD_HOC_SUB_PROCESS", "AD_HOC_SUB_PROCESS_INNER_INSTANCE", "BUSINESS_RULE_TASK",
    "EVENT_SUB_PROCESS", "INTERMEDIATE_THROW_EVENT", "MANUAL_TASK", "MULTI_INSTANCE_BODY",
    "PROCESS", "RECEIVE_TASK", "SEND_TASK", "SEQUENCE_FLOW", "UNKNOWN", "UNSPECIFIED", "USER_TASK",
)  # fmt: skip
_TYPE_OF = {kind.name: name for kind, name in _TYPES.items()}
_STATES = {name: (name,) for name in ("ACTIVE", "COMPLETED", "TERMINATED")}


class ElementResult(Shape, frozen=True):
    """An instance of an element."""

    element_instance_key: str
    process_instance_key: str
    process_definition_id: str | None
    process_definition_key: str | None
    element_id: str
    element_name: str
    type: str
    state: str
    start_date: datetime | None
    end_date: datetime | None
    has_incident: bool
    incident_key: str | None
    tenant_id: str = TENANT
    root_process_instance_key: str | None = None


class ElementSearchResult(Shape, frozen=True):
    """A page of element instances."""

    items: list[ElementResult]
    page: PageAnswer


ELEMENTS = Resource(
    "element_instances",
    "elementInstanceKey",
    {
        "elementInstanceKey": plain("elementInstanceKey", KEY),
        "processInstanceKey": plain("processInstanceKey", KEY),
        "processDefinitionId": plain("processId"),
        "processDefinitionKey": plain("processDefinitionKey", KEY),
        "elementId": plain("elementId"),
        "type": word("type", _KINDS),
        "state": word("state", _STATES),
        "hasIncident": flag("incidentKey", {"$exists": True}, {"$exists": False}),
        "incidentKey": plain("incidentKey", KEY),
        "startDate": plain("started", TIME),
        "endDate": plain("ended", TIME),
        "elementInstanceScopeKey": plain("scopeKey", KEY),
        "tenantId": TENANT_FIELD,
    },
)


class ElementQuery(SearchQuery, frozen=True):
    """Which element instances to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(ELEMENTS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(ELEMENTS)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/element-instances/search", READ_INSTANCE)
async def search_elements(api: RestApi, body: ElementQuery | None) -> ElementSearchResult:
    """Search element instances, active or ended."""
    found = await search(api.tables, ELEMENTS, body)
    return ElementSearchResult(await _of_rows(api, found.rows), page_of(found))


@endpoint("GET", "/v2/element-instances/{element_key}", READ_INSTANCE)
async def get_element(api: RestApi, element_key: str) -> ElementResult:
    """Show an element instance: as it is now while it is active, later from the tables."""
    key = api.look.key(element_key, "element instance")
    if (found := await _of_state(api, key)) is not None:
        return found
    row = await row_of(api.tables, "element_instances", key)
    if row is None:
        raise NotFound(
            f"There is no element instance with key {element_key}",
            key=element_key,
        )
    [found] = await _of_rows(api, [row])
    return found


async def _of_state(api: RestApi, key: int) -> ElementResult | None:
    found = await api.look.element(key)
    if found is None:
        return None
    element = found.element
    incident = element.incident
    return ElementResult(
        str(key), str(found.instance), found.process_id, str(found.definition),
        element.element_id, element.name or element.element_id, _TYPES[element.kind], "ACTIVE",
        checks.moment(element.created_ms), None, bool(incident),
        str(incident) if incident else None,
        root_process_instance_key=await api.look.root(found.instance),
    )  # fmt: skip


async def _of_rows(api: RestApi, rows: Sequence[Row]) -> list[ElementResult]:
    roots = await api.look.roots([row["process_instance_key"] for row in rows])
    definitions = await api.look.definitions(row["process_definition_key"] for row in rows)
    return [_of_row(row, definitions.get(row["process_definition_key"]), roots) for row in rows]


def _of_row(
    row: Row, definition: FoundDefinition | None, roots: Mapping[int | None, str | None]
) -> ElementResult:
    incident, id_ = row["incident_key"], str(row["element_id"])
    name = definition.element_names.get(id_, id_) if definition else id_
    return ElementResult(
        str(row["element_instance_key"]), str(row["process_instance_key"]), row["process_id"],
        str(row["process_definition_key"]), id_, name, _TYPE_OF[row["type"]], row["state"],
        row["started"], row["ended"], bool(incident), str(incident) if incident else None,
        root_process_instance_key=roots[row["process_instance_key"]],
    )  # fmt: skip


class VariablesToSet(NewVariables, frozen=True, kw_only=True):
    """New values for variables, as seen from a process instance or an element instance."""

    operation_reference: OperationReference | None = None


@serves(InstanceApi.set_variables)
async def set_variables(api: RestApi, element_key: str, body: VariablesToSet) -> None:
    """Set variables of a process instance or an element instance."""
    await api.instances.set_variables(element_key, NewVariables(body.variables, body.local))


ELEMENT_ENDPOINTS: tuple[Endpoint, ...] = (search_elements, get_element, set_variables)
