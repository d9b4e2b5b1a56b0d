"""Blobs of content: those that the log refers to stay, the others go when their time is over."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest
from package_kit import BlobsOnly, packed

from holdfast.blobs import put
from holdfast.blobs.memory import MemoryBlobs
from holdfast.content import cleaning
from holdfast.content.blobs import BINARIES, MARKS, PACKAGES, SNAPSHOTS, binary_blob, package_blob
from holdfast.content.cleaning import BlobCleanup, BlobKeeper
from holdfast.content.messages import Package, PackageAction, encode
from holdfast.content.topics import ContentTopic
from holdfast.errors import DataLoss, InvalidArgument, InvalidState
from holdfast.journal.memory import MemoryJournal
from holdfast.limits import CONTENT_CLEANUP_INTERVAL_MS as INTERVAL_MS

TOPIC = ContentTopic.PACKAGES.topic


class Hands:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.ms = 1_000_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def busy(self) -> float:
        return 0.0


class Node:
    """A log with blobs, and the service that keeps them."""

    def __init__(self, blobs: MemoryBlobs | None = None) -> None:
        self.clock = Hands()
        self.journal = MemoryJournal()
        self.journal.create_topic(TOPIC, 1)
        self.blobs = blobs or MemoryBlobs()
        self.log: dict[int, tuple[str, ...]] = {}  # what was published, by offset
        self.restart()

    def restart(self) -> None:
        self.keeper = BlobKeeper(self.blobs, self.journal, self.clock)

    async def publish(self, *names: str) -> int:
        async with self.keeper.publishing(names):
            return await self.append(*names)

    async def append(self, *names: str) -> int:
        blob = next((name for name in names if name.startswith(PACKAGES)), None)
        binaries = [name for name in names if name != blob]
        message = Package(
            "site", "id", PackageAction.ADD, ["/a"], [], 1, 0, b"", None, blob, binaries
        )
        offset = await self.journal.append(TOPIC, 1, [encode(message)])
        self.log[offset] = names
        return offset

    def drop_to(self, offset: int) -> None:
        self.journal.discard(TOPIC, 1, offset)

    def drop_all(self) -> None:
        self.drop_to(self.journal.bounds(TOPIC, 1).next)

    def upload(self, *names: str) -> None:
        for name in names:
            put(self.blobs, name, (name.encode(),))

    def names(self) -> list[str]:
        return [name for name in self.blobs.content if not name.startswith(MARKS)]

    async def clean_later(self) -> BlobCleanup:
        self.clock.ms += INTERVAL_MS
        return await self.keeper.clean()


def binary(number: int) -> str:
    return binary_blob(bytes([number]) * 32)


A, B, C = binary(1), binary(2), binary(3)
WHOLE = package_blob(b"p" * 32)


def run(story: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story(Node()))


def test_a_blob_stays_while_the_log_refers_to_it_and_goes_after_that() -> None:
    async def story(node: Node) -> None:
        node.upload(A, WHOLE)
        at = await node.publish(A, WHOLE)
        assert await node.keeper.clean() == BlobCleanup(seen=2, marked=2)
        await node.publish()
        assert await node.clean_later() == BlobCleanup(seen=2)
        node.drop_to(at + 1)
        size_bytes = len(A) + len(WHOLE)
        done = await node.clean_later()
        assert done == BlobCleanup(seen=2, removed=2, removed_bytes=size_bytes)
        assert done.kept == 0
        assert node.names() == []
        assert await node.keeper.clean() == BlobCleanup()
        assert list(node.blobs.content) == [f"{MARKS}last"]

    run(story)


def test_a_blob_that_is_shared_stays_for_the_last_package_that_refers_to_it() -> None:
    async def story(node: Node) -> None:
        node.upload(A)
        first = await node.publish(A)
        await node.keeper.clean()
        second = await node.publish(A)
        await node.publish()
        node.drop_to(first + 1)
        assert (await node.clean_later()).referenced == 1
        assert (await node.clean_later()).referenced == 0  # it has a new mark
        node.drop_to(second + 1)
        await node.clean_later()
        assert node.names() == [A]  # the log is not dropped up to its mark
        node.drop_all()
        assert (await node.clean_later()).removed == 1

    run(story)


def test_a_blob_that_is_not_published_yet_stays_for_an_interval_at_least() -> None:
    """Also where the log is empty, and however often somebody cleans up."""

    async def story(node: Node) -> None:
        node.upload(A)
        for _ in range(3):
            assert (await node.keeper.clean()).removed == 0
        node.clock.ms += INTERVAL_MS - 1
        assert (await node.keeper.clean()).removed == 0
        node.clock.ms += 1
        assert (await node.keeper.clean()).removed == 1

    run(story)


def test_a_publisher_that_need_not_upload_finds_the_blob_when_it_publishes() -> None:
    async def story(node: Node) -> None:
        node.upload(A, B)
        await node.publish(A, B)
        await node.keeper.clean()
        node.drop_all()
        node.clock.ms += INTERVAL_MS
        assert await node.keeper.missing([A, C]) == [C]
        node.restart()  # what was promised survives it
        assert (await node.keeper.clean()).removed == 1
        node.upload(C)
        await node.publish(A, C)
        assert node.names() == [A, C]

    run(story)


def test_a_package_whose_blob_is_missing_is_not_published() -> None:
    async def story(node: Node) -> None:
        node.upload(A)
        await node.keeper.missing([A, B])
        with pytest.raises(InvalidState, match=f"{B}.*upload it") as caught:
            await node.publish(A, B)
        assert caught.value.fields["missing"] == [B]
        assert node.journal.bounds(TOPIC, 1).next == 0
        node.upload(B)
        await node.publish(A, B)

    run(story)


@pytest.mark.parametrize("name", ["partitions/7/120.export", "", "../x", f"{SNAPSHOTS}x"])
def test_nobody_learns_what_else_is_in_the_store(name: str) -> None:
    async def story(node: Node) -> None:
        with pytest.raises(InvalidArgument, match="blob of content"):
            await node.keeper.missing([A, name])
        with pytest.raises(InvalidArgument, match="blob of content"):
            await node.publish(A, name)

    run(story)


def test_a_blob_that_was_removed_is_looked_for_again() -> None:
    async def story(node: Node) -> None:
        node.upload(A)
        await node.keeper.missing([A])
        await node.keeper.clean()
        node.clock.ms += 2 * INTERVAL_MS
        assert (await node.keeper.clean()).removed == 1
        with pytest.raises(InvalidState):
            await node.publish(A)
        assert await node.keeper.missing([A]) == [A]

    run(story)


def test_a_snapshot_stays_while_the_log_goes_on_behind_it() -> None:
    async def story(node: Node) -> None:
        snapshot = f"{SNAPSHOTS}edge-7/1"
        await node.publish()
        node.upload(snapshot)
        await node.keeper.clean()
        node.drop_all()  # the next package follows directly
        assert (await node.clean_later()).removed == 0
        await node.publish()
        node.drop_all()  # one was dropped that a subscriber would not get
        assert (await node.clean_later()).removed == 1

    run(story)


def test_a_package_that_cannot_be_read_stops_the_clean_up() -> None:
    async def story(node: Node) -> None:
        node.upload(A)
        await node.keeper.clean()
        await node.journal.append(TOPIC, 1, [b"\xc1"])
        node.clock.ms += INTERVAL_MS
        with pytest.raises(DataLoss, match="offset 0"):
            await node.keeper.clean()
        assert node.names() == [A]

    run(story)


def test_it_is_cleaned_up_on_an_interval_that_survives_a_restart() -> None:
    async def story(node: Node) -> None:
        assert await node.keeper.clean_if_due() is not None
        for restarts in (False, True):
            if restarts:
                node.restart()
            assert await node.keeper.clean_if_due() is None
            node.clock.ms += INTERVAL_MS - 1
            assert await node.keeper.clean_if_due() is None
            node.clock.ms += 1
            assert await node.keeper.clean_if_due() is not None
        node.clock.ms -= 10 * INTERVAL_MS  # a clock that was wrong before
        node.restart()
        assert await node.keeper.clean_if_due() is None
        node.clock.ms += INTERVAL_MS
        assert await node.keeper.clean_if_due() is not None

    run(story)


def test_a_mark_does_not_outlive_its_blob() -> None:
    async def story(node: Node) -> None:
        node.upload(A)
        await node.keeper.clean()
        node.blobs.delete(A)  # somebody did that by hand
        await node.clean_later()
        node.upload(A)
        assert await node.keeper.clean() == BlobCleanup(seen=1, marked=1)

    run(story)


def test_nothing_else_in_the_store_is_touched() -> None:
    async def story(node: Node) -> None:
        others = ["partitions/7/120.export", "content/other", "content/binaries2/x"]
        node.upload(*others)
        await node.keeper.clean()
        assert (await node.clean_later()).seen == 0
        assert node.names() == others

    run(story)


# --- any order of events ------------------------------------------------------------------------


class Crashed(BaseException):
    """The process ends here."""


class WatchedBlobs(MemoryBlobs):
    """Dies at a given call, and checks that nobody needs what is deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.calls_left = 10**9
        self.check_delete: Callable[[str], None] = lambda name: None

    def check(self) -> None:
        super().check()
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Crashed

    def delete(self, name: str) -> None:
        self.check_delete(name)
        super().delete(name)


