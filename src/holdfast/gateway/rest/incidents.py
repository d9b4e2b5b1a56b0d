"""Incidents: get, search, resolve."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.engine.incidents.queries import FoundIncident
from holdfast.engine.incidents.values import IncidentReason
from holdfast.errors import NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.needs import READ_INSTANCE, READ_JOB
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.rest.common import (
    NO_KEY,
    TENANT,
    PageAnswer,
    RestApi,
    SearchQuery,
)
from holdfast.gateway.rest.fields import (
    KEY,
    TENANT_FIELD,
    TIME,
    Resource,
    page_of,
    plain,
    search,
    with_unused,
    word,
)
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.shapes import Shape
from holdfast.gateway.tasks.api import IncidentApi
from holdfast.gateway.tasks.shapes import IncidentResolution

_ERROR_TYPES = {
    IncidentReason.NO_RETRIES_LEFT: "JOB_NO_RETRIES",
    IncidentReason.LEASES_EXPIRED: "JOB_NO_RETRIES",
    IncidentReason.EXPRESSION_FAILED: "EXTRACT_VALUE_ERROR",
    IncidentReason.NO_MATCHING_FLOW: "CONDITION_ERROR",
    IncidentReason.UNHANDLED_ERROR: "UNHANDLED_ERROR_EVENT",
    IncidentReason.CALLED_PROCESS_MISSING: "CALLED_ELEMENT_ERROR",
    IncidentReason.LIMIT_REACHED: "UNKNOWN",
    IncidentReason.SET_ASIDE: "UNKNOWN",
    IncidentReason.LOOP_LIMIT: "UNKNOWN",
}
_REASONS = with_unused(
    {
        name: tuple(str(reason) for reason, of in _ERROR_TYPES.items() if of == name)
        for name in _ERROR_TYPES.values()
    },
    "AD_HOC_SUB_PROCESS_NO_RETRIES", "CALLED_DECISION_ERROR", "DECISION_EVALUATION_ERROR",
    "EXECUTION_LISTENER_NO_RETRIES", "FORM_NOT_FOUND", "IO_MAPPING_ERROR", "MESSAGE_SIZE_EXCEEDED",
    "RESOURCE_NOT_FOUND", "SECRET_RESOLUTION_ERROR", "TASK_LISTENER_NO_RETRIES", "UNSPECIFIED",
)  # fmt: skip
_STATES = with_unused(
    {"ACTIVE": ("OPEN",), "RESOLVED": ("RESOLVED", "DISCARDED")}, "MIGRATED", "PENDING", "UNKNOWN"
)
_STATE_OF = {column: name for name, columns in _STATES.items() for column in columns}


def error_type(reason: IncidentReason) -> str:
    """What the API calls a reason."""
    return _ERROR_TYPES[reason]


class IncidentResult(Shape, frozen=True):
    """An incident of a process instance."""

    incident_key: str
    process_definition_id: str
    process_definition_key: str
    process_instance_key: str
    element_id: str
    element_instance_key: str
    job_key: str | None
    error_type: str
    error_message: str
    creation_time: datetime | None
    state: str
    tenant_id: str = TENANT
    root_process_instance_key: str | None = None


class IncidentSearchResult(Shape, frozen=True):
    """A page of incidents."""

    items: list[IncidentResult]
    page: PageAnswer


INCIDENTS = Resource(
    "incidents",
    "incidentKey",
    {
        "incidentKey": plain("incidentKey", KEY),
        "processDefinitionId": plain("processId"),
        "processInstanceKey": plain("processInstanceKey", KEY),
        "elementId": plain("elementId"),
        "elementInstanceKey": plain("elementInstanceKey", KEY),
        "jobKey": plain("jobKey", KEY),
        "errorType": word("reason", _REASONS),
        "errorMessage": plain("error"),
        "creationTime": plain("created", TIME),
        "state": word("state", _STATES),
        "tenantId": TENANT_FIELD,
    },
    # those of tasks have no process that the API could name; they are among the tasks
    {"processInstanceKey": {"$exists": True}},
)


class IncidentSearch(SearchQuery, frozen=True):
    """Which incidents to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(INCIDENTS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(INCIDENTS)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/incidents/search", READ_JOB)
async def search_incidents(api: RestApi, body: IncidentSearch | None) -> IncidentSearchResult:
    """Search incidents of processes."""
    return await _search(api, body, {})


@endpoint("POST", "/v2/process-instances/{instance_key}/incidents/search", READ_INSTANCE)
async def search_instance_incidents(
    api: RestApi, instance_key: str, body: IncidentSearch | None
) -> IncidentSearchResult:
    """Search incidents of a process instance."""
    api.look.key(instance_key, "process instance")
    return await _search(api, body, {"processInstanceKey": instance_key})


@endpoint("POST", "/v2/element-instances/{element_key}/incidents/search", READ_INSTANCE)
async def search_element_incidents(
    api: RestApi, element_key: str, body: IncidentSearch | None
) -> IncidentSearchResult:
    """Search incidents of an element instance."""
    api.look.key(element_key, "element instance")
    return await _search(api, body, {"elementInstanceKey": element_key})


async def _search(
    api: RestApi, query: SearchQuery | None, also: dict[str, Any]
) -> IncidentSearchResult:
    found = await search(api.tables, INCIDENTS, query, also)
    return IncidentSearchResult(await _of_rows(api, found.rows), page_of(found))


async def _of_rows(api: RestApi, rows: list[Row]) -> list[IncidentResult]:
    keys = [row["element_instance_key"] for row in rows]
    elements = await api.tables.rows("element_instances", keys)
    roots = await api.look.roots([row["process_instance_key"] for row in rows])
    return [
        _of_row(row, elements.get(row["element_instance_key"]), roots[row["process_instance_key"]])
        for row in rows
    ]


def _of_row(row: Row, element: Row | None, root: str | None) -> IncidentResult:
    job_key = row["job_key"]
    return IncidentResult(
        str(row["incident_key"]), row["process_id"],
        str(element["process_definition_key"]) if element else NO_KEY,
        str(row["process_instance_key"]), row["element_id"], str(row["element_instance_key"]),
        str(job_key) if job_key else None, error_type(IncidentReason(row["reason"])),
        row["error"], row["created"], _STATE_OF[row["state"]],
        root_process_instance_key=root,
    )  # fmt: skip


@endpoint("GET", "/v2/incidents/{incident_key}", READ_JOB)
async def get_incident(api: RestApi, incident_key: str) -> IncidentResult:
    """Show an incident of a process."""
    key = api.look.key(incident_key, "incident")
    found = await api.look.incident(key)
    if found is not None and found.incident.element_key:
        return await _of_state(api, incident_key, found)
    row = None if found is not None else await row_of(api.tables, "incidents", key)
    if row is None or not row["process_instance_key"]:
        raise NotFound(
            f"There is no incident of a process with key {incident_key}",
            key=incident_key,
        )
    [result] = await _of_rows(api, [row])
    return result


async def _of_state(api: RestApi, incident_key: str, found: FoundIncident) -> IncidentResult:
    incident = found.incident
    instance = await api.look.instance(incident.instance_key)
    return IncidentResult(
        incident_key, found.process_id, str(instance.definition) if instance else NO_KEY,
        str(incident.instance_key), found.element_id,
        str(incident.element_key), str(incident.job_key) if incident.job_key else None,
        error_type(incident.reason), incident.error, checks.moment(incident.created_ms),
        "ACTIVE", root_process_instance_key=await api.look.root(incident.instance_key),
    )  # fmt: skip


@serves(IncidentApi.resolve)
async def resolve_incident(
    api: RestApi, incident_key: str, body: IncidentResolution | None
) -> None:
    """Retries the job or element of an incident."""
    retries = body.retries if body else None
    if retries is None:
        retries = await _retries(api, incident_key)
    await api.incidents.resolve(incident_key, retries)


async def _retries(api: RestApi, incident_key: str) -> int:
    """What a job was given by an update while its incident was open."""
    found = await api.look.incident(api.look.key(incident_key, "incident"))
    if found is None or not found.incident.job_key:
        return 0
    return (await api.look.job(str(found.incident.job_key))).job.retries


INCIDENT_ENDPOINTS: tuple[Endpoint, ...] = (
    search_incidents, search_instance_incidents, search_element_incidents, get_incident,
    resolve_incident,
)  # fmt: skip
