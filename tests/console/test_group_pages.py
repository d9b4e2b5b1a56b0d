"""The pages of groups that share partitions, over a group of a real node."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from holdfast.client.group_home import NodeMembership, NodeSyncLog
from holdfast.gateway.groups.shapes import GroupPartitionQuery, GroupPartitionView
from holdfast.groups.api import NewPartition
from holdfast.groups.owned import OwnedRun
from holdfast.groups.running import Group
from holdfast.limits import GROUP_SESSION_MS

from .conftest import ConsoleSite

HERE = "/console/groups/feeds"


class FeedWork:
    """Runs a partition until it is to go; one of them is broken."""

    async def run(self, owned: OwnedRun) -> None:
        if owned.token == "broken":
            raise ValueError("the feed has no end")
        await owned.leaving()


async def _join(api: Any) -> tuple[Group, "asyncio.Task[Any]"]:
    log = NodeSyncLog(api, "feeds")
    await log.look()
    now = asyncio.get_running_loop().time
    group = Group(
        "feeds", "ann", log,
        lambda member: NodeMembership(api, "feeds", member, GROUP_SESSION_MS, now),
        FeedWork(), partitions=[NewPartition("broken"), NewPartition("news/1")],
    )  # fmt: skip
    return group, asyncio.ensure_future(group.run())


async def _leave(group: Group, task: "asyncio.Task[Any]") -> None:
    group.stop()
    await task


def _until(site: ConsoleSite, token: str, is_so: Callable[[GroupPartitionView], bool]) -> None:
    deadline = time.monotonic() + 30
    while True:
        found = site.call(site.api.groups.partitions("feeds", GroupPartitionQuery())).items
        if any(each.token == token and is_so(each) for each in found):
            return
        assert time.monotonic() < deadline, found


def test_a_group_is_shown_and_its_partitions_parked_and_resumed(console: ConsoleSite) -> None:
    assert console.get("/console/groups").has("There is no group")
    group, task = console.call(_join(console.api))
    _until(console, "news/1", lambda each: each.state == "RUNNING")
    _until(console, "broken", lambda each: each.state == "PARKED")
    listed = console.get("/console/groups")
    assert HERE in listed.links and f"{HERE}?state=PARKED" in listed.links
    page = console.get(HERE)
    assert page.has("the feed has no end") and page.has("news/1 running ann/")
    assert set(page.actions) == {f"{HERE}/park", f"{HERE}/resume"}  # nobody is there to move it to
    parked = console.get(f"{HERE}?state=PARKED")
    assert parked.has("the feed has no end") and not parked.has("news/1")
    assert console.get(f"{HERE}?state=odd").status == 400

    assert console.post(f"{HERE}/park", token="news/1").has("news/1 is to be parked")
    _until(console, "news/1", lambda each: each.is_held)
    assert console.get(HERE).has("news/1 parked by hand")
    assert console.post(f"{HERE}/resume", token="news/1").has("news/1 is to run again")
    _until(console, "news/1", lambda each: each.state == "RUNNING")
    assert console.post(f"{HERE}/move", token="news/1", to="bob").status == 404
    console.call(_leave(group, task))
