"""The endpoints about who may do what."""

from holdfast.engine.identity.values import OwnerType
from holdfast.gateway.api import Api
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.identity_shapes import (
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

_GROUP, _ROLE = OwnerType.GROUP, OwnerType.ROLE


@endpoint("GET", "/v2/authentication/me")
async def get_own_identity(api: Api) -> OwnIdentity:
    """Tell whoever asks who they are and what they may do."""
    return await api.identity.own_identity()


# --- users and tokens -------------------------------------------------------------------------


@endpoint("POST", "/v2/users")
async def create_user(api: Api, body: NewUser) -> None:
    """Create a user."""
    await api.identity.create_user(body)


@endpoint("GET", "/v2/users")
async def list_users(api: Api) -> Users:
    """List all users."""
    return await api.identity.users()


@endpoint("PUT", "/v2/users/{username}")
async def update_user(api: Api, username: str, body: UserChange) -> None:
    """Change what is known of a user."""
    await api.identity.update_user(username, body)


@endpoint("DELETE", "/v2/users/{username}")
async def delete_user(api: Api, username: str) -> None:
    """Delete a user with all that they were given."""
    await api.identity.delete_user(username)


@endpoint("POST", "/v2/tokens")
async def create_token(api: Api, body: NewToken) -> TokenReceipt:
    """Create a token for a machine."""
    return await api.identity.create_token(body)


@endpoint("GET", "/v2/tokens")
async def list_tokens(api: Api) -> Tokens:
    """List all tokens of machines."""
    return await api.identity.tokens()


@endpoint("DELETE", "/v2/tokens/{token_id}")
async def delete_token(api: Api, token_id: str) -> None:
    """Delete a token: whoever has it is not let in any more."""
    await api.identity.delete_token(token_id)


# --- groups -----------------------------------------------------------------------------------


@endpoint("POST", "/v2/groups")
async def create_group(api: Api, body: NewGroup) -> None:
    """Create a group."""
    await api.identity.create_group(_GROUP, body)


@endpoint("GET", "/v2/groups")
async def list_groups(api: Api) -> Groups:
    """List all groups with their members."""
    return await api.identity.groups(_GROUP)


@endpoint("PUT", "/v2/groups/{group_id}")
async def update_group(api: Api, group_id: str, body: GroupChange) -> None:
    """Change what is known of a group."""
    await api.identity.update_group(_GROUP, group_id, body)


@endpoint("DELETE", "/v2/groups/{group_id}")
async def delete_group(api: Api, group_id: str) -> None:
    """Delete a group with all that it was given."""
    await api.identity.delete_group(_GROUP, group_id)


@endpoint("POST", "/v2/groups/{group_id}/members")
async def add_group_member(api: Api, group_id: str, body: Member) -> None:
    """Put somebody into a group."""
    await api.identity.add_member(_GROUP, group_id, body)


@endpoint("POST", "/v2/groups/{group_id}/members/removal")
async def remove_group_member(api: Api, group_id: str, body: Member) -> None:
    """Take somebody out of a group."""
    await api.identity.remove_member(_GROUP, group_id, body)


# --- roles ------------------------------------------------------------------------------------


@endpoint("POST", "/v2/roles")
async def create_role(api: Api, body: NewGroup) -> None:
    """Create a role."""
    await api.identity.create_group(_ROLE, body)


@endpoint("GET", "/v2/roles")
async def list_roles(api: Api) -> Groups:
    """List all roles with those who have them."""
    return await api.identity.groups(_ROLE)


@endpoint("PUT", "/v2/roles/{role_id}")
async def update_role(api: Api, role_id: str, body: GroupChange) -> None:
    """Change what is known of a role."""
    await api.identity.update_group(_ROLE, role_id, body)


@endpoint("DELETE", "/v2/roles/{role_id}")
async def delete_role(api: Api, role_id: str) -> None:
    """Delete a role with all that it was given."""
    await api.identity.delete_group(_ROLE, role_id)


@endpoint("POST", "/v2/roles/{role_id}/members")
async def add_role_member(api: Api, role_id: str, body: Member) -> None:
    """Give a role to somebody."""
    await api.identity.add_member(_ROLE, role_id, body)


@endpoint("POST", "/v2/roles/{role_id}/members/removal")
async def remove_role_member(api: Api, role_id: str, body: Member) -> None:
    """Take a role from somebody."""
    await api.identity.remove_member(_ROLE, role_id, body)


# --- authorizations ---------------------------------------------------------------------------


@endpoint("POST", "/v2/authorizations")
async def create_authorization(api: Api, body: NewAuthorization) -> AuthorizationReceipt:
    """Permit somebody something."""
    return await api.identity.create_authorization(body)


@endpoint("POST", "/v2/authorizations/listing")
async def list_authorizations(api: Api, body: AuthorizationQuery) -> Authorizations:
    """List who may do what."""
    return await api.identity.authorizations(body)


@endpoint("PUT", "/v2/authorizations/{authorization_key}")
async def update_authorization(api: Api, authorization_key: str, body: NewAuthorization) -> None:
    """Change what is permitted."""
    await api.identity.update_authorization(authorization_key, body)


@endpoint("DELETE", "/v2/authorizations/{authorization_key}")
async def delete_authorization(api: Api, authorization_key: str) -> None:
    """Permit it no longer."""
    await api.identity.delete_authorization(authorization_key)


IDENTITY_ENDPOINTS: tuple[Endpoint, ...] = (
    get_own_identity,
    create_user, list_users, update_user, delete_user,
    create_token, list_tokens, delete_token,
    create_group, list_groups, update_group, delete_group, add_group_member, remove_group_member,
    create_role, list_roles, update_role, delete_role, add_role_member, remove_role_member,
    create_authorization, list_authorizations, update_authorization, delete_authorization,
)  # fmt: skip
