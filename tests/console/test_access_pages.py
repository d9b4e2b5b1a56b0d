"""The pages of users, roles, groups, tokens and permissions; and what every page refuses."""

import re
from collections.abc import Iterator

import httpx
import pytest

from holdfast.console.pages.table import PAGES
from holdfast.engine.identity.values import PERMISSIONS, Permission, ResourceType
from holdfast.gateway.access.needs import Everyone

from .batch_site import BatchSite
from .test_batch_access import enter

_P, _R = Permission, ResourceType
NO_KEY = "2251799813685249"


@pytest.fixture
def site() -> Iterator[BatchSite]:
    site = BatchSite(authorization=True)
    site.call(site.api.let_first_in(lambda _: None))
    yield site
    site.close()


def _enter_as_admin(site: BatchSite) -> None:
    rights = [(each, right) for each, allowed in PERMISSIONS.items() for right in allowed]
    enter(site, "admin-2", *rights)


def test_a_user_is_created_given_a_role_and_deleted(site: BatchSite) -> None:
    _enter_as_admin(site)
    page = site.post("/console/users", username="ann@b", name="Ann", password="a long secret")
    assert page.has("The user ann@b was created") and page.has("Password set")
    assert "a long secret" not in page.source
    home = "/console/users/ann%40b"
    assert home in site.get("/console/users").links
    page = site.post("/console/roles/reader/add", type="USER", member="ann@b")
    assert page.has("ann@b belongs to reader now.") and page.has("ann@b user")
    assert "/console/roles/reader" in site.get(home).links
    page = site.post(f"{home}/update", name="Ann B.", email="ann@example.org")
    assert page.has("Ann B.") and page.has("ann@example.org") and page.has("Password set")
    assert not site.post("/console/roles/reader/remove", type="USER", member="ann@b").has(
        "ann@b user"
    )
    assert site.post(f"{home}/delete").has("The user ann@b was deleted.")
    assert site.get(home).status == 404


def test_a_group_has_members_and_permissions(site: BatchSite) -> None:
    _enter_as_admin(site)
    page = site.post("/console/user-groups", id="ops", description="on call")
    assert page.has("The group ops was created") and page.has("on call")
    page = site.post(
        "/console/permissions", ownerType="GROUP", owner="ops", resource="TASK", id="",
        **{"may:READ": "on", "may:UPDATE": "on"},
    )  # fmt: skip
    assert page.has("ops may READ, UPDATE on TASK now.")
    assert site.get("/console/user-groups/ops").has("task all read, update")
    page = site.get("/console/permissions?ownerType=GROUP&owner=ops")
    assert page.has("1 shown of 1")
    [revoke] = [each for each in page.actions if each.endswith("/delete")]
    assert site.post(revoke).has("The grant was revoked.")
    assert not site.get("/console/user-groups/ops").has("task all")
    assert site.post("/console/user-groups/ops/update", name="Operators").has("Operators")
    assert site.post("/console/user-groups/ops/delete").has("The group ops was deleted.")
    assert site.post("/console/permissions", ownerType="GROUP", owner="x", resource="TASK").has(
        "at least one permission"
    )


def test_a_token_is_shown_once_and_ends_at_once(site: BatchSite) -> None:
    _enter_as_admin(site)
    page = site.post("/console/tokens", client="worker-1", days="3")
    token = re.search(r"<code>(hf_\w+_[\w-]+)</code>", page.source)
    assert token is not None and page.response.headers["cache-control"] == "no-store"
    listed = site.get("/console/tokens?client=worker")
    assert token[1] not in listed.source and listed.has("worker-1")
    headers = {"authorization": f"Bearer {token[1]}"}
    assert httpx.get(f"{site.server.url}/v2/topology", headers=headers).status_code == 200
    id_ = token[1].split("_")[1]
    assert site.post("/console/tokens/delete", id=id_).has("refused from now on")
    assert httpx.get(f"{site.server.url}/v2/topology", headers=headers).status_code == 401


def test_a_reader_of_users_is_offered_nothing(site: BatchSite) -> None:
    _enter_as_admin(site)
    site.post("/console/users", username="ann")
    enter(site, "eve", (_R.USER, _P.READ))
    page = site.get("/console/users")
    assert page.has("ann") and page.actions == []
    assert "/console/tokens" not in page.links and "/console/roles" not in page.links
    page = site.get("/console/users/ann")
    assert page.status == 200 and page.actions == []
    assert site.post("/console/users/ann/delete").status == 403
    assert site.get("/console/users/ann").status == 200


def test_a_visitor_without_permissions_is_refused_by_every_page_that_needs_one(
    site: BatchSite,
) -> None:
    enter(site, "nobody")
    token = site.get("/console").csrf
    for page in PAGES:
        if isinstance(page.need, Everyone):
            continue
        path = re.sub(r"{\w+}", NO_KEY, page.path)
        sent = site.browser.request(page.method, path, data={"csrf": token})
        assert sent.status_code == 403, (page.method, path)
        assert "may not use the page" in sent.text
