"""With authorization: who may read the log, start batch operations, and steer them."""

from collections.abc import Iterator

import pytest

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken

from .batch_site import BatchSite

_P, _R = Permission, ResourceType
FILTER = '{"type": "send"}'


@pytest.fixture
def guarded() -> Iterator[BatchSite]:
    site = BatchSite(authorization=True)
    site.call(site.api.let_first_in(lambda _: None))
    yield site
    site.close()


def enter(site: BatchSite, name: str, *rights: tuple[ResourceType, Permission]) -> None:
    """The browser is that of somebody who may do some things."""
    token = site.call(site.api.identity.create_token(NewToken(name))).token
    for resource in {each for each, _ in rights}:
        permissions = [permission for each, permission in rights if each is resource]
        new = NewAuthorization(OwnerType.CLIENT, name, resource, "*", permissions)
        site.call(site.api.identity.create_authorization(new))
    site.browser.headers["authorization"] = f"Bearer {token}"


def test_the_log_is_for_those_who_may_read_it(guarded: BatchSite) -> None:
    enter(guarded, "ann", (_R.BATCH, _P.READ))
    assert "/console/log" not in guarded.get("/console").links
    for path in ("/console/log", "/console/log/live", "/console/log/1/0"):
        assert guarded.get(path).status == 403
    enter(guarded, "bob", (_R.JOURNAL, _P.READ))
    page = guarded.get("/console/log")
    assert page.status == 200 and "/console/log" in page.links
    assert "/console/batches" not in page.links
    assert guarded.get("/console/batches").status == 403


def test_a_reader_of_operations_is_offered_nothing_and_refused(guarded: BatchSite) -> None:
    guarded.dead_letters(6)
    update = (_R.TASK, _P.UPDATE)
    enter(guarded, "cleo", (_R.BATCH, _P.CREATE), (_R.BATCH, _P.READ), update)
    sent = guarded.post("/console/batches/new", do="RETRY_TASK", filter=FILTER, throttle="1")
    key = sent.response.url.path.rpartition("/")[2]
    assert sent.has("Created by cleo") and sent.actions == []  # to steer it is another permission
    enter(guarded, "ann", (_R.BATCH, _P.READ))
    page = guarded.get(f"/console/batches/{key}")
    assert page.status == 200 and page.actions == [] and page.has("The items cannot be shown.")
    for action in ("suspend", "resume", "cancel", "change", "retry"):
        assert guarded.post(f"/console/batches/{key}/{action}").status == 403, action
    assert "/console/batches/new" not in guarded.get("/console/batches").links
    assert guarded.get("/console/batches/new").status == 403
    enter(guarded, "dan", (_R.BATCH, _P.READ), (_R.BATCH, _P.UPDATE))
    assert f"/console/batches/{key}/cancel" in guarded.get(f"/console/batches/{key}").actions
    assert guarded.post(f"/console/batches/{key}/cancel").status == 200


def test_only_permitted_types_are_offered(guarded: BatchSite) -> None:
    guarded.dead_letters(2)
    enter(guarded, "eve", (_R.BATCH, _P.CREATE_BATCH_OPERATION_RETRY_TASK), (_R.BATCH, _P.READ))
    page = guarded.get("/console/batches/new")
    assert page.has("Retry tasks that wait") and not page.has("Discard tasks")
    refused = guarded.post("/console/batches/new", do="DISCARD_TASK", filter=FILTER)
    assert refused.status == 403
    assert guarded.get("/console/batches").has("No batch operation fits.")
