"""Permissions: who may do what with which resource."""

from holdfast.console.forms import chosen, wanted_word, word_of
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import (
    EVERY_ID,
    PERMISSIONS,
    OwnerType,
    Permission,
    ResourceType,
)
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import one
from holdfast.gateway.identity.shapes import AuthorizationQuery, NewAuthorization
from holdfast.limits import CONSOLE_LIST_ITEMS

_R, _P = ResourceType, Permission
_READ = one(_R.AUTHORIZATION, _P.READ)
_CREATE = one(_R.AUTHORIZATION, _P.CREATE)
_DELETE = one(_R.AUTHORIZATION, _P.DELETE)
_HOME = "/console/permissions"
_GRANTED = "may:"  # before the name of a permission, in the fields of the form


async def show(ask: PageAsk) -> PageReply:
    """Grants in the order of their keys, page by page; a form for one kind of resource."""
    resource = chosen(ask, "resource", ResourceType)
    query = AuthorizationQuery(
        chosen(ask, "ownerType", OwnerType), ask.query.get("owner"), resource,
        ask.query.get("id"),
    )  # fmt: skip
    found = (await ask.api.identity.authorizations(query)).items
    after = ask.query.get("after", "0")
    start = int(after) if after.isdecimal() else 0
    left = [each for each in found if int(each.authorization_key) > start]
    items = left[:CONSOLE_LIST_ITEMS]
    return await ask.show(
        "permissions.html",
        items=items,
        total=len(found),
        after=items[-1].authorization_key if len(left) > len(items) else None,
        owner_types=list(OwnerType),
        resources=list(ResourceType),
        resource=resource,
        permissions=sorted(PERMISSIONS[resource]) if resource is not None else [],
        may_create=await ask.may(_CREATE),
        may_delete=await ask.may(_DELETE),
    )


async def create(ask: PageAsk) -> PageReply:
    """Somebody may do something from now on."""
    granted = [
        word_of(name.removeprefix(_GRANTED), "permission", Permission)
        for name in ask.form
        if name.startswith(_GRANTED)
    ]
    if not granted:
        raise InvalidArgument("Expected at least one permission to grant, but none is chosen")
    new = NewAuthorization(
        wanted_word(ask, "ownerType", OwnerType),
        ask.wanted("owner"),
        wanted_word(ask, "resource", ResourceType),
        ask.form.get("id", "").strip() or EVERY_ID,
        granted,
    )
    await ask.api.identity.create_authorization(new)
    return ask.go(_HOME, f"{new.owner_id} may {', '.join(granted)} on {new.resource_type} now.")


async def delete(ask: PageAsk) -> PageReply:
    """Nobody may do it by this grant any more."""
    await ask.api.identity.delete_authorization(ask.parameters["key"])
    return ask.go(_HOME, "The grant was revoked.")


PAGES = (
    ConsolePage(_HOME, "Permissions", show, _READ, "Access"),
    ConsolePage(_HOME, "Grant permissions", create, _CREATE, method="POST"),
    ConsolePage(f"{_HOME}/{{key}}/delete", "Revoke a grant", delete, _DELETE, method="POST"),
)
