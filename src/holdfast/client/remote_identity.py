"""What a remote node is asked about who may do what."""

import msgspec

from holdfast.client.wire import Wire, quoted
from holdfast.engine.identity.values import OwnerType
from holdfast.errors import InvalidArgument
from holdfast.gateway.identity.shapes import (
    MEMBERS,
    AuthorizationQuery,
    AuthorizationReceipt,
    Authorizations,
    GroupChange,
    GroupCreation,
    Groups,
    Member,
    NewAuthorization,
    NewGroup,
    NewToken,
    NewUser,
    OwnIdentity,
    RoleCreation,
    TokenReceipt,
    Tokens,
    UserChange,
    Users,
)

_PATHS = {OwnerType.GROUP: "/v2/groups", OwnerType.ROLE: "/v2/roles"}


def _member(type_: OwnerType, id_: str, member: Member) -> str:
    if member.member_type not in MEMBERS[type_]:
        expected = ", ".join(sorted(MEMBERS[type_]))
        raise InvalidArgument(
            f"Expected a member of type {expected}, but found {member.member_type}"
        )
    words = f"{member.member_type.lower()}s/{quoted(member.member_id)}"
    return f"{_PATHS[type_]}/{quoted(id_)}/{words}"


class RemoteIdentity:
    """The identity of a remote Api."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def create_user(self, new: NewUser) -> None:
        await self._send("POST", "/v2/users", new)

    async def update_user(self, username: str, change: UserChange) -> None:
        await self._send("PUT", f"/v2/users/{quoted(username)}", change)

    async def delete_user(self, username: str) -> None:
        await self._send("DELETE", f"/v2/users/{quoted(username)}")

    async def users(self) -> Users:
        return await self._wire._get("/v2/users", Users)

    async def create_group(self, type_: OwnerType, new: NewGroup) -> None:
        named = GroupCreation if type_ is OwnerType.GROUP else RoleCreation
        await self._send("POST", _PATHS[type_], named(new.id, new.name, new.description))

    async def update_group(self, type_: OwnerType, id_: str, change: GroupChange) -> None:
        await self._send("PUT", f"{_PATHS[type_]}/{quoted(id_)}", change)

    async def delete_group(self, type_: OwnerType, id_: str) -> None:
        await self._send("DELETE", f"{_PATHS[type_]}/{quoted(id_)}")

    async def add_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        await self._send("PUT", _member(type_, id_, member))

    async def remove_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        await self._send("DELETE", _member(type_, id_, member))

    async def groups(self, type_: OwnerType) -> Groups:
        return await self._wire._get(_PATHS[type_], Groups)

    async def create_token(self, new: NewToken) -> TokenReceipt:
        return await self._wire._post("/v2/tokens", new, TokenReceipt)

    async def delete_token(self, token_id: str) -> None:
        await self._send("DELETE", f"/v2/tokens/{quoted(token_id)}")

    async def tokens(self) -> Tokens:
        return await self._wire._get("/v2/tokens", Tokens)

    async def create_authorization(self, new: NewAuthorization) -> AuthorizationReceipt:
        return await self._wire._post("/v2/authorizations", new, AuthorizationReceipt)

    async def update_authorization(self, authorization_key: str, change: NewAuthorization) -> None:
        await self._send("PUT", f"/v2/authorizations/{quoted(authorization_key)}", change)

    async def delete_authorization(self, authorization_key: str) -> None:
        await self._send("DELETE", f"/v2/authorizations/{quoted(authorization_key)}")

    async def authorizations(self, query: AuthorizationQuery) -> Authorizations:
        return await self._wire._post("/v2/authorizations/listing", query, Authorizations)

    async def own_identity(self) -> OwnIdentity:
        return await self._wire._get("/v2/authentication/me", OwnIdentity)

    async def _send(self, method: str, path: str, body: msgspec.Struct | None = None) -> None:
        await self._wire._send(method, path, body)
