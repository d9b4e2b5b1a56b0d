"""What can be asked of a node about who may do what."""

from typing import Protocol

import msgspec

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import Everyone, one
from holdfast.gateway.identity.shapes import (
    MEMBERS,
    AuthorizationQuery,
    AuthorizationReceipt,
    Authorizations,
    ConsoleSessions,
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
from holdfast.gateway.operation import Namespace, Resend, asks, operation

_R, _P = ResourceType, Permission
_USER = "/v2/users/{username}"
_AUTHORIZATION = "/v2/authorizations/{authorization_key}"
_GROUP = "/v2/{type_}s/{id_}"  # a group or a role, which differ in the first word
_MEMBER = f"{_GROUP}/{{member.member_type}}s/{{member.member_id}}"


def _creation(type_: OwnerType, new: NewGroup) -> msgspec.Struct:
    named = GroupCreation if type_ is OwnerType.GROUP else RoleCreation
    return named(new.id, new.name, new.description)


def _checked(type_: OwnerType, id_: str, member: Member) -> None:
    """There is no body; but a member that a group, or a role, cannot have is not a path either."""
    del id_
    if member.member_type not in MEMBERS[type_]:
        expected = ", ".join(sorted(MEMBERS[type_]))
        raise InvalidArgument(
            f"Expected a member of type {expected}, but found {member.member_type}"
        )


class IdentityApi(Namespace, Protocol):
    """Users, groups, roles, tokens and permissions. What is done holds on all partitions soon."""

    # --- users --------------------------------------------------------------------------------

    @operation("create_user", "POST", "/v2/users", one(_R.USER, _P.CREATE), creates=True)
    async def create_user(self, new: NewUser) -> None:
        """Create a user."""

    @operation("update_user", "PUT", _USER, one(_R.USER, _P.UPDATE))
    async def update_user(self, username: str, change: UserChange) -> None:
        """Change what is known of a user."""

    @operation("delete_user", "DELETE", _USER, one(_R.USER, _P.DELETE))
    async def delete_user(self, username: str) -> None:
        """Delete a user with all grants."""

    @operation("list_users", "GET", "/v2/users", one(_R.USER, _P.READ))
    async def users(self) -> Users:
        """List all users."""
        ...

    # --- groups and roles ---------------------------------------------------------------------

    @asks("POST", "/v2/{type_}s", body=_creation)
    async def create_group(self, type_: OwnerType, new: NewGroup) -> None:
        """Create a group, or a role."""

    @asks("PUT", _GROUP)
    async def update_group(self, type_: OwnerType, id_: str, change: GroupChange) -> None:
        """Change what is known of a group, or a role."""

    @asks("DELETE", _GROUP)
    async def delete_group(self, type_: OwnerType, id_: str) -> None:
        """Delete a group, or a role, with all that it was given."""

    @asks("PUT", _MEMBER, body=_checked)
    async def add_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        """Put somebody into a group, or give them a role."""

    @asks("DELETE", _MEMBER, body=_checked)
    async def remove_member(self, type_: OwnerType, id_: str, member: Member) -> None:
        """Take somebody out of a group, or a role from them."""

    @asks("GET", "/v2/{type_}s")
    async def groups(self, type_: OwnerType) -> Groups:
        """List all groups, or all roles, with their members."""
        ...

    # --- tokens -------------------------------------------------------------------------------

    # each attempt makes another secret: the answer to the first one would not fit the second
    @operation("create_token", "POST", "/v2/tokens", one(_R.TOKEN, _P.CREATE), resend=Resend.NEVER)
    async def create_token(self, new: NewToken) -> TokenReceipt:
        """Create a token for a machine."""
        ...

    @operation("delete_token", "DELETE", "/v2/tokens/{token_id}", one(_R.TOKEN, _P.DELETE))
    async def delete_token(self, token_id: str) -> None:
        """Delete a token, or a session. Requests with it are refused from then on."""

    @operation("list_tokens", "GET", "/v2/tokens", one(_R.TOKEN, _P.READ))
    async def tokens(self) -> Tokens:
        """List all tokens of machines."""
        ...

    @operation("list_sessions", "GET", "/v2/sessions", one(_R.TOKEN, _P.READ))
    async def sessions(self) -> ConsoleSessions:
        """List sessions of the console."""
        ...

    # --- authorizations -----------------------------------------------------------------------

    @operation(
        "create_authorization", "POST", "/v2/authorizations", one(_R.AUTHORIZATION, _P.CREATE),
        creates=True,
    )  # fmt: skip
    async def create_authorization(self, new: NewAuthorization) -> AuthorizationReceipt:
        """Grant permissions to a user, client, group or role."""
        ...

    @operation("update_authorization", "PUT", _AUTHORIZATION, one(_R.AUTHORIZATION, _P.UPDATE))
    async def update_authorization(self, authorization_key: str, change: NewAuthorization) -> None:
        """Change a grant."""

    @operation("delete_authorization", "DELETE", _AUTHORIZATION, one(_R.AUTHORIZATION, _P.DELETE))
    async def delete_authorization(self, authorization_key: str) -> None:
        """Revoke a grant."""

    @operation(
        "list_authorizations", "POST", "/v2/authorizations/listing", one(_R.AUTHORIZATION, _P.READ)
    )
    async def authorizations(self, query: AuthorizationQuery) -> Authorizations:
        """List grants."""
        ...

    @operation("get_own_identity", "GET", "/v2/authentication/me", Everyone.KNOWN)
    async def own_identity(self) -> OwnIdentity:
        """Return the identity of the caller and what it may do."""
        ...
