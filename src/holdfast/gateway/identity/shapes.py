"""The shapes of the API about who may do what."""

from datetime import datetime

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.numbers import TokenMs
from holdfast.gateway.shapes import Question, Shape


class NewUser(Question, frozen=True):
    """A person."""

    username: str
    password: str | None = None  # for basic authentication, if the node allows it
    name: str = ""
    email: str = ""


class UserChange(Question, frozen=True):
    """New properties of a user."""

    name: str = ""
    email: str = ""
    password: str | None = None  # None: unchanged


class UserView(Shape, frozen=True):
    """A person."""

    username: str
    name: str
    email: str
    has_password: bool


class Users(Shape, frozen=True):
    """All users, by name."""

    items: list[UserView]


class GroupCreation(Question, frozen=True):
    """A group to create."""

    group_id: str
    name: str = ""
    description: str = ""


class RoleCreation(Question, frozen=True):
    """A role to create."""

    role_id: str
    name: str = ""
    description: str = ""


class NewGroup(Question, frozen=True):
    """A group, or a role."""

    id: str
    name: str = ""
    description: str = ""


class GroupChange(Question, frozen=True):
    """New properties of a group or a role."""

    name: str = ""
    description: str = ""


_T = OwnerType
MEMBERS: dict[OwnerType, tuple[OwnerType, ...]] = {
    _T.GROUP: (_T.USER, _T.CLIENT),
    _T.ROLE: (_T.USER, _T.CLIENT, _T.GROUP),
}
"""Who can be in what."""


class Member(Question, frozen=True):
    """Who belongs to a group, or has a role."""

    member_type: OwnerType
    member_id: str


class GroupView(Shape, frozen=True):
    """A group, or a role."""

    id: str
    name: str
    description: str
    members: list[Member]


class Groups(Shape, frozen=True):
    """All groups, or all roles, by their ids."""

    items: list[GroupView]


class NewToken(Question, frozen=True):
    """A token for a machine."""

    client_id: str  # authorizations and memberships belong to the client, not to the token
    lasts_ms: TokenMs = 0  # 0: for ever


class TokenReceipt(Shape, frozen=True):
    """A new token. It is shown only once: the node stores a digest of it."""

    token_id: str
    client_id: str
    token: str
    expires: datetime | None = None


class TokenView(Shape, frozen=True):
    """A token of a machine."""

    token_id: str
    client_id: str
    created: datetime
    expires: datetime | None = None


class Tokens(Shape, frozen=True):
    """All tokens, by their ids."""

    items: list[TokenView]


class ConsoleSession(Shape, frozen=True):
    """A session of the console."""

    session_id: str
    owner_type: OwnerType
    owner_id: str
    created: datetime
    expires: datetime | None = None


class ConsoleSessions(Shape, frozen=True):
    """All sessions of the console, one for each browser."""

    items: list[ConsoleSession]


class NewAuthorization(Question, frozen=True):
    """Permissions of a user, client, group or role on a resource."""

    owner_type: OwnerType
    owner_id: str
    resource_type: ResourceType
    resource_id: str  # "*": every one there is
    permission_types: list[Permission]


class AuthorizationReceipt(Shape, frozen=True):
    """A new authorization."""

    authorization_key: str


class AuthorizationView(Shape, frozen=True):
    """Permissions of a user, client, group or role on a resource."""

    authorization_key: str
    owner_type: OwnerType
    owner_id: str
    resource_type: ResourceType
    resource_id: str
    permission_types: list[Permission]


class AuthorizationQuery(Question, frozen=True):
    """Which authorizations to list: those that match every given field."""

    owner_type: OwnerType | None = None
    owner_id: str | None = None
    resource_type: ResourceType | None = None
    resource_id: str | None = None


class Authorizations(Shape, frozen=True):
    """Authorizations in the order of their keys."""

    items: list[AuthorizationView]


class OwnIdentity(Shape, frozen=True):
    """Who asks, as the node sees it."""

    owner_type: OwnerType | None  # None: nobody has to say who they are
    owner_id: str | None
    groups: list[str]
    roles: list[str]
    authorizations: list[AuthorizationView]  # its own, and those of its groups and roles
