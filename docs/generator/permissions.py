"""The page about who may be permitted what, and what each endpoint needs."""

from collections.abc import Collection
from itertools import groupby

from generator import markdown
from generator.markdown import code, table
from generator.source import members_of
from holdfast.engine.identity.values import (
    EVERY_ID,
    PERMISSIONS,
    OwnerType,
    Permission,
    ResourceType,
)
from holdfast.gateway.access.needs import Everyone, Need
from holdfast.gateway.access.roles import FIRST_CLIENT, ROLES
from holdfast.gateway.http.endpoints import ENDPOINTS

_EVERYONE = {
    Everyone.ANYBODY: "nothing, not even authentication",
    Everyone.KNOWN: "authentication only",
}
_OPENAPI = ("GET", "/openapi", Everyone.KNOWN)  # made of the others, so it is not among them


def page() -> str:
    """Resources, their permissions, the needs of the endpoints, and the first roles."""
    names, remarks = members_of(ResourceType), members_of(Permission)
    resources = [
        (code(each), names[each.name] or f"only {code(EVERY_ID)}", _words(PERMISSIONS[each]))
        for each in ResourceType
    ]
    rows = [*((each.method, each.path, each.need) for each in ENDPOINTS), _OPENAPI]
    needs = [(code(method), code(path), _need(need)) for method, path, need in rows]
    said = [f"{code(each)}: {remarks[each.name]}." for each in Permission if remarks[each.name]]
    owners = ", ".join(
        code(each) + (f" ({remark})" if (remark := members_of(OwnerType)[each.name]) else "")
        for each in OwnerType
    )
    return markdown.page(
        "Permissions",
        "With `authorization` (see [Configuration](configuration.md)) everything that was not"
        " granted is denied. A permission is granted to an owner, for one resource or for all of"
        " its type,"
        f" which is {code(EVERY_ID)}. Owners are {owners}."
        " [Authorization](../how-to/authorization.md) shows how to grant them,"
        " [Authentication and authorization](../explanation/who-may-do-what.md) explains how they"
        " are checked.",
        "## Resources",
        "Resources without a name have permissions for all of them only.",
        table(("Resource", "Named", "Permissions"), resources),
        " ".join(said),
        "## What requests need",
        "A user or client needs one of these permissions for at least one resource; otherwise the"
        " request is rejected. The permission for the resource itself is checked where that"
        " resource is known: for a command, by the partition that processes it. Responses leave out"
        " what the user or client may not read.",
        table(("Method", "Path", "Needs"), needs),
        "## The first roles",
        f"The first start with authorization creates them, and assigns the first one to the client"
        f" {code(FIRST_CLIENT)}. They can be changed and deleted like any others. Each permission"
        f" is for {code(EVERY_ID)}.",
        *(part for role in ROLES for part in _role(*role)),
    )


def _need(need: Need) -> str:
    if isinstance(need, Everyone):
        return _EVERYONE[need]
    return " or ".join(
        f"{' or '.join(code(permission) for _, permission in group)} on {code(resource)}"
        for resource, group in groupby(need, lambda each: each[0])
    )


def _role(
    id_: str, description: str, grants: dict[ResourceType, tuple[Permission, ...]]
) -> tuple[str, str, str]:
    rows = [(code(resource), _words(permissions)) for resource, permissions in grants.items()]
    is_all = {each: frozenset(permissions) for each, permissions in grants.items()} == PERMISSIONS
    granted = (
        "Every permission of every resource."
        if is_all
        else table(("Resource", "Permissions"), rows)
    )
    return f"### {id_}", f"It {description}.", granted


def _words(permissions: Collection[Permission]) -> str:
    return " ".join(code(each) for each in Permission if each in permissions)
