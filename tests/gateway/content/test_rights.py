"""Who may see and do what in content distribution: by publisher, and nothing beyond it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.gateway.access.access_node import Guarded, guarded

from holdfast.blobs.memory import MemoryBlobs
from holdfast.client.content_log import NodeContentLog
from holdfast.client.remote import RemoteApi
from holdfast.content.messages import (
    Discovery,
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    SnapshotTaken,
    SubscriberProgress,
    decode_package,
)
from holdfast.content.topics import ContentTopic
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden, InvalidArgument
from holdfast.gateway.content.shapes import EventQuery, NewUpload, QueueQuery

_P = Permission
BOTH = ("site", "shop")


def story(tell: Callable[[Guarded], Awaitable[None]]) -> None:
    async def run() -> None:
        async with guarded() as there:
            await tell(there)

    asyncio.run(run())


async def let(there: Guarded, name: str, publisher: str, *permissions: Permission) -> RemoteApi:
    await there.let(name, ResourceType.CONTENT, publisher, *permissions)
    return await there.machine(name)


def log_of(api: RemoteApi) -> NodeContentLog:
    return NodeContentLog(api, MemoryBlobs())


def package(publisher: str, id_: str = "p") -> Package:
    return Package(publisher, id_, PackageAction.DELETE, ["/a"], [], 0, 0, b"", None, None)


def progress(*publishers: str) -> list[SubscriberProgress]:
    return [SubscriberProgress(each) for each in publishers]


def discovery(*publishers: str) -> Discovery:
    return Discovery("edge-7", "store", True, 3, progress(*publishers))


async def read(api: RemoteApi, topic: ContentTopic) -> list[bytes]:
    found = await log_of(api).read(topic, 1, 0, bytes_max=1_000_000, wait_ms=0)
    return [each.payload for each in found.entries]


async def fill(there: Guarded) -> None:
    """Something of two publishers on every topic."""
    log = log_of(there.admin)
    for publisher in BOTH:
        assert await log.publish(package(publisher)) == (BOTH.index(publisher), 1, 0)
        status = PackageStatus("edge-7", publisher, 0, ImportOutcome.REMOVED_FAILED, 1, "p", "no")
        await log.report([status])
        blob = f"content/snapshots/of-{publisher}"
        await log.snapshot_taken(SnapshotTaken("edge-7", "c", blob, progress(publisher)))
    await log.announce(discovery(*BOTH))


def test_a_subscriber_reads_its_publisher_alone() -> None:
    async def tell(there: Guarded) -> None:
        await fill(there)
        mine = await let(there, "edge", "site", _P.SUBSCRIBE)
        packages = [decode_package(each) for each in await read(mine, ContentTopic.PACKAGES)]
        assert [each.publisher for each in packages] == ["site"]
        assert packages[0].user == "admin", "who published it is known by the token"
        found = await log_of(mine).read(ContentTopic.PACKAGES, 1, 0, bytes_max=1_000, wait_ms=0)
        assert (found.next, found.end) == (2, 2), "it reads on behind what it does not see"
        for topic in (ContentTopic.STATUSES, ContentTopic.EVENTS):
            assert len(await read(mine, topic)) == 1, topic
            assert b"shop" not in b"".join(await read(mine, topic)), topic
            assert len(await read(there.admin, topic)) == 2, topic
        await log_of(mine).announce(discovery("site"))
        await log_of(mine).report([PackageStatus("edge-7", "site", 0, ImportOutcome.IMPORTED)])

    story(tell)


REFUSED: dict[str, Callable[[RemoteApi], Awaitable[Any]]] = {
    "announce": lambda api: log_of(api).announce(discovery("shop")),
    "announce both": lambda api: log_of(api).announce(discovery(*BOTH)),
    "report": lambda api: log_of(api).report(
        [PackageStatus("edge-7", "shop", 0, ImportOutcome.IMPORTED)]
    ),
    "snapshot": lambda api: log_of(api).snapshot_taken(
        SnapshotTaken("edge-7", "c", "content/snapshots/x", progress("shop"))
    ),
    "publish": lambda api: log_of(api).publish(package("shop")),
    "upload": lambda api: api.content.begin_upload(NewUpload("shop", "content/packages/x")),
    "upload a snapshot": lambda api: api.content.begin_upload(
        NewUpload("shop", "content/snapshots/x")
    ),
    "download a snapshot": lambda api: api.content.read_blob("content/snapshots/of-shop", 0, 0),
    "download an unknown one": lambda api: api.content.read_blob("content/snapshots/x", 0, 0),
    "subscribers": lambda api: api.content.subscribers("shop"),
    "farm": lambda api: api.content.farm("shop"),
    "queue": lambda api: api.content.queue("shop", "edge-7", QueueQuery()),
    "errors": lambda api: api.content.errors("shop", "edge-7", QueueQuery()),
    "clear": lambda api: api.content.clear("shop", "edge-7", 0),
    "remove": lambda api: api.content.remove("shop", "edge-7", 0),
    "retry": lambda api: api.content.retry("shop", "edge-7", 0),
    "events": lambda api: api.content.events("shop", EventQuery()),
    "snapshots": lambda api: api.content.snapshots("shop"),
    "take a snapshot": lambda api: api.content.take_snapshot("edge-7"),  # it has both
    "forget": lambda api: api.content.forget("edge-7"),
}


def test_rights_on_one_publisher_permit_nothing_with_another() -> None:
    async def tell(there: Guarded) -> None:
        await fill(there)
        mine = await let(there, "all", "site", _P.PUBLISH, _P.SUBSCRIBE, _P.ADMINISTER)
        for what, ask in REFUSED.items():
            with pytest.raises(Forbidden, match="on CONTENT"):
                await ask(mine)
                pytest.fail(what)
        assert [each.publisher for each in await mine.content.publishers()] == ["site"]
        assert [each.publishers for each in await mine.content.snapshots("site")] == [["site"]]

    story(tell)


LEVELS: dict[str, tuple[set[Permission], Callable[[RemoteApi], Awaitable[Any]]]] = {
    "publish": ({_P.PUBLISH}, lambda api: log_of(api).publish(package("site", "q"))),
    "missing": ({_P.PUBLISH}, lambda api: log_of(api).missing(["content/packages/x"])),
    "upload": (
        {_P.PUBLISH},
        lambda api: api.content.begin_upload(NewUpload("site", "content/packages/x")),
    ),
    "announce": ({_P.SUBSCRIBE}, lambda api: log_of(api).announce(discovery("site"))),
    "read": (
        {_P.PUBLISH, _P.SUBSCRIBE, _P.ADMINISTER},
        lambda api: read(api, ContentTopic.PACKAGES),
    ),
    "subscribers": ({_P.PUBLISH, _P.ADMINISTER}, lambda api: api.content.subscribers("site")),
    "queue": (
        {_P.PUBLISH, _P.ADMINISTER},
        lambda api: api.content.queue("site", "edge-7", QueueQuery()),
    ),
    "retry": ({_P.ADMINISTER}, lambda api: api.content.retry("site", "edge-7", 0)),
    "clear": ({_P.ADMINISTER}, lambda api: api.content.clear("site", "edge-7", 0)),
}


def test_each_permission_is_for_what_it_says() -> None:
    async def tell(there: Guarded) -> None:
        await fill(there)
        apis = {
            each: await let(there, f"may-{each}", "site", each)
            for each in (_P.PUBLISH, _P.SUBSCRIBE, _P.ADMINISTER)
        }
        for what, (needed, ask) in LEVELS.items():
            for permission, api in apis.items():
                if permission in needed:
                    await ask(api)
                else:
                    with pytest.raises(Forbidden):
                        await ask(api)
                        pytest.fail(f"{what} with {permission}")

    story(tell)


def test_an_upload_is_whose_it_is() -> None:
    async def tell(there: Guarded) -> None:
        one, other = [
            await let(there, name, "site", _P.PUBLISH) for name in ("publisher-1", "publisher-2")
        ]
        upload = await one.content.begin_upload(NewUpload("site", "content/packages/x"))
        with pytest.raises(Exception, match="begin again"):
            await other.content.write_upload(upload.upload_id, "0", b"x")
        assert (await one.content.write_upload(upload.upload_id, "0", b"x")).offset == 1

    story(tell)


@pytest.mark.parametrize("name", ["a/b", "*", "", "x" * 201, "a\n"])
def test_an_agent_has_a_name_that_can_be_permitted(name: str) -> None:
    async def tell(there: Guarded) -> None:
        with pytest.raises(InvalidArgument):
            await log_of(there.admin).publish(package(name))

    story(tell)
