"""What can be asked about who may do what."""

from typing import Protocol

from holdfast.engine.identity.values import OwnerType
from holdfast.gateway.identity.shapes import (
    AuthorizationQuery,
    AuthorizationReceipt,
    Authorizations,
    GroupChange,
    Groups,
    Member,
    NewAuthorization,
    NewGroup,
    NewToken,
    NewUser,
    OwnIdentity,
    TokenReceipt,
    Tokens,
    UserChange,
    Users,
)


class IdentityApi(Protocol):
    """The part of the Api that is about identity. What is done holds on all partitions soon."""

    async def create_user(self, new: NewUser) -> None: ...

    async def update_user(self, username: str, change: UserChange) -> None: ...

    async def delete_user(self, username: str) -> None:
        """With all that they were given."""
        ...

    async def users(self) -> Users: ...

    async def create_group(self, type_: OwnerType, new: NewGroup) -> None:
        """A group, or a role."""
        ...

    async def update_group(self, type_: OwnerType, id_: str, change: GroupChange) -> None: ...

    async def delete_group(self, type_: OwnerType, id_: str) -> None:
        """With all that it was given."""
        ...

    async def add_member(self, type_: OwnerType, id_: str, member: Member) -> None: ...

    async def remove_member(self, type_: OwnerType, id_: str, member: Member) -> None: ...

    async def groups(self, type_: OwnerType) -> Groups:
        """All groups, or all roles."""
        ...

    async def create_token(self, new: NewToken) -> TokenReceipt: ...

    async def delete_token(self, token_id: str) -> None: ...

    async def tokens(self) -> Tokens: ...

    async def create_authorization(self, new: NewAuthorization) -> AuthorizationReceipt: ...

    async def update_authorization(
        self, authorization_key: str, change: NewAuthorization
    ) -> None: ...

    async def delete_authorization(self, authorization_key: str) -> None: ...

    async def authorizations(self, query: AuthorizationQuery) -> Authorizations: ...

    async def own_identity(self) -> OwnIdentity:
        """Who asks, and what they may do."""
        ...
