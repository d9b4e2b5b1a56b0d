"""Variables: get and search.

A variable is known by its scope and its name. The API wants a number: the digits of the scope's
key, digits of a digest of the name, and last how many digits the scope's key has beyond ten.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from holdfast.errors import InvalidArgument, InvalidState, NotFound
from holdfast.gateway.access.needs import READ_INSTANCE
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.rest.common import TENANT, PageAnswer, RestApi, SearchQuery
from holdfast.gateway.rest.fields import KEY, TENANT_FIELD, Resource, page_of, plain, search
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.rest.tables import Row, TablesMissing
from holdfast.gateway.shapes import Shape
from holdfast.limits import PAGE_ITEMS_MAX

_KEY_DIGITS = 25  # the longest key that the API allows
_SCOPE_DIGITS_MIN = 10


class VariableResult(Shape, frozen=True):
    """A variable with its last value."""

    variable_key: str
    name: str
    value: str  # JSON
    scope_key: str
    process_instance_key: str
    is_truncated: bool = False
    tenant_id: str = TENANT
    root_process_instance_key: str | None = None


class VariableSearchResult(Shape, frozen=True):
    """A page of variables."""

    items: list[VariableResult]
    page: PageAnswer


VARIABLES = Resource(
    "variables",
    "scopeKey",
    {
        "name": plain("name"),
        "value": plain("value"),
        "scopeKey": plain("scopeKey", KEY),
        "processInstanceKey": plain("processInstanceKey", KEY),
        "tenantId": TENANT_FIELD,
    },
)


class VariableQuery(SearchQuery, frozen=True):
    """Which variables to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(VARIABLES)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(VARIABLES)] = msgspec.field(default_factory=list)


def variable_key(scope: int, name: str) -> str:
    """The number of a variable."""
    digits = str(scope)
    room = _KEY_DIGITS - 1 - len(digits)
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % 10**room
    return f"{digits}{digest:0{room}}{len(digits) - _SCOPE_DIGITS_MIN}"


def _scope_of(key: str) -> str:
    if not (key.isascii() and key.isdigit()):
        raise InvalidArgument(
            f"Expected the key of a variable, {_KEY_DIGITS} digits, but found {key[:50]!r}"
        )
    if len(key) != _KEY_DIGITS:
        raise NotFound(f"There is no variable with key {key[:50]}", key=key[:50])
    return key[: int(key[-1]) + _SCOPE_DIGITS_MIN]


@endpoint("POST", "/v2/variables/search", READ_INSTANCE)
async def search_variables(api: RestApi, body: VariableQuery | None) -> VariableSearchResult:
    """Search variables by their last values."""
    found = await search(api.tables, VARIABLES, body)
    return VariableSearchResult(await _of_rows(api, found.rows), page_of(found))


@endpoint("GET", "/v2/variables/{variable_key}", READ_INSTANCE)
async def get_variable(api: RestApi, variable_key: str) -> VariableResult:
    """Show a variable: as it is now while its scope is active, later from the tables."""
    scope = api.look.key(_scope_of(variable_key), "variable")
    found = await api.look.variables(scope)
    if found is not None:
        root = await api.look.root(found.instance)
        known = [
            _result(scope, name, value.decode(), found.instance, root)
            for name, value in found.variables.items()
        ]
    else:
        known = await _of_rows(api, await _ended_scope(api, scope))
    named = [each for each in known if each.variable_key == variable_key]
    if not named:
        raise NotFound(f"There is no variable with key {variable_key}", key=variable_key)
    if len(named) > 1:  # one in some hundred million pairs of names
        names = ", ".join(each.name for each in named)
        raise InvalidState(
            f"Expected one variable with key {variable_key}, but {names} share it; search for the"
            " name",
            key=variable_key,
        )
    return named[0]


async def _ended_scope(api: RestApi, scope: int) -> list[Row]:
    try:
        wanted, page = {"scopeKey": scope}, {"limit": PAGE_ITEMS_MAX}
        return (await api.tables.search("variables", wanted, [], page)).rows
    except TablesMissing:
        return []


async def _of_rows(api: RestApi, rows: Sequence[Row]) -> list[VariableResult]:
    roots = await api.look.roots([row["process_instance_key"] for row in rows])
    return [
        _result(
            row["scope_key"], row["name"], row["value"], row["process_instance_key"],
            roots[row["process_instance_key"]],
        )
        for row in rows
    ]  # fmt: skip


def _result(scope: int, name: str, value: str, instance: int, root: str | None) -> VariableResult:
    return VariableResult(
        variable_key(scope, name), name, value, str(scope), str(instance),
        root_process_instance_key=root,
    )  # fmt: skip


VARIABLE_ENDPOINTS: tuple[Endpoint, ...] = (search_variables, get_variable)
