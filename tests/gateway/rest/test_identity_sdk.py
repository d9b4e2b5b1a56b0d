"""Users, groups, roles, members and authorizations, asked for by the API's public client."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import camunda_orchestration_sdk.models as models
import pytest
from camunda_orchestration_sdk import errors
from sdk import AT_ONCE, UNKNOWN, served

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.rest.authorizations import OWN_PERMISSIONS, OWN_TYPES
from holdfast.gateway.rest.fields import fits

Call = Callable[..., Awaitable[Any]]


async def ask(call: Call, *arguments: Any, **named: Any) -> Any:
    """What the client is answered; a search does not wait until it finds."""
    if "consistency" in inspect.signature(call).parameters:
        named["consistency"] = AT_ONCE
    return await call(*arguments, **named)


async def refused(status: int, call: Call, *arguments: Any, **named: Any) -> None:
    with pytest.raises(errors.ApiError) as raised:
        await ask(call, *arguments, **named)
    assert raised.value.status_code == status, raised.value


def with_client(story: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served() as (client, _, _):
            await story(client)

    asyncio.run(run())


def from_(shape: str, **fields: Any) -> Any:
    return getattr(models, shape).from_dict(fields)


def test_users_are_created_shown_changed_searched_and_deleted() -> None:
    async def story(client: Any) -> None:
        for name in ("ada", "bob", "eve"):
            new = from_("UserRequest", username=name, password="p", name=name.title(), email="")
            made = await client.create_user(data=new)
            assert (made.username, made.name, made.email) == (name, name.title(), None)
        await refused(409, client.create_user, data=new)
        long = from_("UserRequest", username="dan", password="p", name="x" * 300)
        await refused(400, client.create_user, data=long)
        shown = await ask(client.get_user, "ada")
        assert (shown.username, shown.name, shown.email) == ("ada", "Ada", None)
        changed = from_("UserUpdateRequest", name="Ada L.", email="ada@x")
        assert (await client.update_user("ada", data=changed)).email == "ada@x"
        await refused(404, client.update_user, "nobody", data=changed)
        await refused(404, client.get_user, "nobody")

        async def found(**query: Any) -> list[str]:
            page = await ask(client.search_users, data=from_("UserSearchQueryRequest", **query))
            return [each.username for each in page.items]

        assert await found() == ["ada", "bob", "eve"]
        assert await found(filter={"username": {"$like": "*b*"}}) == ["bob"]
        assert await found(filter={"$or": [{"username": "eve"}, {"email": "ada@x"}]}) == [
            "ada",
            "eve",
        ]
        newest = [{"field": "username", "order": "DESC"}]
        assert await found(sort=newest, page={"limit": 2}) == ["eve", "bob"]
        assert await found(page={"from": 1, "limit": 1}) == ["bob"]
        first = await ask(
            client.search_users, data=from_("UserSearchQueryRequest", page={"limit": 1})
        )
        assert first.page.total_items == 3
        assert await found(page={"limit": 9, "after": first.page.end_cursor}) == ["bob", "eve"]
        await client.delete_user("eve")
        await refused(404, client.delete_user, "eve")
        assert await found() == ["ada", "bob"]

    with_client(story)


@pytest.mark.parametrize(("kind", "members"), [
    ("group", ("user", "client")),
    ("role", ("user", "client", "group")),
])  # fmt: skip
def test_groups_and_roles_have_members(kind: str, members: tuple[str, ...]) -> None:
    async def story(client: Any) -> None:
        word = kind.capitalize()
        named = {f"{kind}Id": "crew", "name": "Crew"}
        create, get, update, delete, search = (
            getattr(client, each)
            for each in (
                f"create_{kind}", f"get_{kind}", f"update_{kind}", f"delete_{kind}",
                f"search_{kind}s",
            )
        )  # fmt: skip
        new = from_(f"{word}CreateRequest", **named, description="all")
        made = await create(data=new)
        assert (made.to_dict()[f"{kind}Id"], made.name, made.description) == ("crew", "Crew", "all")
        await refused(409, create, data=new)
        change = from_(f"{word}UpdateRequest", name="Other")
        assert (await update("crew", data=change)).name == "Other"
        await refused(404, update, "nobody", data=change)
        assert (await ask(get, "crew")).name == "Other"
        await refused(404, get, "nobody")
        query = from_(f"{word}SearchQueryRequest", filter={"name": "Other"})
        assert [each.name for each in (await ask(search, data=query)).items] == ["Other"]
        if "group" in members:
            await client.create_group(data=from_("GroupCreateRequest", groupId="one", name=""))
        for member in members:
            ways = (f"assign_{member}_to_group", f"unassign_{member}_from_group")
            if kind == "role":
                ways = (f"assign_role_to_{member}", f"unassign_role_from_{member}")
            assign, unassign = (getattr(client, each) for each in ways)
            list_ = getattr(client, f"search_{member}s_for_{kind}")
            await assign("crew", "one")
            await refused(409, assign, "crew", "one")
            await refused(404, assign, "nobody", "one")
            [one] = (await ask(list_, "crew")).items
            assert [*one.to_dict().values()] == ["one"]
            await refused(404, list_, "nobody")
            if member == "group":
                [role] = (await ask(client.search_roles_for_group, "one")).items
                assert role.role_id == "crew"
            await unassign("crew", "one")
            await refused(404, unassign, "crew", "one")
        await delete("crew")
        await refused(404, delete, "crew")

    with_client(story)


def test_authorizations_are_created_shown_changed_searched_and_deleted() -> None:
    async def story(client: Any) -> None:
        named = {
            "ownerId": "ada", "ownerType": "USER", "resourceId": "order",
            "resourceType": "PROCESS_DEFINITION", "permissionTypes": ["READ_PROCESS_INSTANCE"],
        }  # fmt: skip
        shape = "AuthorizationIdBasedRequest"
        made = await client.create_authorization(data=from_(shape, **named))
        key = made.authorization_key
        shown = await ask(client.get_authorization, key)
        assert (shown.owner_id, shown.resource_id, shown.permission_types) == (
            "ada", "order", ["READ_PROCESS_INSTANCE"],
        )  # fmt: skip
        more = named | {"permissionTypes": ["CREATE_PROCESS_INSTANCE"]}
        await client.update_authorization(key, data=from_(shape, **more))
        wrong = from_(shape, **(named | {"permissionTypes": ["READ_USER_TASK"]}))
        await refused(400, client.create_authorization, data=wrong)
        for ids, count in ((["order", "x"], 1), (["x"], 0)):
            query = from_("AuthorizationSearchQuery", filter={"ownerId": "ada", "resourceIds": ids})
            found = await ask(client.search_authorizations, data=query)
            assert found.page.total_items == len(found.items) == count
        await refused(404, client.get_authorization, UNKNOWN)
        await refused(404, client.delete_authorization, UNKNOWN)
        await client.delete_authorization(key)
        await refused(404, client.get_authorization, key)

    with_client(story)


def test_the_client_reads_every_authorization_that_a_search_shows_it() -> None:
    async def run() -> None:
        async with served() as (client, gateway, _):
            await gateway.let_first_in(lambda _token: None)  # makes the first roles
            found = await ask(client.search_authorizations)
            types = {each.resource_type for each in found.items}
            assert "PROCESS_DEFINITION" in types and not types & OWN_TYPES

    asyncio.run(run())
    for resource in set(ResourceType) - OWN_TYPES:
        models.ResourceTypeEnum(resource)
    for permission in set(Permission) - OWN_PERMISSIONS:
        models.PermissionTypeEnum(permission)
    for owner in OwnerType:
        models.OwnerTypeEnum(owner)


def test_a_caller_is_told_its_own_identity() -> None:
    async def story(client: Any) -> None:
        me = await client.get_authentication()
        assert (me.username, me.groups, me.can_logout) == ("anonymous", [], False)
        own = await client.search_own_authorizations()
        assert (own.authorizations_enabled, own.items) == (False, [])

    with_client(story)


@pytest.mark.parametrize(("pattern", "word", "fitting"), [
    ("*", "", True), ("?", "", False), ("a*b*c", "axxbyyc", True), ("a*b*c", "axxbyy", False),
    ("*a", "aba", True), ("\\*", "*", True), ("\\*", "a", False), ("??", "ab", True),
    ("*ab*ab", "abab", True), ("*ab*ab", "aab", False), ("", "", True), ("", "a", False),
    ("*a" * 400 + "b", "a" * 200, False),  # takes no time
])  # fmt: skip
def test_a_pattern_fits_in_little_time(pattern: str, word: str, fitting: bool) -> None:
    assert fits(word, pattern) is fitting
