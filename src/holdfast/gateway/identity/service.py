"""Users, groups, roles, tokens and authorizations: make, change and list them."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, TypeVar

from holdfast.clock import Clock
from holdfast.engine.identity.queries import (
    FindOwners,
    FoundGrant,
    FoundGroup,
    HasNobody,
    ListAuthorizations,
    ListGroups,
    ListTokens,
    ListUsers,
)
from holdfast.engine.identity.values import (
    DECIDING_PARTITION,
    EVERY_ID,
    Authorization,
    AuthorizationIntent,
    AuthorizationRef,
    Group,
    GroupIntent,
    GroupRef,
    Membership,
    OwnerType,
    Token,
    TokenIntent,
    TokenRef,
    User,
    UserIntent,
    UserRef,
)
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.query import Query
from holdfast.errors import Code
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, asker_now
from holdfast.gateway.access.passwords import kept_password, new_token
from holdfast.gateway.access.roles import FIRST_CLIENT, ROLES
from holdfast.gateway.distribution.service import DistributionService
from holdfast.gateway.identity.api import IdentityApi
from holdfast.gateway.identity.shapes import (
    AuthorizationQuery,
    AuthorizationReceipt,
    Authorizations,
    AuthorizationView,
    ConsoleSession,
    ConsoleSessions,
    GroupChange,
    Groups,
    GroupView,
    Member,
    NewAuthorization,
    NewGroup,
    NewToken,
    NewUser,
    OwnIdentity,
    TokenReceipt,
    Tokens,
    TokenView,
    UserChange,
    Users,
    UserView,
)
from holdfast.limits import DEPLOYMENT_WAIT_MS, NAME_CHARS_MAX, TOKEN_MS_MAX
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY

_V = ValueType
A = TypeVar("A")


class IdentityService(IdentityApi):
    """What can be asked about who may do what."""

    def __init__(self, asked: Asked, distributions: DistributionService, clock: Clock) -> None:
        self._asked = asked
        self._distributions = distributions
        self._clock = clock

    # --- users --------------------------------------------------------------------------------

    async def create_user(self, new: NewUser) -> None:
        kept = await _kept(new.password)
        await self._do(_V.USER, UserIntent.CREATE, User(new.username, new.name, new.email, kept))

    async def update_user(self, username: str, change: UserChange) -> None:
        user = User(username, change.name, change.email, await _kept(change.password))
        await self._do(_V.USER, UserIntent.UPDATE, user)

    async def delete_user(self, username: str) -> None:
        await self._do(_V.USER, UserIntent.DELETE, UserRef(username))

    async def users(self) -> Users:
        found = await self._ask(ListUsers())
        return Users(
            [UserView(each.username, each.name, each.email, bool(each.password)) for each in found]
        )

    # --- groups and roles ---------------------------------------------------------------------

    async def create_group(self, type_: OwnerType, new: NewGroup) -> None:
        group = Group(new.id, new.name, new.description)
        await self._do(_V[type_], GroupIntent.CREATE, group)

    async def update_group(self, type_: OwnerType, id_: str, change: GroupChange) -> None:
        group = Group(id_, change.name, change.description)
        await self._do(_V[type_], GroupIntent.UPDATE, group)

    async def delete_group(self, type_: OwnerType, id_: str) -> None:
        await self._do(_V[type_], GroupIntent.DELETE, GroupRef(id_))

    async def add_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        value = Membership(id_, member.member_type, member.member_id)
        await self._do(_V[type_], GroupIntent.ADD_MEMBER, value)

    async def remove_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        value = Membership(id_, member.member_type, member.member_id)
        await self._do(_V[type_], GroupIntent.REMOVE_MEMBER, value)

    async def groups(self, type_: OwnerType) -> Groups:
        return Groups([_group_view(each) for each in await self._ask(ListGroups(type_))])

    # --- tokens -------------------------------------------------------------------------------

    async def create_token(self, new: NewToken) -> TokenReceipt:
        lasts_ms = checks.within(new.lasts_ms, 0, TOKEN_MS_MAX, "lastsMs")
        expires_ms = self._clock.now_ms() + lasts_ms if lasts_ms else 0
        id_, token, digest = new_token()
        value = Token(id_, new.client_id, digest, expires_ms)
        await self._do(_V.TOKEN, TokenIntent.CREATE, value)
        return TokenReceipt(id_, new.client_id, token, checks.moment(expires_ms))

    async def delete_token(self, token_id: str) -> None:
        await self._do(_V.TOKEN, TokenIntent.DELETE, TokenRef(token_id))

    async def tokens(self) -> Tokens:
        return Tokens(
            [
                TokenView(
                    each.id,
                    each.client_id,
                    datetime.fromtimestamp(each.created_ms / 1_000, UTC),
                    checks.moment(each.expires_ms),
                )
                for each in await self._ask(ListTokens())
            ]
        )

    async def sessions(self) -> ConsoleSessions:
        return ConsoleSessions(
            [
                ConsoleSession(
                    each.id,
                    each.signed_in or OwnerType.USER,
                    each.client_id,
                    datetime.fromtimestamp(each.created_ms / 1_000, UTC),
                    checks.moment(each.expires_ms),
                )
                for each in await self._ask(ListTokens(is_of_sessions=True))
                if each.expires_ms > self._clock.now_ms()
            ]
        )

    # --- authorizations -----------------------------------------------------------------------

    async def create_authorization(self, new: NewAuthorization) -> AuthorizationReceipt:
        reply = await self._do(_V.AUTHORIZATION, AuthorizationIntent.CREATE, _authorization(new))
        return AuthorizationReceipt(str(reply.key))

    async def update_authorization(self, authorization_key: str, change: NewAuthorization) -> None:
        value = _authorization(change, self._key(authorization_key))
        await self._do(_V.AUTHORIZATION, AuthorizationIntent.UPDATE, value)

    async def delete_authorization(self, authorization_key: str) -> None:
        value = AuthorizationRef(self._key(authorization_key))
        await self._do(_V.AUTHORIZATION, AuthorizationIntent.DELETE, value)

    async def authorizations(self, query: AuthorizationQuery) -> Authorizations:
        asked = ListAuthorizations(
            query.owner_type, query.owner_id, query.resource_type, query.resource_id
        )
        return Authorizations(
            [_authorization_view(key, each) for key, each in await self._ask(asked)]
        )

    async def own_identity(self) -> OwnIdentity:
        asker = asker_now()
        if asker is None:
            return OwnIdentity(None, None, [], [], [])
        found = await self._ask(FindOwners())
        return OwnIdentity(
            asker.type,
            asker.sub,
            [id_ for type_, id_ in found.owners if type_ is OwnerType.GROUP],
            [id_ for type_, id_ in found.owners if type_ is OwnerType.ROLE],
            [_grant_view(each) for each in found.grants],
        )

    # --- the first one ------------------------------------------------------------------------

    async def let_first_in(self, keep: Callable[[str], None]) -> bool:
        """Whether there was nobody yet: then a first client may do everything, by a token.

        Without it nobody could ever give a permission to anybody. The token is kept before it is
        of any use, so that a fall in between leaves nobody outside for ever.
        """
        if not await self._ask(HasNobody()):
            return False
        for id_, description, grants in ROLES:
            await self._do(_V.ROLE, GroupIntent.CREATE, Group(id_, id_, description), known=True)
            for resource, permissions in grants.items():
                value = Authorization(OwnerType.ROLE, id_, resource, EVERY_ID, permissions)
                await self._do(_V.AUTHORIZATION, AuthorizationIntent.CREATE, value, known=True)
        first = Membership(ROLES[0][0], OwnerType.CLIENT, FIRST_CLIENT)
        keep((await self.create_token(NewToken(FIRST_CLIENT))).token)
        await self._do(_V.ROLE, GroupIntent.ADD_MEMBER, first)
        return True

    # --- inside -------------------------------------------------------------------------------

    async def _do(
        self, value_type: ValueType, intent: IntEnum, value: Any, *, known: bool = False
    ) -> Reply:
        """Decided when it returns, and known to all partitions unless one of them is stuck."""
        command = Command(value_type, intent, NO_KEY, value)
        (reply,) = await self._asked.submit(DECIDING_PARTITION, [command])
        if known and reply.rejection is not None and reply.rejection.code == Code.ALREADY_EXISTS:
            return reply
        if error := reply.error():
            raise error
        await self._distributions.finished([reply.key], DEPLOYMENT_WAIT_MS)
        return reply

    def _ask(self, query: Query[A]) -> Coroutine[Any, Any, A]:
        """Where it is decided what others hear of later."""
        return self._asked.ask(DECIDING_PARTITION, query)

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._asked.count, "authorization")


async def _kept(password: str | None) -> bytes:
    """What is kept of a password; computing it takes a while, and others go on meanwhile."""
    if password is None:
        return b""
    checks.within(len(password), 1, NAME_CHARS_MAX, "number of characters of the password")
    return await asyncio.to_thread(kept_password, password)


def _authorization(new: NewAuthorization, key: int = 0) -> Authorization:
    return Authorization(
        new.owner_type, new.owner_id, new.resource_type, new.resource_id,
        tuple(dict.fromkeys(new.permission_types)), key,
    )  # fmt: skip


def _authorization_view(key: int, each: Authorization) -> AuthorizationView:
    return AuthorizationView(
        str(key), each.owner_type, each.owner_id, each.resource_type, each.resource_id,
        list(each.permissions),
    )  # fmt: skip


def _grant_view(grant: FoundGrant) -> AuthorizationView:
    return AuthorizationView(
        str(grant.authorization), grant.owner_type, grant.owner_id, grant.resource_type,
        grant.resource_id, list(grant.permissions),
    )  # fmt: skip


def _group_view(found: FoundGroup) -> GroupView:
    group = found.group
    members = [Member(*each) for each in found.members]
    return GroupView(group.id, group.name, group.description, members)
