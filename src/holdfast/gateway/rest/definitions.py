"""Process definitions: get, search, show as XML."""

from typing import Annotated, Any

import msgspec

from holdfast.engine.processes.queries import FoundDefinition
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.access.needs import READ_DEFINITION
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.rest.common import TENANT, PageAnswer, RestApi, SearchQuery
from holdfast.gateway.rest.deployments import resource_name
from holdfast.gateway.rest.fields import (
    KEY,
    TENANT_FIELD,
    WHOLE,
    Resource,
    constant,
    flag,
    page_of,
    plain,
    search,
)
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row
from holdfast.gateway.shapes import Shape


class DefinitionResult(Shape, frozen=True):
    """A version of a process."""

    process_definition_key: str
    process_definition_id: str
    version: int
    name: str | None
    resource_name: str
    version_tag: str | None = None
    tenant_id: str = TENANT
    has_start_form: bool = False
    state: str = "ACTIVE"


class DefinitionSearchResult(Shape, frozen=True):
    """A page of process definitions."""

    items: list[DefinitionResult]
    page: PageAnswer


DEFINITIONS = Resource(
    "process_definitions",
    "processDefinitionKey",
    {
        "processDefinitionKey": plain("processDefinitionKey", KEY),
        "processDefinitionId": plain("processId"),
        "version": plain("version", WHOLE),
        "name": plain("name"),
        "state": constant("ACTIVE"),
        "tenantId": TENANT_FIELD,
        "hasStartForm": flag("processDefinitionKey", {"$exists": False}, {"$exists": True}),
    },
)


_LATEST = {"isLatestVersion": {"type": "boolean"}}


class DefinitionQuery(SearchQuery, frozen=True):
    """Which process definitions to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(DEFINITIONS, _LATEST)] = msgspec.field(
        default_factory=dict
    )
    sort: Annotated[list[dict[str, Any]], sort_of(DEFINITIONS)] = msgspec.field(
        default_factory=list
    )


@endpoint("POST", "/v2/process-definitions/search", READ_DEFINITION)
async def search_definitions(api: RestApi, body: DefinitionQuery | None) -> DefinitionSearchResult:
    """Search process definitions."""
    query, also = await _latest(api, body or SearchQuery())
    found = await search(api.tables, DEFINITIONS, query, also)
    known = await api.look.definitions(row["process_definition_key"] for row in found.rows)
    items = [_of_row(row, known.get(row["process_definition_key"])) for row in found.rows]
    return DefinitionSearchResult(items, page_of(found))


async def _latest(api: RestApi, query: SearchQuery) -> tuple[SearchQuery, dict[str, Any]]:
    """`isLatestVersion` is known to the node itself: which keys these are now."""
    if "isLatestVersion" not in query.filter:
        return query, {}
    rest = {name: asked for name, asked in query.filter.items() if name != "isLatestVersion"}
    wanted = query.filter["isLatestVersion"]
    if not isinstance(wanted, bool):
        raise InvalidArgument(
            f"Expected true or false for isLatestVersion, but found {wanted!r}",
            field="isLatestVersion",
        )
    latest = [str(key) for key in await api.look.latest_keys()]
    operator = "$in" if wanted else "$notIn"
    asked = rest.get("processDefinitionKey", {})
    asked = asked if isinstance(asked, dict) else {"$eq": asked}
    return (
        SearchQuery(rest, query.sort, query.page),
        {"processDefinitionKey": asked | {operator: latest}},
    )


@endpoint("GET", "/v2/process-definitions/{definition_key}", READ_DEFINITION)
async def get_definition(api: RestApi, definition_key: str) -> DefinitionResult:
    """Show a process definition."""
    key = api.look.key(definition_key, "process definition")
    found = await api.look.readable_definition(key)
    if found is None:
        raise NotFound(
            f"There is no process definition with key {definition_key}",
            key=definition_key,
        )
    return _result(found)


@endpoint(
    "GET", "/v2/process-definitions/{definition_key}/xml", READ_DEFINITION, media_type="text/xml"
)
async def get_definition_xml(api: RestApi, definition_key: str) -> bytes:
    """Give a process definition as BPMN."""
    return (await api.processes.source(definition_key)).content.encode()


def _of_row(row: Row, known: FoundDefinition | None) -> DefinitionResult:
    tag = known.version_tag if known else ""
    return DefinitionResult(
        str(row["process_definition_key"]), row["process_id"], row["version"], row["name"] or None,
        resource_name(row["process_id"]), tag or None,
    )  # fmt: skip


def _result(found: FoundDefinition) -> DefinitionResult:
    return DefinitionResult(
        str(found.key), found.process_id, found.version, found.name or None,
        resource_name(found.process_id), found.version_tag or None,
    )  # fmt: skip


DEFINITION_ENDPOINTS: tuple[Endpoint, ...] = (
    search_definitions, get_definition, get_definition_xml,
)  # fmt: skip
