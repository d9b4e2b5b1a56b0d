"""The endpoints about who may do what beyond the REST API: tokens, and whole lists."""

from holdfast.engine.identity.values import OwnerType
from holdfast.gateway.api import Api
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.identity.shapes import (
    AuthorizationQuery,
    Authorizations,
    Groups,
    NewToken,
    TokenReceipt,
    Tokens,
    Users,
)


@endpoint("GET", "/v2/users")
async def list_users(api: Api) -> Users:
    """List all users."""
    return await api.identity.users()


@endpoint("GET", "/v2/groups")
async def list_groups(api: Api) -> Groups:
    """List all groups with their members."""
    return await api.identity.groups(OwnerType.GROUP)


@endpoint("GET", "/v2/roles")
async def list_roles(api: Api) -> Groups:
    """List all roles with those who have them."""
    return await api.identity.groups(OwnerType.ROLE)


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


@endpoint("POST", "/v2/authorizations/listing")
async def list_authorizations(api: Api, body: AuthorizationQuery) -> Authorizations:
    """List who may do what."""
    return await api.identity.authorizations(body)


IDENTITY_ENDPOINTS: tuple[Endpoint, ...] = (
    list_users, list_groups, list_roles, create_token, list_tokens, delete_token,
    list_authorizations,
)  # fmt: skip