@pytest.mark.parametrize("calls", range(20))
def test_a_clean_up_that_ends_anywhere_leaves_no_mark_behind(calls: int) -> None:
    """A blob that is stored again after it was removed is a new one, whenever the process died."""

    async def story(node: Node, blobs: WatchedBlobs) -> None:
        node.upload(A)
        await node.keeper.clean()
        node.clock.ms += INTERVAL_MS
        blobs.calls_left = calls
        with contextlib.suppress(Crashed):
            await node.keeper.clean()
        blobs.calls_left = 10**9
        node.restart()
        if await node.keeper.missing([A]):
            node.upload(A)
            assert (await node.keeper.clean()).removed == 0
        else:
            await node.keeper.clean()
            assert (await node.clean_later()).removed + (await node.clean_later()).removed == 1

    blobs = WatchedBlobs()
    asyncio.run(story(Node(blobs), blobs))


class World:
    """Publishers, retention, clean-up and crashes, in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.blobs = WatchedBlobs()
        self.node = Node(self.blobs)
        self.blobs.check_delete = self._check_delete
        self.promised: dict[str, int] = {}  # until when a blob must not be removed
        self.seen: Counter[str] = Counter()

    def referenced(self) -> set[str]:
        earliest = self.node.journal.bounds(TOPIC, 1).earliest
        return {name for at, names in self.node.log.items() if at >= earliest for name in names}

    def _check_delete(self, name: str) -> None:
        if name.startswith(MARKS):
            return
        self.seen["removed"] += 1
        assert name not in self.referenced(), "the log refers to it"
        assert self.promised.get(name, 0) <= self.node.clock.ms, (
            "somebody was told that it is there"
        )

    async def turns(self) -> None:
        for _ in range(self.dice.randrange(4)):
            await asyncio.sleep(0)

    async def call(self, _blobs: object, function: Callable[..., Any], *args: Any) -> Any:
        """As in a thread: others run before it begins, and after it has ended."""
        await self.turns()
        done = function(*args)
        await self.turns()
        return done

    async def publisher(self) -> None:
        while True:
            names = [binary(self.dice.randrange(8)) for _ in range(self.dice.randrange(1, 4))]
            names = list(dict.fromkeys(names))
            if self.dice.random() < 0.3:
                names.append(package_blob(bytes([self.dice.randrange(5)]) * 32))
            if self.dice.random() < 0.8:  # otherwise it hopes that they are there
                await self._store(names)
            if self.dice.random() < 0.2:
                continue  # it gives up
            try:
                async with self.node.keeper.publishing(names):
                    await self.turns()
                    await self.node.append(*names)
            except InvalidState:
                self.seen["refused"] += 1
                continue
            self.seen["published"] += 1
            assert self.referenced() <= self.blobs.content.keys(), "a package without its blobs"
            await self.turns()

    async def _store(self, names: list[str]) -> None:
        asked_ms = self.node.clock.ms
        missing = await self.node.keeper.missing(names)
        for name in names:  # whether they are there, or are there soon
            self.promised[name] = asked_ms + INTERVAL_MS // 2
        await self.turns()
        for name in missing:
            self.node.upload(name)
            await self.turns()

    async def cleaner(self) -> None:
        while True:
            await self.node.keeper.clean()
            await self.turns()

    async def time_and_retention(self) -> None:
        while True:
            self.node.clock.ms += self.dice.choice((0, INTERVAL_MS // 20, INTERVAL_MS // 3))
            earliest, end = self.node.journal.bounds(TOPIC, 1)
            if self.dice.random() < 0.3:
                self.node.drop_to(self.dice.randint(earliest, end))
            for _ in range(self.dice.randrange(1, 12)):
                await asyncio.sleep(0)

    async def live(self) -> None:
        """Everything at once until the process dies; then it starts again."""
        self.blobs.calls_left = self.dice.randrange(20, 200)
        actors: Iterable[Coroutine[Any, Any, None]] = (
            self.publisher(), self.publisher(), self.cleaner(), self.time_and_retention(),
        )  # fmt: skip
        tasks = [asyncio.create_task(self._until_crash(each)) for each in actors]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        self.blobs.calls_left = 10**9
        self.node.restart()

    async def _until_crash(self, actor: Coroutine[Any, Any, None]) -> None:
        try:
            await actor
        except Crashed:
            self.seen["crashed"] += 1

    async def story(self) -> None:
        for _ in range(4):
            await self.live()
        assert self.referenced() <= self.blobs.content.keys()
        self.node.drop_all()
        for _ in range(3):  # what had no mark gets one, and goes the next time
            await self.node.clean_later()
        assert self.node.names() == []
        assert list(self.blobs.content) == [f"{MARKS}last"]


def live_through(seeds: Iterable[int], patch: pytest.MonkeyPatch) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        world = World(seed)
        patch.setattr(cleaning, "call", world.call)
        patch.setattr(cleaning, "CONTENT_CLEANUP_SLICE", world.dice.choice((1, 3, 50)))
        try:
            asyncio.run(world.story())
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        seen += world.seen
    return seen


def test_no_order_of_events_loses_a_blob_that_the_log_refers_to(monkeypatch) -> None:
    seen = live_through(range(100), monkeypatch)
    assert min(seen[each] for each in ("removed", "published", "crashed", "refused")) > 100, seen


@pytest.mark.soak
def test_no_order_of_events_loses_a_blob_that_the_log_refers_to_at_length(monkeypatch) -> None:
    live_through(range(100, 10_000), monkeypatch)


def test_blobs_are_named_by_what_is_in_them() -> None:
    log = BlobsOnly()
    tree = {"/a": {"data": b"x" * 70_000}}
    message = asyncio.run(packed(tree, ["/a"], log=log))
    assert [name[: len(BINARIES)] for name in message.binaries] == [BINARIES]
