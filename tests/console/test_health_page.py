"""The page of the node's health: state, partitions, disk, backups, and who may see which."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.console.rendering import NOTHING, size
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken
from holdfast.gateway.node.shapes import Health

from .conftest import ConsoleSite


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[ConsoleSite]:
    config = Config(partitions=1, authorization=True, log_level="critical")
    site = ConsoleSite(tmp_path / "data", config)
    site.call(site.api.let_first_in(lambda _: None))
    yield site
    site.close()


def _enter(site: ConsoleSite, name: str, *permissions: Permission) -> None:
    token = site.call(site.api.identity.create_token(NewToken(name))).token
    if permissions:
        of = (OwnerType.CLIENT, name, ResourceType.SYSTEM, "*")
        site.call(site.api.identity.create_authorization(NewAuthorization(*of, list(permissions))))
    site.browser.headers["authorization"] = f"Bearer {token}"


def test_it_shows_how_the_node_is_and_why(console: ConsoleSite, tmp_path: Path) -> None:
    for _ in range(4):
        console.submit("add")
    page = console.get("/console/health")
    assert page.status == 200 and "/console/health" in page.links
    views = console.call(console.api.node.topology()).partitions
    for each in views:
        last, done = each.next_position - 1, each.processed_position
        assert page.has(f"{each.partition_id} up this process {last} {done} 0 {NOTHING}")
    assert page.has("nothing is known to be damaged") and page.has("none are kept")
    assert page.has("No backup was begun")
    sent = console.post("/console/health/backup", target=str(tmp_path / "copy"))
    assert sent.has("The backup has begun.") and sent.has(str(tmp_path / "copy"))
    console.api.show_health(lambda: Health("DEGRADED", ["log-1: block 7"], ["the disk is slow"]))
    page = console.get("/console/health")
    assert page.has("degraded") and page.has("log-1: block 7") and page.has("the disk is slow")


def test_numbers_and_backups_are_for_those_who_may(guarded: ConsoleSite, tmp_path: Path) -> None:
    _enter(guarded, "ann")
    page = guarded.get("/console/health")
    assert page.has("up") and not page.has("Disk free") and page.actions == []
    _enter(guarded, "bob", Permission.READ)
    page = guarded.get("/console/health")
    assert page.has("Disk free") and page.actions == []
    target = str(tmp_path / "copy")
    assert guarded.post("/console/health/backup", target=target).status == 403
    assert guarded.call(guarded.api.node.backup()).state == "NONE"
    _enter(guarded, "cleo", Permission.READ, Permission.UPDATE)
    assert guarded.get("/console/health").actions == ["/console/health/backup"]


def test_bytes_are_shown_in_a_unit_for_people() -> None:
    assert [size(each) for each in (0, 999, 1_000, 4_210_984, 2.7e11, 5e15)] == [
        "0 B", "999 B", "1.0 KB", "4.2 MB", "270.0 GB", "5,000.0 TB",
    ]  # fmt: skip
    assert size(None) == NOTHING
