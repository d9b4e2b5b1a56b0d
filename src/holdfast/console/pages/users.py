"""Users: who there is, and what they are given."""

from urllib.parse import quote

from holdfast.console.forms import optional
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import one
from holdfast.gateway.identity.shapes import AuthorizationQuery, NewUser, UserChange
from holdfast.limits import CONSOLE_LIST_ITEMS

_R, _P = ResourceType, Permission
_READ = one(_R.USER, _P.READ)
_CREATE = one(_R.USER, _P.CREATE)
_UPDATE = one(_R.USER, _P.UPDATE)
_DELETE = one(_R.USER, _P.DELETE)
_HOME = "/console/users"
_ONE = f"{_HOME}/{{name}}"


async def show_list(ask: PageAsk) -> PageReply:
    """Users in the order of their names, page by page."""
    text, after = ask.query.get("name", ""), ask.query.get("after", "")
    users = (await ask.api.identity.users()).items
    fitting = [each for each in users if text in each.username or text in each.name]
    left = [each for each in fitting if each.username > after]
    items = left[:CONSOLE_LIST_ITEMS]
    return await ask.show(
        "users.html",
        items=items,
        total=len(fitting),
        after=items[-1].username if len(left) > len(items) else None,
        may_create=await ask.may(_CREATE),
    )


async def show(ask: PageAsk) -> PageReply:
    """One user: the groups, the roles and what they may do themselves."""
    name = ask.parameters["name"]
    users = (await ask.api.identity.users()).items
    user = next((each for each in users if each.username == name), None)
    if user is None:
        raise NotFound(f"There is no user {name!r}", username=name)
    return await ask.show(
        "user.html",
        user=user,
        groups=await memberships(ask, OwnerType.GROUP, OwnerType.USER, name),
        roles=await memberships(ask, OwnerType.ROLE, OwnerType.USER, name),
        granted=await granted_to(ask, OwnerType.USER, name),
        can_update=await ask.may_with(_UPDATE, name),
        can_delete=await ask.may_with(_DELETE, name),
    )


async def memberships(ask: PageAsk, type_: OwnerType, member: OwnerType, id_: str) -> list[str]:
    """The groups, or the roles, that somebody has, as far as the visitor may see them."""
    if not await ask.may(one(ResourceType(type_), _P.READ)):
        return []
    found = (await ask.api.identity.groups(type_)).items
    return [
        each.id
        for each in found
        if any((m.member_type, m.member_id) == (member, id_) for m in each.members)
    ]


async def granted_to(ask: PageAsk, owner: OwnerType, id_: str) -> list[object]:
    """What somebody may do by themselves, as far as the visitor may see it."""
    if not await ask.may(one(_R.AUTHORIZATION, _P.READ)):
        return []
    return [*(await ask.api.identity.authorizations(AuthorizationQuery(owner, id_))).items]


async def create(ask: PageAsk) -> PageReply:
    """A new user."""
    name = ask.wanted("username")
    new = NewUser(
        name, ask.form.get("password") or None, optional(ask, "name") or "",
        optional(ask, "email") or "",
    )  # fmt: skip
    await ask.api.identity.create_user(new)
    return ask.go(_path(name), f"The user {name} was created. Give them a role or permissions.")


async def update(ask: PageAsk) -> PageReply:
    """Another name, address or password."""
    name = ask.parameters["name"]
    change = UserChange(
        optional(ask, "name") or "", optional(ask, "email") or "", ask.form.get("password") or None
    )
    await ask.api.identity.update_user(name, change)
    return ask.go(_path(name), f"The user {name} was changed.")


async def delete(ask: PageAsk) -> PageReply:
    """The user is gone, with all that they were given."""
    name = ask.parameters["name"]
    await ask.api.identity.delete_user(name)
    return ask.go(_HOME, f"The user {name} was deleted.")


def _path(name: str) -> str:
    return f"{_HOME}/{quote(name, safe='')}"


PAGES = (
    ConsolePage(_HOME, "Users", show_list, _READ, "Access"),
    ConsolePage(f"{_HOME}", "Create a user", create, _CREATE, method="POST"),
    ConsolePage(_ONE, "User", show, _READ),
    ConsolePage(f"{_ONE}/update", "Change a user", update, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/delete", "Delete a user", delete, _DELETE, method="POST"),
)
