"""With authorization: pages show what a visitor may see, offer what they may do, refuse more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken
from holdfast.model.dsl import Process

from .conftest import ConsoleSite

_P = Permission


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[ConsoleSite]:
    config = Config(partitions=2, authorization=True, log_level="critical")
    site = ConsoleSite(tmp_path / "data", config)
    site.call(site.api.let_first_in(lambda _: None))
    site.deploy(Process("order").task("charge"))
    site.deploy(Process("salary").task("pay"))
    yield site
    site.close()


def _enter(site: ConsoleSite, name: str, **rights: list[Permission]) -> None:
    """The browser is somebody's who may do some things with processes."""
    token = site.call(site.api.identity.create_token(NewToken(name))).token
    for id_, permissions in rights.items():
        of = ResourceType.PROCESS_DEFINITION
        new = NewAuthorization(OwnerType.CLIENT, name, of, id_, permissions)
        site.call(site.api.identity.create_authorization(new))
    site.browser.headers["authorization"] = f"Bearer {token}"


def test_nobody_sees_anything_without_saying_who_they_are(guarded: ConsoleSite) -> None:
    key = guarded.start("order")
    for path in ("/console", "/console/live", f"/console/instances/{key}", "/console/tasks"):
        sent = guarded.browser.get(path)
        assert sent.status_code == 303 and sent.content == b""
        assert sent.headers["location"].startswith("/console/sign-in")
    guarded.browser.headers["authorization"] = "Bearer hf_wrong_token"
    assert guarded.get("/console").status == 401


def test_a_reader_of_one_process_sees_it_and_is_offered_nothing(guarded: ConsoleSite) -> None:
    _enter(guarded, "ann", order=[_P.READ_PROCESS_INSTANCE])
    own, others = guarded.start("order"), guarded.start("salary")
    listed = guarded.get("/console/instances")
    assert listed.has("ann") and listed.has(own) and not listed.has(others)
    page = guarded.get(f"/console/instances/{own}")
    assert page.status == 200 and page.actions == [] and "Time line" not in page.text
    assert guarded.get(f"/console/instances/{others}").status == 404
    assert guarded.get("/console").has("You may not see the numbers")
    assert guarded.get("/console/live").status == 403
    assert guarded.get(f"/console/instances/{own}/life").status == 403


def test_what_is_not_offered_is_refused(guarded: ConsoleSite) -> None:
    read, cancel = _P.READ_PROCESS_INSTANCE, _P.CANCEL_PROCESS_INSTANCE
    _enter(guarded, "bob", order=[read, cancel], salary=[read])
    own, others = guarded.start("order"), guarded.start("salary")
    assert guarded.get(f"/console/instances/{own}").actions == [f"/console/instances/{own}/cancel"]
    assert guarded.get(f"/console/instances/{others}").actions == []
    refused = guarded.post(f"/console/instances/{own}/variables", variables='{"a": 1}')
    assert refused.status == 403 and refused.has("'bob' may not use the page")
    assert guarded.post(f"/console/instances/{others}/cancel").status == 403  # by its partition
    assert guarded.call(guarded.api.instances.get(others)).state == "ACTIVE"
    assert guarded.post(f"/console/instances/{own}/cancel").has("was canceled")


def test_a_form_that_was_made_for_somebody_else_is_refused(guarded: ConsoleSite) -> None:
    _enter(guarded, "ann", order=[_P.CANCEL_PROCESS_INSTANCE])
    token = guarded.get("/console").csrf
    key = guarded.start("order")
    _enter(guarded, "eve", order=[_P.CANCEL_PROCESS_INSTANCE])
    sent = guarded.browser.post(f"/console/instances/{key}/cancel", data={"csrf": token})
    assert sent.status_code == 403 and "its token is missing" in sent.text
