"""Who is in a group, and who has a role: one path for each type of member."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.identity.shapes import MEMBERS, Member
from holdfast.gateway.rest.common import PageAnswer, SearchQuery
from holdfast.gateway.rest.fields import Resource, plain
from holdfast.gateway.rest.groups import group_of
from holdfast.gateway.rest.known import search_known
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.shapes import Shape

_T = OwnerType


class UserMember(Shape, frozen=True):
    """A user in a group, or with a role."""

    username: str


class ClientMember(Shape, frozen=True):
    """A client in a group, or with a role."""

    client_id: str


class GroupMember(Shape, frozen=True):
    """A group with a role."""

    group_id: str


class UserMembers(Shape, frozen=True):
    """A page of users."""

    items: list[UserMember]
    page: PageAnswer


class ClientMembers(Shape, frozen=True):
    """A page of clients."""

    items: list[ClientMember]
    page: PageAnswer


class GroupMembers(Shape, frozen=True):
    """A page of groups."""

    items: list[GroupMember]
    page: PageAnswer


_USERS, _CLIENTS, _GROUPS = (
    Resource("members", field, {field: plain(field)})
    for field in ("username", "clientId", "groupId")
)


class UserMemberQuery(SearchQuery, frozen=True):
    """Which users to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(_USERS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(_USERS)] = msgspec.field(default_factory=list)


class ClientMemberQuery(SearchQuery, frozen=True):
    """Which clients to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(_CLIENTS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(_CLIENTS)] = msgspec.field(default_factory=list)


class GroupMemberQuery(SearchQuery, frozen=True):
    """Which groups to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(_GROUPS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(_GROUPS)] = msgspec.field(default_factory=list)


_KINDS: dict[OwnerType, tuple[Any, Any, Any, Resource]] = {
    _T.USER: (UserMemberQuery, UserMembers, UserMember, _USERS),
    _T.CLIENT: (ClientMemberQuery, ClientMembers, ClientMember, _CLIENTS),
    _T.GROUP: (GroupMemberQuery, GroupMembers, GroupMember, _GROUPS),
}
"""What is asked and answered about a type of member."""
_RESOURCES = {_T.GROUP: ResourceType.GROUP, _T.ROLE: ResourceType.ROLE}
_PARAMETERS = {_T.USER: "username", _T.CLIENT: "client_id", _T.GROUP: "group_id"}


def members_path(type_: OwnerType, member_type: OwnerType) -> str:
    """Where the members of a type are; with the parameter of the group or role."""
    word = type_.lower()
    return f"/v2/{word}s/{{{word}_id}}/{member_type.lower()}s"


def _of(type_: OwnerType, member_type: OwnerType) -> Iterator[Endpoint]:
    """The three endpoints about one type of member."""
    group, member = type_.lower(), member_type.lower()
    path = members_path(type_, member_type)
    member_path = f"{path}/{{{_PARAMETERS[member_type]}}}"
    query, answer, shape, resource = _KINDS[member_type]

    async def assign(api: Api, id_: str, member_id: str) -> None:
        await api.identity.add_member(type_, id_, Member(member_type, member_id))

    async def unassign(api: Api, id_: str, member_id: str) -> None:
        await api.identity.remove_member(type_, id_, Member(member_type, member_id))

    async def search(api: Api, id_: str, body: Any) -> Any:
        members = (await group_of(api, type_, id_)).members
        items = [shape(each.member_id) for each in members if each.member_type is member_type]
        return answer(*search_known(resource, items, body))

    search.__annotations__ |= {"body": query | None, "return": answer}
    for call, name, about in (
        (assign, f"assign_{member}_to_{group}", f"Put a {member} into a {group}."),
        (unassign, f"unassign_{member}_from_{group}", f"Take a {member} out of a {group}."),
        (search, f"search_{member}s_for_{group}", f"Search the {member}s of a {group}."),
    ):
        call.__name__, call.__doc__ = name, about
    resource_type = _RESOURCES[type_]
    changes, reads = (one(resource_type, each) for each in (Permission.UPDATE, Permission.READ))
    yield endpoint("PUT", member_path, changes)(assign)
    yield endpoint("DELETE", member_path, changes)(unassign)
    yield endpoint("POST", f"{path}/search", reads)(search)


MEMBER_ENDPOINTS: tuple[Endpoint, ...] = tuple(
    each for type_, types in MEMBERS.items() for member in types for each in _of(type_, member)
)
