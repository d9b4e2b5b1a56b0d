"""Groups and roles: create, get, change, delete, search."""

from typing import Annotated, Any

import msgspec

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import one
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.identity.shapes import (
    GroupChange,
    GroupCreation,
    GroupView,
    NewGroup,
    RoleCreation,
)
from holdfast.gateway.rest.common import PageAnswer, SearchQuery
from holdfast.gateway.rest.fields import Resource, plain
from holdfast.gateway.rest.known import search_known
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.shapes import Shape

_GROUP, _ROLE = OwnerType.GROUP, OwnerType.ROLE


async def group_of(api: Api, type_: OwnerType, id_: str) -> GroupView:
    """A group, or a role, with its members; NotFound if there is none to be seen."""
    for each in (await api.identity.groups(type_)).items:
        if each.id == id_:
            return each
    raise NotFound(f"There is no {type_.lower()} {id_!r}")


# --- groups -----------------------------------------------------------------------------------


class GroupResult(Shape, frozen=True):
    """A group."""

    group_id: str
    name: str
    description: str | None


class GroupSearchResult(Shape, frozen=True):
    """A page of groups."""

    items: list[GroupResult]
    page: PageAnswer


GROUPS = Resource("groups", "groupId", {"groupId": plain("groupId"), "name": plain("name")})


class GroupQuery(SearchQuery, frozen=True):
    """Which groups to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(GROUPS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(GROUPS)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/groups", one(ResourceType.GROUP, Permission.CREATE), creates=True)
async def create_group(api: Api, body: GroupCreation) -> GroupResult:
    """Create a group."""
    new = NewGroup(body.group_id, body.name, body.description)
    await api.identity.create_group(_GROUP, new)
    return GroupResult(body.group_id, body.name, body.description or None)


@endpoint("GET", "/v2/groups/{group_id}", one(ResourceType.GROUP, Permission.READ))
async def get_group(api: Api, group_id: str) -> GroupResult:
    """Show a group."""
    return _group(await group_of(api, _GROUP, group_id))


@endpoint("PUT", "/v2/groups/{group_id}", one(ResourceType.GROUP, Permission.UPDATE))
async def update_group(api: Api, group_id: str, body: GroupChange) -> GroupResult:
    """Change what is known of a group."""
    await api.identity.update_group(_GROUP, group_id, body)
    return GroupResult(group_id, body.name, body.description or None)


@endpoint("DELETE", "/v2/groups/{group_id}", one(ResourceType.GROUP, Permission.DELETE))
async def delete_group(api: Api, group_id: str) -> None:
    """Delete a group with all that it was given."""
    await api.identity.delete_group(_GROUP, group_id)


@endpoint("POST", "/v2/groups/search", one(ResourceType.GROUP, Permission.READ))
async def search_groups(api: Api, body: GroupQuery | None) -> GroupSearchResult:
    """Search groups."""
    items = [_group(each) for each in (await api.identity.groups(_GROUP)).items]
    return GroupSearchResult(*search_known(GROUPS, items, body))


def _group(view: GroupView) -> GroupResult:
    return GroupResult(view.id, view.name, view.description or None)


# --- roles ------------------------------------------------------------------------------------


class RoleResult(Shape, frozen=True):
    """A role."""

    role_id: str
    name: str
    description: str | None


class RoleSearchResult(Shape, frozen=True):
    """A page of roles."""

    items: list[RoleResult]
    page: PageAnswer


ROLES = Resource("roles", "roleId", {"roleId": plain("roleId"), "name": plain("name")})


class RoleQuery(SearchQuery, frozen=True):
    """Which roles to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(ROLES)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(ROLES)] = msgspec.field(default_factory=list)


@endpoint("POST", "/v2/roles", one(ResourceType.ROLE, Permission.CREATE), creates=True)
async def create_role(api: Api, body: RoleCreation) -> RoleResult:
    """Create a role."""
    new = NewGroup(body.role_id, body.name, body.description)
    await api.identity.create_group(_ROLE, new)
    return RoleResult(body.role_id, body.name, body.description or None)


@endpoint("GET", "/v2/roles/{role_id}", one(ResourceType.ROLE, Permission.READ))
async def get_role(api: Api, role_id: str) -> RoleResult:
    """Show a role."""
    return _role(await group_of(api, _ROLE, role_id))


@endpoint("PUT", "/v2/roles/{role_id}", one(ResourceType.ROLE, Permission.UPDATE))
async def update_role(api: Api, role_id: str, body: GroupChange) -> RoleResult:
    """Change what is known of a role."""
    await api.identity.update_group(_ROLE, role_id, body)
    return RoleResult(role_id, body.name, body.description or None)


@endpoint("DELETE", "/v2/roles/{role_id}", one(ResourceType.ROLE, Permission.DELETE))
async def delete_role(api: Api, role_id: str) -> None:
    """Delete a role with all that it was given."""
    await api.identity.delete_group(_ROLE, role_id)


@endpoint("POST", "/v2/roles/search", one(ResourceType.ROLE, Permission.READ))
async def search_roles(api: Api, body: RoleQuery | None) -> RoleSearchResult:
    """Search roles."""
    items = [_role(each) for each in (await api.identity.groups(_ROLE)).items]
    return RoleSearchResult(*search_known(ROLES, items, body))


@endpoint("POST", "/v2/groups/{group_id}/roles/search", one(ResourceType.ROLE, Permission.READ))
async def search_group_roles(api: Api, group_id: str, body: RoleQuery | None) -> RoleSearchResult:
    """Search roles that a group has."""
    await group_of(api, _GROUP, group_id)
    items = [
        _role(each)
        for each in (await api.identity.groups(_ROLE)).items
        if any((of.member_type, of.member_id) == (_GROUP, group_id) for of in each.members)
    ]
    return RoleSearchResult(*search_known(ROLES, items, body))


def _role(view: GroupView) -> RoleResult:
    return RoleResult(view.id, view.name, view.description or None)


GROUP_ENDPOINTS: tuple[Endpoint, ...] = (
    create_group, get_group, update_group, delete_group, search_groups,
    create_role, get_role, update_role, delete_role, search_roles, search_group_roles,
)  # fmt: skip
