"""Searching jobs of processes."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.engine.jobs.values import JobState
from holdfast.gateway.access.needs import READ_JOB
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.rest.common import TENANT, PageAnswer, RestApi, SearchQuery
from holdfast.gateway.rest.fields import (
    KEY,
    TENANT_FIELD,
    TIME,
    WHOLE,
    Resource,
    constant,
    page_of,
    plain,
    search,
    with_unused,
    word,
)
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row
from holdfast.gateway.shapes import Shape

_STATES: dict[str, tuple[str, ...]] = {
    "CREATED": (JobState.WAITING, JobState.SCHEDULED, JobState.ACTIVE),
    "FAILED": (JobState.INCIDENT,),
    "COMPLETED": (JobState.COMPLETED,),
    "ERROR_THROWN": (JobState.ERROR_THROWN,),
    "CANCELED": (JobState.CANCELED, JobState.DISCARDED),
}
# the API has words for what happened last to a job, too
_WORDS = with_unused(
    _STATES, "MIGRATED", "PRIORITY_UPDATED", "RETRIES_UPDATED", "TIMED_OUT", "TIMEOUT_UPDATED"
)
_STATE_OF = {column: name for name, columns in _STATES.items() for column in columns}


class JobResult(Shape, frozen=True):
    """A job of a process."""

    job_key: str
    type: str
    state: str
    worker: str
    retries: int
    priority: int
    element_id: str | None
    element_instance_key: str
    process_definition_id: str | None
    process_definition_key: str | None
    process_instance_key: str
    error_code: str | None
    error_message: str | None
    has_failed_with_retries_left: bool
    creation_time: datetime | None
    end_time: datetime | None
    custom_headers: dict[str, str] = msgspec.field(default_factory=dict)
    deadline: datetime | None = None
    denied_reason: str | None = None
    is_denied: bool | None = None
    kind: str = "BPMN_ELEMENT"
    listener_event_type: str = "UNSPECIFIED"
    root_process_instance_key: str | None = None
    business_id: str | None = None
    tenant_id: str = TENANT
    last_update_time: datetime | None = None


class JobSearchResult(Shape, frozen=True):
    """A page of jobs."""

    items: list[JobResult]
    page: PageAnswer


JOBS = Resource(
    "jobs",
    "jobKey",
    {
        "jobKey": plain("jobKey", KEY),
        "type": plain("type"),
        "state": word("state", _WORDS),
        "worker": plain("worker"),
        "priority": plain("priority", WHOLE),
        "elementInstanceKey": plain("elementInstanceKey", KEY),
        "processInstanceKey": plain("processInstanceKey", KEY),
        "errorCode": plain("errorCode"),
        "errorMessage": plain("error"),
        "creationTime": plain("created", TIME),
        "endTime": plain("ended", TIME),
        "kind": constant("BPMN_ELEMENT"),
        "listenerEventType": constant("UNSPECIFIED"),
        "tenantId": TENANT_FIELD,
    },
    {"processInstanceKey": {"$exists": True}},  # tasks have searches of their own
)


class JobQuery(SearchQuery, frozen=True):
    """Which jobs to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(JOBS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(JOBS)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/jobs/search", READ_JOB)
async def search_jobs(api: RestApi, body: JobQuery | None) -> JobSearchResult:
    """Search jobs of processes."""
    found = await search(api.tables, JOBS, body)
    keys = [row["element_instance_key"] for row in found.rows]
    elements = await api.tables.rows("element_instances", keys)
    roots = await api.look.roots([row["process_instance_key"] for row in found.rows])
    items = [
        _result(
            row, elements.get(row["element_instance_key"]) or {}, roots[row["process_instance_key"]]
        )
        for row in found.rows
    ]
    return JobSearchResult(items, page_of(found))


def _result(row: Row, element: Row, root: str | None) -> JobResult:
    definition, is_stuck = element.get("process_definition_key"), row["state"] == JobState.INCIDENT
    retries = 0 if is_stuck else (row["retries"] or 0) + 1
    return JobResult(
        str(row["job_key"]), row["type"], _STATE_OF[row["state"]], row["worker"] or "", retries,
        row["priority"] or 0, element.get("element_id"), str(row["element_instance_key"]),
        element.get("process_id"), str(definition) if definition else None,
        str(row["process_instance_key"]), row["error_code"], row["error"],
        bool(row["failures"]) and not is_stuck and row["ended"] is None,
        row["created"], row["ended"],
        root_process_instance_key=root,
    )  # fmt: skip


JOB_SEARCH_ENDPOINTS: tuple[Endpoint, ...] = (search_jobs,)
