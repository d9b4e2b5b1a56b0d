"""What can be asked of a partition about who is known and what they may do.

Every partition has all of it. What lets requests in waits for nobody: what was given a moment ago
counts before it is durable, and the partition that does a command decides again.
"""

import msgspec

from holdfast.engine.asker import Asker
from holdfast.engine.identity.guard import missing_of
from holdfast.engine.identity.state import owner, owner_parts
from holdfast.engine.identity.values import (
    EVERY_ID,
    NAMELESS,
    Authorization,
    Group,
    OwnerType,
    Permission,
    ResourceType,
    Token,
    User,
)
from holdfast.engine.kernel import Required
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader

_RESOURCES = {OwnerType.GROUP: ResourceType.GROUP, OwnerType.ROLE: ResourceType.ROLE}


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


# --- letting in -------------------------------------------------------------------------------


class FindToken(Query[Token | None], frozen=True):
    """A token by its id."""

    is_settled = is_fresh = False
    id: str


def find_token(reader: Reader, query: FindToken) -> Token | None:
    stored = reader.state.identities.tokens.get(query.id)
    return None if stored is None else stored.token


class FindPassword(Query[bytes], frozen=True):
    """What is kept of a user's password; nothing if there is no such user, or no password."""

    is_settled = is_fresh = False
    username: str


def find_password(reader: Reader, query: FindPassword) -> bytes:
    stored = reader.state.identities.users.get(query.username)
    return b"" if stored is None else stored.user.password


class IsLetIn(Query[bool], frozen=True):
    """Whether somebody has one of some permissions for one resource at least.

    Where resources have no names, it is for all. An authorization for one batch operation or one
    log by its name is for nothing that there is.
    """

    is_settled = is_fresh = False
    asker: Asker
    alternatives: tuple[tuple[ResourceType, Permission], ...]


def is_let_in(reader: Reader, query: IsLetIn) -> bool:
    identities = reader.state.identities
    for resource, permission in query.alternatives:
        allowed = identities.allowed(query.asker, resource, (permission,))
        if EVERY_ID in allowed if resource in NAMELESS else allowed:
            return True
    return False


class FoundMissing(_Answer, frozen=True):
    """A permission that somebody lacks, for one resource."""

    required: Required
    id: str


class FindMissing(Query[FoundMissing | None], frozen=True):
    """The first of some permissions that the asker lacks; None: the asker has all."""

    is_settled = is_fresh = False
    required: tuple[Required, ...]


def find_missing(reader: Reader, query: FindMissing) -> FoundMissing | None:
    if reader.asker is None:
        return None
    missing = missing_of(reader.state, reader.asker, query.required)
    return None if missing is None else FoundMissing(*missing)


class FindAllowed(Query[list[frozenset[str] | None]], frozen=True):
    """With which resources the asker may do something, right by right; None: with all."""

    is_settled = is_fresh = False
    rights: tuple[tuple[ResourceType, Permission], ...]


def find_allowed(reader: Reader, query: FindAllowed) -> list[frozenset[str] | None]:
    return [reader.allowed(*right) for right in query.rights]


# --- looking ----------------------------------------------------------------------------------


class ListUsers(Query[list[User]], frozen=True):
    """The users that the asker may see; of a password only whether there is one."""


def list_users(reader: Reader, query: ListUsers) -> list[User]:
    return [
        msgspec.structs.replace(each.user, password=b"*" if each.user.password else b"")
        for name, each in reader.state.identities.users.scan()
        if reader.may(ResourceType.USER, Permission.READ, name)
    ]


class FoundGroup(_Answer, frozen=True):
    """A group or a role with its members."""

    group: Group
    members: list[tuple[OwnerType, str]]


class ListGroups(Query[list[FoundGroup]], frozen=True):
    """The groups, or the roles, that the asker may see."""

    type: OwnerType


def list_groups(reader: Reader, query: ListGroups) -> list[FoundGroup]:
    return [
        FoundGroup(stored.group, [owner_parts(each) for each in stored.members])
        for id_, stored in reader.state.identities.family(query.type).scan()
        if reader.may(_RESOURCES[query.type], Permission.READ, id_)
    ]


class FoundToken(_Answer, frozen=True):
    """A token of a machine, without what is secret."""

    id: str
    client_id: str
    created_ms: int
    expires_ms: int
    signed_in: OwnerType | None = None  # of a session


class ListTokens(Query[list[FoundToken]], frozen=True):
    """The tokens, or the sessions of the console, that the asker may see."""

    is_of_sessions: bool = False


def list_tokens(reader: Reader, query: ListTokens) -> list[FoundToken]:
    return [
        FoundToken(id_, each.client_id, stored.created_ms, each.expires_ms, each.signed_in)
        for id_, stored in reader.state.identities.tokens.scan()
        for each in (stored.token,)
        if (each.signed_in is not None) == query.is_of_sessions
        and reader.may(ResourceType.TOKEN, Permission.READ, each.client_id)
    ]


class ListAuthorizations(Query[list[tuple[int, Authorization]]], frozen=True):
    """The authorizations that meet all that is asked, with their keys."""

    owner_type: OwnerType | None = None
    owner_id: str | None = None
    resource_type: ResourceType | None = None
    resource_id: str | None = None


def list_authorizations(
    reader: Reader, query: ListAuthorizations
) -> list[tuple[int, Authorization]]:
    if not reader.may(ResourceType.AUTHORIZATION, Permission.READ, EVERY_ID):
        return []
    return [
        (key, each)
        for key, each in reader.state.identities.authorizations.scan()
        if query.owner_type in (None, each.owner_type)
        and query.owner_id in (None, each.owner_id)
        and query.resource_type in (None, each.resource_type)
        and query.resource_id in (None, each.resource_id)
    ]


class FoundGrant(_Answer, frozen=True):
    """Something that the asker may do, and as whom."""

    owner_type: OwnerType
    owner_id: str
    authorization: int
    resource_type: ResourceType
    resource_id: str
    permissions: tuple[Permission, ...]


class FoundOwners(_Answer, frozen=True):
    """Every owner that the asker acts as, and all that these may do."""

    owners: list[tuple[OwnerType, str]]
    grants: list[FoundGrant]


class FindOwners(Query[FoundOwners], frozen=True):
    """Every owner that the asker acts as: user or client, groups and roles."""


def find_owners(reader: Reader, query: FindOwners) -> FoundOwners:
    if reader.asker is None:
        return FoundOwners([], [])
    identities = reader.state.identities
    owners = [owner_parts(each) for each in identities.owners(reader.asker)]
    grants = [
        FoundGrant(
            type_, id_, grant.authorization, grant.resource_type, grant.resource_id,
            grant.permissions,
        )
        for type_, id_ in owners
        for grant in identities.grants(owner(type_, id_))
    ]  # fmt: skip
    return FoundOwners(owners, grants)


class HasNobody(Query[bool], frozen=True):
    """Whether nobody has a role, is in a group or was given anything."""


def has_nobody(reader: Reader, query: HasNobody) -> bool:
    return reader.state.identities.has_nobody()


QUERIES = questions(
    find_token, find_password, is_let_in, find_missing, find_allowed, list_users, list_groups,
    list_tokens, list_authorizations, find_owners, has_nobody,
)  # fmt: skip
