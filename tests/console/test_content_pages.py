"""The pages of content distribution: who is behind, one queue, and what is done with its items."""

from collections.abc import Iterator

import pytest

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.content.shapes import NewAnnouncement, NewPackage, ProgressNote, StatusNote

from .batch_site import BatchSite
from .test_batch_access import enter

QUEUE = "/console/content/site/edge"


def _fill(site: BatchSite) -> None:
    """Three packages: the subscriber gave up on the first, and has the other two before it."""
    for number in range(3):
        new = NewPackage("site", f"p-{number}", "DELETE", [f"/pages/{number}"])
        site.call(site.api.content.publish(new))
    failed = StatusNote("edge", "site", 0, "REMOVED_FAILED", 1, "p-0", "no room", 3, 1_000)
    site.call(site.api.content.report([failed]))
    progress = [ProgressNote("site", 0, 1)]
    site.call(site.api.content.announce(NewAnnouncement("edge", "store", True, 3, progress)))


@pytest.fixture
def site() -> Iterator[BatchSite]:
    site = BatchSite()
    yield site
    site.close()


@pytest.fixture
def guarded() -> Iterator[BatchSite]:
    site = BatchSite(authorization=True)
    site.call(site.api.let_first_in(lambda _: None))
    yield site
    site.close()


def test_a_queue_is_shown_and_its_items_retried_removed_and_cleared(site: BatchSite) -> None:
    assert site.get("/console/content").has("There is no publisher")
    _fill(site)
    assert "/console/content/site" in site.get("/console/content").links
    page = site.get("/console/content/site")
    assert QUEUE in page.links and page.has("edge running 2 0 1")
    page = site.get(QUEUE)
    assert page.has("p-1 delete /pages/1") and page.has("p-2 delete /pages/2")
    assert page.has("p-0 /pages/0") and page.has("no room")
    assert set(page.actions) == {f"{QUEUE}/{each}" for each in ("retry", "remove", "clear")}
    assert site.post(f"{QUEUE}/retry", offset="0").has("import the package at 0 again")
    page = site.get(QUEUE)
    assert page.has("retrying") and f"{QUEUE}/retry" not in page.actions
    assert site.post(f"{QUEUE}/remove", offset="2").has("skip the package at 2")
    assert site.post(f"{QUEUE}/clear", offset="1").has("all packages up to 1")
    assert site.post(f"{QUEUE}/clear", offset="all").status == 400
    assert site.get("/console/content/site/nobody").status == 404


def test_a_publisher_sees_its_queues_and_changes_nothing(guarded: BatchSite) -> None:
    _fill(guarded)
    enter(guarded, "ann", (ResourceType.CONTENT, Permission.PUBLISH))
    page = guarded.get(QUEUE)
    assert page.status == 200 and page.has("p-1") and page.actions == []
    for action in ("retry", "remove", "clear"):
        assert guarded.post(f"{QUEUE}/{action}", offset="0").status == 403
    enter(guarded, "bob", (ResourceType.BATCH, Permission.READ))
    assert guarded.get("/console/content").status == 403
