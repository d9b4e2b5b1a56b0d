"""Users: create, get, change, delete, search."""

from typing import Annotated, Any

import msgspec

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import one
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.identity.api import IdentityApi
from holdfast.gateway.identity.shapes import NewUser, UserChange, UserView
from holdfast.gateway.rest.common import PageAnswer, SearchQuery
from holdfast.gateway.rest.fields import Resource, plain
from holdfast.gateway.rest.known import search_known
from holdfast.gateway.rest.queries import filter_of, sort_of
from holdfast.gateway.shapes import Shape


class UserResult(Shape, frozen=True):
    """A person."""

    username: str
    name: str | None
    email: str | None


class UserSearchResult(Shape, frozen=True):
    """A page of users."""

    items: list[UserResult]
    page: PageAnswer


USERS = Resource(
    "users",
    "username",
    {"username": plain("username"), "name": plain("name"), "email": plain("email")},
)


class UserQuery(SearchQuery, frozen=True):
    """Which users to search for, in which order, and which page."""

    filter: Annotated[dict[str, Any], filter_of(USERS)] = msgspec.field(default_factory=dict)
    sort: Annotated[list[dict[str, Any]], sort_of(USERS)] = msgspec.field(default_factory=list)


@serves(IdentityApi.create_user)
async def create_user(api: Api, body: NewUser) -> UserResult:
    """Create a user."""
    await api.identity.create_user(body)
    return UserResult(body.username, body.name or None, body.email or None)


@endpoint("GET", "/v2/users/{username}", one(ResourceType.USER, Permission.READ))
async def get_user(api: Api, username: str) -> UserResult:
    """Show a user."""
    for each in (await api.identity.users()).items:
        if each.username == username:
            return _of_view(each)
    raise NotFound(f"There is no user {username!r}")


@serves(IdentityApi.update_user)
async def update_user(api: Api, username: str, body: UserChange) -> UserResult:
    """Change what is known of a user."""
    await api.identity.update_user(username, body)
    return UserResult(username, body.name or None, body.email or None)


@endpoint("POST", "/v2/users/search", one(ResourceType.USER, Permission.READ))
async def search_users(api: Api, body: UserQuery | None) -> UserSearchResult:
    """Search users."""
    items = [_of_view(each) for each in (await api.identity.users()).items]
    return UserSearchResult(*search_known(USERS, items, body))


def _of_view(view: UserView) -> UserResult:
    return UserResult(view.username, view.name or None, view.email or None)


USER_ENDPOINTS: tuple[Endpoint, ...] = (
    create_user, get_user, update_user, search_users,
)  # fmt: skip
