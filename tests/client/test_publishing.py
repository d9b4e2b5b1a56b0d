"""Content from a user's program: the same story with a node in the process and over HTTP."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast import (
    Admission,
    DeadlineExceeded,
    Forbidden,
    Holdfast,
    InvalidArgument,
    InvalidState,
    NotFound,
)
from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.content.messages import Package
from holdfast.content.repository.api import ChangeSet
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.content.shapes import TopicQuery
from holdfast.gateway.http import HttpServer
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken
from holdfast.node import LocalNode

LARGE = random.Random(1).randbytes(900_000)
SECONDS = 20.0
T = TypeVar("T")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    pages = tmp_path / "site" / "pages"
    pages.mkdir(parents=True)
    (pages / "home.html").write_text("hello")
    (pages / "old.html").write_text("old")
    (tmp_path / "site" / "large.bin").write_bytes(LARGE)
    return tmp_path / "site"


class ServedNode:
    """A node over HTTP, on a loop of its own."""

    def __init__(self, folder: Path, config: Config, port: int = 0) -> None:
        self._portal = Portal("node")
        self.node = self._portal.call(LocalNode.open(folder, config))
        self._server = HttpServer(self.node.gateway, port=port)
        self._portal.call(self._server.start())
        self.url = self._server.url

    def first_token(self) -> str:
        kept: list[str] = []
        self._portal.call(self.node.gateway.let_first_in(kept.append))
        return kept[0]

    def close(self) -> None:
        self._portal.call(self._server.close())
        self._portal.call(self.node.close())
        self._portal.close()


@contextmanager
def embedded(folder: Path) -> Iterator[Holdfast]:
    with Holdfast.open(folder, workers=0) as app:
        yield app


@contextmanager
def remote(folder: Path) -> Iterator[Holdfast]:
    node = ServedNode(folder, Config())
    try:
        with Holdfast.connect(node.url) as app:
            yield app
    finally:
        node.close()


Opened = Callable[[Path], "contextmanager"]
WAYS = pytest.mark.parametrize("opened", [embedded, remote])


@WAYS
def test_a_site_gets_to_two_subscribers(opened: Opened, site: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "data") as app:
        pub = app.publisher("site", site)
        receipt = pub.add(metadata={"by": "test"})
        assert (receipt.offset, receipt.number) == (0, 1)
        www, memory = tmp_path / "www", MemoryRepository()
        first = app.subscriber("edge-1", of="site", into=DirectoryRepository(www, grace_ms=0))
        second = app.subscriber("edge-2", of="site", into=memory, editable=True)
        for each in (first, second):
            each.wait_until_idle(SECONDS)
        assert (www / "pages" / "home.html").read_text() == "hello"
        assert (www / "large.bin").read_bytes() == LARGE
        data = memory.get("/large.bin").properties["data"]
        assert b"".join(memory.read(data)) == LARGE
        second.close()
        (site / "pages" / "home.html").write_text("hello again")
        pub.add("/pages/home.html", deep=False)
        pub.delete(["/pages/old.html"])
        first.wait_until_idle(SECONDS)
        assert (www / "pages" / "home.html").read_text() == "hello again"
        assert not (www / "pages" / "old.html").exists()
        queue = pub.queue("edge-2")
        assert [(each.number, each.action) for each in queue] == [(2, "ADD"), (3, "DELETE")]
        assert len(queue) == 2 and queue.head is not None and queue.head.number == 2
        until(lambda: pub.queue("edge-1").head is None)  # it says so soon after its commit
        assert len(pub.queue("edge-1")) == 0
        views = {each.name: each for each in pub.subscribers()}
        assert (views["edge-1"].lag, views["edge-2"].lag) == (0, 2)
        farm = pub.farm()
        assert (farm.subscribers, farm.lag_max, farm.slowest) == (2, 2, "edge-2")
        assert [each.publisher for each in app.publishers()] == ["site"]
        until(lambda: list(pub.events()))
        assert [each.number for each in pub.events()] == [1], "not all have the others"
        pub.clear("edge-2", up_to=2)
        again = app.subscriber("edge-2", of="site", into=memory, editable=True)
        again.wait_until_idle(SECONDS)
        node = memory.get("/pages/home.html")
        assert b"".join(memory.read(node.properties["data"])) == b"hello", "it was skipped"


class PickyRepository(MemoryRepository):
    """Refuses one path, for as long as it is told to."""

    refuses = True

    def change(self) -> ChangeSet:
        changes = super().change()
        put = changes.put

        def picky(path: str, *arguments: Any) -> None:
            if self.refuses and path == "/pages/old.html":
                raise InvalidState("no old pages here")
            put(path, *arguments)

        changes.put = picky  # type: ignore[method-assign]
        return changes


@WAYS
def test_a_package_that_fails_is_seen_and_tried_again(
    opened: Opened, site: Path, tmp_path: Path
) -> None:
    with opened(tmp_path / "data") as app:
        pub = app.publisher("site", site)
        store = PickyRepository()
        sub = app.subscriber("edge", of="site", into=store, retries_max=0)
        sub.wait_until_idle(SECONDS)
        receipt = pub.add("/pages")
        pub.add("/large.bin", deep=False)
        sub.wait_until_idle(SECONDS)
        assert store.get("/pages") is None and store.get("/large.bin") is not None
        (failed,) = until(lambda: pub.errors("edge"))
        assert (failed.offset, failed.package_id) == (receipt.offset, receipt.package_id)
        assert "no old pages here" in failed.reason
        assert pub.farm().failing[0].name == "edge"
        store.refuses = False
        pub.retry("edge", failed.offset)
        until(lambda: not pub.errors("edge"))
        assert store.get("/pages/old.html") is not None
        with pytest.raises(NotFound, match="edge-9"):
            pub.errors("edge-9")


def until(look: Callable[[], T]) -> T:
    """What a look finds, when it finds something."""
    deadline = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.02)
    return found


def test_what_cannot_be_published_says_why(site: Path, tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "data", workers=0) as app:
        with pytest.raises(InvalidArgument, match="name the source"):
            app.publisher("site").add("/pages")
        with pytest.raises(NotFound, match="/nothing"):
            app.publisher("site", site).add("/nothing")
        with pytest.raises(InvalidArgument, match="pages/home"):
            app.publisher("site", site).delete("pages/home")
        for name in ("a/b", "", "*"):
            with pytest.raises(InvalidArgument, match="publisher"):
                app.publisher(name)
            with pytest.raises(InvalidArgument, match="subscriber"):
                app.subscriber(name, of="site", into=MemoryRepository())
            with pytest.raises(InvalidArgument, match="publisher"):
                app.subscriber("edge", of=name, into=MemoryRepository())
        with pytest.raises(InvalidArgument, match="found none"):
            app.subscriber("edge", of=[], into=MemoryRepository())


def test_publishing_and_waiting_from_an_event_loop(site: Path, tmp_path: Path) -> None:
    async def story(app: Holdfast) -> None:
        receipt = await app.publisher("site", site).add_async("/pages")
        assert receipt.number == 1
        sub = await asyncio.to_thread(app.subscriber, "edge", of="site", into=tmp_path / "www")
        await sub.wait_until_idle_async(SECONDS)
        assert (tmp_path / "www" / "pages" / "home.html").read_text() == "hello"

    with Holdfast.open(tmp_path / "data", workers=0) as app:
        asyncio.run(story(app))


def test_a_subscriber_that_waits_tells_what_for(site: Path, tmp_path: Path) -> None:
    def wait(package: Package, offset: int) -> Admission:
        return Admission.WAIT

    with Holdfast.open(tmp_path / "data", workers=0) as app:
        app.publisher("site", site).add("/pages")
        sub = app.subscriber("edge", of="site", into=MemoryRepository(), precondition=wait)
        with pytest.raises(DeadlineExceeded, match=r"edge.*but it is"):
            sub.wait_until_idle(0.3)


def test_a_token_that_may_subscribe_to_one_publisher_does_that_alone(
    site: Path, tmp_path: Path
) -> None:
    node = ServedNode(tmp_path / "data", Config(authorization=True))
    try:
        admin = Holdfast.connect(node.url, token=node.first_token())
        token = subscriber_token(admin, "edge")
        with admin, Holdfast.connect(node.url, token=token) as edge:
            admin.publisher("site", site).add()
            admin.publisher("secret", site).add("/pages")
            store = MemoryRepository()
            sub = edge.subscriber("edge-7", of="site", into=store)
            near = admin.subscriber("edge-8", of=["site", "secret"], into=MemoryRepository())
            sub.wait_until_idle(SECONDS)
            near.wait_until_idle(SECONDS)
            data = store.get("/large.bin").properties["data"]
            assert b"".join(store.read(data)) == LARGE, "large files need no more"
            assert [each.name for each in admin.publisher("site").subscribers()] == [
                "edge-7", "edge-8",
            ]  # fmt: skip
            assert [each.name for each in admin.publisher("secret").subscribers()] == ["edge-8"]
            for refused in (
                lambda: edge.publisher("site", site).add("/pages"),
                lambda: edge.publisher("site", site).delete("/pages"),
                lambda: edge.publisher("site").subscribers(),
                lambda: edge.publisher("site").clear("edge-7", up_to=0),
                lambda: list(edge.publisher("secret").events()),
            ):
                with pytest.raises(Forbidden):
                    refused()
            other = edge.subscriber("edge-9", of="secret", into=MemoryRepository())
            with pytest.raises(DeadlineExceeded, match="SUBSCRIBE on CONTENT 'secret'"):
                other.wait_until_idle(2.5)
    finally:
        node.close()


def test_subscribers_of_one_program_wait_with_one_request(site: Path, tmp_path: Path) -> None:
    node = ServedNode(tmp_path / "data", Config())
    asked: list[str] = []
    read = node.node.gateway.content.read

    async def counted(query: TopicQuery) -> bytes:
        asked.append(query.topic)
        return await read(query)

    node.node.gateway.content.read = counted  # type: ignore[method-assign]
    try:
        with Holdfast.connect(node.url) as app:
            pub = app.publisher("site", site)
            subs = [
                app.subscriber(f"edge-{each}", of="site", into=MemoryRepository())
                for each in range(10)
            ]
            for each in subs:
                each.wait_until_idle(SECONDS)
            before = len(asked)
            pub.add("/pages")
            for each in subs:
                each.wait_until_idle(SECONDS)
            assert all(each.imported == 1 for each in subs)
            packages = asked[before:].count("packages")
            assert packages < 2 * len(subs), "a look at the end for each, and few others"
    finally:
        node.close()


def test_a_subscriber_goes_on_when_its_node_comes_back(site: Path, tmp_path: Path) -> None:
    node = ServedNode(tmp_path / "data", Config())
    port = int(node.url.rpartition(":")[2])
    try:
        with Holdfast.connect(node.url) as app:
            pub, store = app.publisher("site", site), MemoryRepository()
            pub.add("/pages")
            sub = app.subscriber("edge", of="site", into=store)
            sub.wait_until_idle(SECONDS)
            node.close()
            node = ServedNode(tmp_path / "data", Config(), port)
            assert pub.add("/large.bin").number == 2
            sub.wait_until_idle(SECONDS)
            assert store.get("/large.bin") is not None and sub.imported == 2
            until(lambda: pub.subscribers()[0].lag == 0)
    finally:
        node.close()


def test_a_new_subscriber_begins_with_a_snapshot_of_another_one(site: Path, tmp_path: Path) -> None:
    node = ServedNode(tmp_path / "data", Config(authorization=True))
    try:
        with Holdfast.connect(node.url, token=node.first_token()) as admin:
            tokens = [subscriber_token(admin, name) for name in ("old", "new")]
            admin.publisher("site", site).add()
            with (
                Holdfast.connect(node.url, token=tokens[0]) as old,
                Holdfast.connect(node.url, token=tokens[1]) as new,
            ):
                old.subscriber("old", of="site", into=MemoryRepository()).wait_until_idle(SECONDS)
                admin.portal.call(admin.api.content.take_snapshot("old"))
                until(lambda: admin.portal.call(admin.api.content.snapshots("site")))
                store = MemoryRepository()
                sub = new.subscriber("new", of="site", into=store, seed_from="old")
                sub.wait_until_idle(SECONDS)
                assert sub.imported == 0, "the snapshot had it"
                data = store.get("/large.bin").properties["data"]
                assert b"".join(store.read(data)) == LARGE
    finally:
        node.close()


def subscriber_token(admin: Holdfast, name: str) -> str:
    """The token of a machine that may subscribe to `site` and no more."""
    identity = admin.api.identity
    may = NewAuthorization(
        OwnerType.CLIENT, name, ResourceType.CONTENT, "site", [Permission.SUBSCRIBE]
    )
    admin.portal.call(identity.create_authorization(may))
    return admin.portal.call(identity.create_token(NewToken(name))).token
