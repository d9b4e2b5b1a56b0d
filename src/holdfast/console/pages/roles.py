"""Roles, and groups of users: who is in each, and what it may do."""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

from holdfast.console.forms import optional, word_of
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.console.pages.users import granted_to
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import Alternatives, one
from holdfast.gateway.identity.shapes import MEMBERS, GroupChange, Member, NewGroup
from holdfast.limits import CONSOLE_LIST_ITEMS

_P, _T = Permission, OwnerType
_HOMES = {_T.ROLE: "/console/roles", _T.GROUP: "/console/user-groups"}
_TITLES = {_T.ROLE: "Roles", _T.GROUP: "User groups"}


def _need(type_: OwnerType, permission: Permission) -> Alternatives:
    return one(ResourceType(type_), permission)


async def show_list(type_: OwnerType, ask: PageAsk) -> PageReply:
    """All of them in the order of their ids, page by page."""
    text, after = ask.query.get("id", ""), ask.query.get("after", "")
    found = (await ask.api.identity.groups(type_)).items
    fitting = [each for each in found if text in each.id]
    left = [each for each in fitting if each.id > after]
    items = left[:CONSOLE_LIST_ITEMS]
    return await ask.show(
        "roles.html",
        type=type_,
        home=_HOMES[type_],
        items=items,
        total=len(fitting),
        after=items[-1].id if len(left) > len(items) else None,
        may_create=await ask.may(_need(type_, _P.CREATE)),
    )


async def show(type_: OwnerType, ask: PageAsk) -> PageReply:
    """One of them: its members, and what it may do."""
    id_ = ask.parameters["id"]
    found = (await ask.api.identity.groups(type_)).items
    group = next((each for each in found if each.id == id_), None)
    if group is None:
        raise NotFound(f"There is no {type_.lower()} {id_!r}", id=id_)
    return await ask.show(
        "role.html",
        type=type_,
        home=_HOMES[type_],
        group=group,
        member_types=MEMBERS[type_],
        granted=await granted_to(ask, type_, id_),
        can_update=await ask.may_with(_need(type_, _P.UPDATE), id_),
        can_delete=await ask.may_with(_need(type_, _P.DELETE), id_),
    )


# --- what can be done -------------------------------------------------------------------------


async def create(type_: OwnerType, ask: PageAsk) -> PageReply:
    """A new one, without members."""
    id_ = ask.wanted("id")
    new = NewGroup(id_, optional(ask, "name") or "", optional(ask, "description") or "")
    await ask.api.identity.create_group(type_, new)
    return ask.go(_path(type_, id_), f"The {type_.lower()} {id_} was created.")


async def update(type_: OwnerType, ask: PageAsk) -> PageReply:
    """Another name or description."""
    id_ = ask.parameters["id"]
    change = GroupChange(optional(ask, "name") or "", optional(ask, "description") or "")
    await ask.api.identity.update_group(type_, id_, change)
    return ask.go(_path(type_, id_), f"The {type_.lower()} {id_} was changed.")


async def delete(type_: OwnerType, ask: PageAsk) -> PageReply:
    """It is gone, with all that it was given."""
    id_ = ask.parameters["id"]
    await ask.api.identity.delete_group(type_, id_)
    return ask.go(_HOMES[type_], f"The {type_.lower()} {id_} was deleted.")


async def add(type_: OwnerType, ask: PageAsk) -> PageReply:
    """Somebody belongs to it from now on."""
    id_, member = ask.parameters["id"], _member(ask)
    await ask.api.identity.add_member(type_, id_, member)
    return ask.go(_path(type_, id_), f"{member.member_id} belongs to {id_} now.")


async def remove(type_: OwnerType, ask: PageAsk) -> PageReply:
    """Somebody belongs to it no longer."""
    id_, member = ask.parameters["id"], _member(ask)
    await ask.api.identity.remove_member(type_, id_, member)
    return ask.go(_path(type_, id_), f"{member.member_id} belongs to {id_} no longer.")


def _member(ask: PageAsk) -> Member:
    return Member(word_of(ask.wanted("type"), "type", OwnerType), ask.wanted("member"))


def _path(type_: OwnerType, id_: str) -> str:
    return f"{_HOMES[type_]}/{quote(id_, safe='')}"


def _pages(type_: OwnerType) -> tuple[ConsolePage, ...]:
    home, word = _HOMES[type_], type_.lower()
    one_of_them = f"{home}/{{id}}"
    read, change = _need(type_, _P.READ), _need(type_, _P.UPDATE)

    def of(
        handle: Callable[[OwnerType, PageAsk], Awaitable[PageReply]],
    ) -> Callable[[PageAsk], Awaitable[PageReply]]:
        return partial(handle, type_)

    def post(path: str, title: str, handle: Callable[..., Awaitable[PageReply]]) -> ConsolePage:
        return ConsolePage(path, title, of(handle), change, method="POST")

    return (
        ConsolePage(home, _TITLES[type_], of(show_list), read, "Access"),
        ConsolePage(
            home, f"Create a {word}", of(create), _need(type_, _P.CREATE), method="POST"
        ),
        ConsolePage(one_of_them, word.capitalize(), of(show), read),
        post(f"{one_of_them}/update", f"Change a {word}", update),
        post(f"{one_of_them}/add", "Add a member", add),
        post(f"{one_of_them}/remove", "Remove a member", remove),
        ConsolePage(
            f"{one_of_them}/delete", f"Delete a {word}", of(delete), _need(type_, _P.DELETE),
            method="POST",
        ),
    )  # fmt: skip


PAGES = (*_pages(_T.ROLE), *_pages(_T.GROUP))
