"""The node's side of content distribution: the `ContentLog` of its publishers and subscribers.

Nothing is there before it is used: no topics, no folder for blobs, no task.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.blobs import Blobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import Clock
from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.publisher.checks import check_package, checked_discovery
from holdfast.content.publisher.opening import read_back
from holdfast.content.publisher.running import RunningContent
from holdfast.content.topics import ContentTopic
from holdfast.errors import NotFound, Unavailable
from holdfast.journal import Journal
from holdfast.limits import CONTENT_SUBSCRIBER_KEPT_MS, READ_BYTES_MAX, WAIT_MS_MAX

T = TypeVar("T")


class ContentService:
    """The log of packages on a node."""

    def __init__(
        self,
        journal: Journal,
        open_blobs: Callable[[], Blobs],
        clock: Clock,
        kept_ms: int = CONTENT_SUBSCRIBER_KEPT_MS,
    ) -> None:
        self._journal = journal
        self._open_blobs = open_blobs
        self._clock = clock
        self._kept_ms = kept_ms  # how long a silent subscriber is waited for
        self._blobs: Blobs | None = None
        self._opening: asyncio.Task[RunningContent] | None = None
        self._running: RunningContent | None = None
        self._is_stopped = False

    # --- its life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begins to read what the topics say, where content was distributed before."""
        if self.is_used:
            self._begin()

    async def stop(self) -> None:
        """Writes what is only in memory; whoever waits is told."""
        self._is_stopped = True
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._running is not None:
            await self._running.stop()

    def abandon(self) -> None:
        """The process ends: nothing is written, and nobody is told."""
        self._is_stopped = True
        if self._opening is not None:
            self._opening.cancel()
        if self._running is not None:
            self._running.abandon()

    @property
    def is_used(self) -> bool:
        """Whether content was ever distributed by this node."""
        return ContentTopic.EVENTS.topic in self._journal.topics()

    @property
    def blobs(self) -> Blobs:
        """For what is too large for the log; calls block."""
        if self._blobs is None:
            self._blobs = self._open_blobs()
        return self._blobs

    async def running(self) -> RunningContent:
        """What runs, from the first use on."""
        if self._running is None or self._is_stopped:
            if self._is_stopped:
                raise Unavailable("Expected a running node, but it is closing; try again later")
            return await asyncio.shield(self._begin())
        return self._running

    def _begin(self) -> "asyncio.Task[RunningContent]":
        if self._opening is None or (
            self._opening.done() and (self._opening.cancelled() or self._opening.exception())
        ):
            self._opening = asyncio.create_task(self._open())
        return self._opening

    async def _open(self) -> RunningContent:
        for topic in ContentTopic:
            self._journal.create_topic(topic.topic, topic.partitions, topic.retention)
        found = await read_back(self._journal, self._kept_ms)
        self._running = RunningContent(self._journal, self._clock, found)
        return self._running

    # --- the log --------------------------------------------------------------------------------

    async def publish(self, package: Package) -> Published:
        """Appends a package; one whose id is there already is not appended again.

        A TEST has the number of the package before it: it is in no queue, and is not counted.
        """
        running = self._running or await self.running()
        check_package(package, running.state)
        return await running.publish(package)

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        """Which of these blobs are not stored."""
        await self.running()
        return await self._blocking(lambda: [each for each in blobs if not self.blobs.head(each)])

    async def read(
        self, topic: ContentTopic, partition: int, offset: int, *, bytes_max: int, wait_ms: int
    ) -> TopicEntries:
        """Messages from an offset on; waits if there are none yet."""
        running = self._running or await self.running()
        if not 1 <= partition <= topic.partitions:
            raise NotFound(
                f"Expected partition 1 to {topic.partitions} of {topic.topic}, but found"
                f" {partition}",
                partition=partition,
            )
        return await running.logs[topic].read(
            offset, min(max(bytes_max, 1), READ_BYTES_MAX), min(wait_ms, WAIT_MS_MAX)
        )

    async def announce(self, discovery: Discovery) -> None:
        """A subscriber says how far it is; it is known at once and on the log soon after."""
        running = self._running or await self.running()
        running.announce(checked_discovery(discovery, running.state))

    async def report(self, statuses: Sequence[PackageStatus]) -> None:
        """A subscriber says what became of packages."""
        running = self._running or await self.running()
        await running.report(statuses)

    async def snapshot_taken(self, event: SnapshotTaken) -> None:
        """A subscriber says that it has stored what it holds."""
        running = self._running or await self.running()
        await running.events.append([event])

    async def _blocking(self, call: Callable[[], T]) -> T:
        """Blobs in memory are used at once, so that a simulation stays in its own time."""
        if isinstance(self.blobs, MemoryBlobs):
            return call()
        return await asyncio.to_thread(call)
