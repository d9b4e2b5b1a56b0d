"""Authorizations: create, get, change, delete, search; and who asks.

A search leaves out authorizations for resources that the API has no word for, as its clients cannot
read them, unless its filter names their type. `/v2/authorizations/listing` has all.
"""

from typing import Annotated, Any

import msgspec

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import Everyone, one
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.identity.api import IdentityApi
from holdfast.gateway.identity.shapes import (
    AuthorizationQuery,
    AuthorizationView,
    OwnIdentity,
)
from holdfast.gateway.rest.common import PageAnswer, SearchQuery
from holdfast.gateway.rest.fields import Resource, member_of, plain, word
from holdfast.gateway.rest.known import search_known
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.shapes import Shape

_R, _P = ResourceType, Permission
OWN_TYPES = frozenset(
    {
        _R.CONTENT, _R.DISTRIBUTION, _R.JOURNAL, _R.PARTITION_GROUP, _R.SCHEDULE, _R.TASK,
        _R.TOKEN, _R.TRANSACTION,
    }
)  # fmt: skip
OWN_PERMISSIONS = frozenset(
    {
        _P.WORK, _P.PUBLISH, _P.SUBSCRIBE, _P.ADMINISTER,
        _P.CREATE_BATCH_OPERATION_RETRY_TASK, _P.CREATE_BATCH_OPERATION_DISCARD_TASK,
    }
)  # fmt: skip
_UNUSED_TYPES = (
    "AUDIT_LOG", "BACKUP", "CLUSTER_VARIABLE", "COMPONENT", "DECISION_DEFINITION",
    "DECISION_REQUIREMENTS_DEFINITION", "DOCUMENT", "EXPORTER", "EXPRESSION", "GLOBAL_LISTENER",
    "MAPPING_RULE", "SECRET", "TENANT", "USER_TASK",
)  # fmt: skip
_NOBODY = "anonymous"  # where nobody has to say who they are; the API wants a name
_RESOURCE_TYPES = {str(each): (str(each),) for each in (*ResourceType, *_UNUSED_TYPES)}
_OWNER_TYPES = {str(each): (str(each),) for each in (*OwnerType, "MAPPING_RULE", "UNSPECIFIED")}


class AuthorizationResult(Shape, frozen=True):
    """Permissions of a user, client, group or role on a resource."""

    authorization_key: str
    owner_id: str
    owner_type: OwnerType
    resource_type: ResourceType
    resource_id: str
    permission_types: list[Permission]
    resource_property_name: str | None = None  # always null: resources are identified by id


class AuthorizationSearchResult(Shape, frozen=True):
    """A page of authorizations."""

    items: list[AuthorizationResult]
    page: PageAnswer


_READ = one(ResourceType.AUTHORIZATION, Permission.READ)
AUTHORIZATIONS = Resource(
    "authorizations",
    "authorizationKey",
    {
        "ownerId": plain("ownerId"),
        "ownerType": word("ownerType", _OWNER_TYPES),
        "resourceIds": member_of("resourceId"),
        "resourceId": plain("resourceId"),
        "resourcePropertyNames": member_of("resourcePropertyName"),
        "resourcePropertyName": plain("resourcePropertyName"),
        "resourceType": word("resourceType", _RESOURCE_TYPES),
    },
)


class AuthorizationSearch(SearchQuery, frozen=True):
    """Which authorizations to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(AUTHORIZATIONS)] = msgspec.field(
        default_factory=dict
    )
    sort: Annotated[list[dict[str, Any]], sort_of(AUTHORIZATIONS)] = msgspec.field(
        default_factory=list
    )


@endpoint("GET", "/v2/authorizations/{authorization_key}", _READ)
async def get_authorization(api: Api, authorization_key: str) -> AuthorizationResult:
    """Show what is permitted."""
    for each in (await api.identity.authorizations(AuthorizationQuery())).items:
        if each.authorization_key == authorization_key:
            return _of_view(each)
    raise NotFound(f"There is no authorization {authorization_key}")


@endpoint("POST", "/v2/authorizations/search", _READ)
async def search_authorizations(
    api: Api, body: AuthorizationSearch | None
) -> AuthorizationSearchResult:
    """Search authorizations."""
    found = (await api.identity.authorizations(AuthorizationQuery())).items
    return AuthorizationSearchResult(*_search(found, body))


def _search(
    found: list[AuthorizationView], query: SearchQuery | None
) -> tuple[list[AuthorizationResult], PageAnswer]:
    shows_all = query is not None and "resourceType" in query.filter
    items = [_of_view(each) for each in found if shows_all or each.resource_type not in OWN_TYPES]
    return search_known(AUTHORIZATIONS, items, query)


def _of_view(view: AuthorizationView) -> AuthorizationResult:
    permissions = view.permission_types
    if view.resource_type not in OWN_TYPES:
        permissions = [each for each in permissions if each not in OWN_PERMISSIONS]
    return AuthorizationResult(
        view.authorization_key, view.owner_id, view.owner_type, view.resource_type,
        view.resource_id, permissions,
    )  # fmt: skip


# --- who asks ---------------------------------------------------------------------------------


class Me(OwnIdentity, frozen=True, kw_only=True):
    """Who asks, as the node sees it."""

    username: str
    display_name: str | None
    email: str | None
    authorized_components: list[str] = msgspec.field(default_factory=list)
    tenants: list[str] = msgspec.field(default_factory=list)
    sales_plan_type: str | None = None
    c8_links: dict[str, str] = msgspec.field(default_factory=dict)
    can_logout: bool = False


class OwnAuthorizations(AuthorizationSearchResult, frozen=True, kw_only=True):
    """A page of the caller's authorizations."""

    authorizations_enabled: bool


@serves(IdentityApi.own_identity)
async def get_own_identity(api: Api) -> Me:
    """Return the identity of the caller and what it may do."""
    own = await api.identity.own_identity()
    user = None
    if own.owner_type is OwnerType.USER:
        users = (await api.identity.users()).items
        user = next((each for each in users if each.username == own.owner_id), None)
    return Me(
        own.owner_type, own.owner_id, own.groups, own.roles, own.authorizations,
        username=own.owner_id or _NOBODY, display_name=(user and user.name) or own.owner_id,
        email=(user and user.email) or None,
    )  # fmt: skip


@endpoint("POST", "/v2/authentication/me/authorizations/search", Everyone.KNOWN)
async def search_own_authorizations(
    api: Api, body: AuthorizationSearch | None
) -> OwnAuthorizations:
    """Search what the caller may do."""
    own = await api.identity.own_identity()
    items, page = _search(own.authorizations, body)
    return OwnAuthorizations(items, page, authorizations_enabled=api.access is not None)


AUTHORIZATION_ENDPOINTS: tuple[Endpoint, ...] = (
    get_own_identity, search_own_authorizations, get_authorization, search_authorizations,
)  # fmt: skip
