"""The node's side of content distribution: the `ContentLog` of its publishers and subscribers.

Nothing is there before it is used: no topics, no folder for blobs, no task.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.blobs import Blobs
from holdfast.clock import Clock
from holdfast.content.messages import (
    NOWHERE,
    Discovery,
    Package,
    PackageStatus,
    SnapshotTaken,
)
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.publisher.retention import EVERYTHING, ContentNeeds
from holdfast.content.publisher.topic_log import moved
from holdfast.content.topics import ContentTopic
from holdfast.errors import NotFound, Unavailable
from holdfast.journal import Journal
from holdfast.limits import (
    CONTENT_SUBSCRIBER_KEPT_MS,
    LATE_APPEND_MS,
    READ_BYTES_MAX,
    WAIT_MS_MAX,
)
from holdfast.logs import log
from holdfast.metrics import NO_NUMBERS, ContentNumbers

if TYPE_CHECKING:  # what runs is loaded when it is needed: most nodes distribute no content
    from holdfast.content.cleaning import BlobCleanup
    from holdfast.content.publisher.administration import Administration
    from holdfast.content.publisher.running import RunningContent
    from holdfast.content.publisher.views import (
        CommandSent,
        FarmSummary,
        QueueItem,
        QueueSummary,
        SnapshotSummary,
        StoredEvent,
        SubscriberSummary,
    )


class ContentService:
    """The log of packages on a node."""

    def __init__(
        self,
        journal: Journal,
        open_blobs: Callable[[], Blobs],
        clock: Clock,
        kept_ms: int = CONTENT_SUBSCRIBER_KEPT_MS,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._journal = journal
        self._open_blobs = open_blobs
        self._clock = clock
        self._kept_ms = kept_ms  # how long a silent subscriber is waited for
        self._new_id = new_id
        self._blobs: Blobs | None = None
        self._opening: asyncio.Task[RunningContent] | None = None
        self._running: RunningContent | None = None
        self._failure = ""  # why the topics could not be read
        self._is_stopped = False
        self._is_here = True  # the topics; else they are at another member
        self._reason = ""  # why they are not

    # --- its life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """The same as `begin`."""
        self.begin()

    def begin(self) -> None:
        """The topics are here: begins to read what they say, where content was distributed."""
        self._is_here, self._is_stopped = True, False
        if self.is_used:
            self._begin()

    async def stop(self) -> None:
        """Writes what is only in memory; callers that wait are told.

        A log that does not answer, as one without a quorum, is not waited for long.
        """
        self._is_stopped = True
        try:
            async with asyncio.timeout(LATE_APPEND_MS / 1_000):
                if self._opening is not None:
                    await asyncio.wait([self._opening])
                if self._running is not None:
                    await self._running.stop()
        except TimeoutError:
            log.warning(
                "content: the log does not answer; subscribers will repeat what was not written"
            )
            self.abandon()
        self._opening = self._running = None

    def leave(self, reason: str) -> None:
        """Another member has the topics: waiting callers are told to ask there. `stop` follows."""
        self._is_here, self._reason = False, reason
        if self._running is not None:
            self._running.shut(moved(reason))

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
        self._check_here()
        if self._running is None or self._is_stopped:
            if self._is_stopped:
                raise Unavailable("The node is closing; try again later")
            return await asyncio.shield(self._begin())
        return self._running

    def _check_here(self) -> None:
        if not self._is_here:
            raise moved(self._reason)

    def _begin(self) -> asyncio.Task[RunningContent]:
        if self._opening is None or (
            self._opening.done() and (self._opening.cancelled() or self._opening.exception())
        ):
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return self._opening

    def _opened(self, opening: asyncio.Task[RunningContent]) -> None:
        error = None if opening.cancelled() else opening.exception()
        self._failure = "" if error is None else str(error)
        if error is not None:
            log.error("content: topics not read", error=str(error))

    async def _open(self) -> RunningContent:
        from holdfast.content.publisher.opening import read_back
        from holdfast.content.publisher.running import RunningContent

        for topic in ContentTopic:
            self._journal.create_topic(topic.topic, topic.partitions, topic.retention)
            await asyncio.sleep(0)  # files are made: others have their turn in between
        found = await read_back(self._journal, self._kept_ms)
        self._running = RunningContent(self._journal, self._clock, found, lambda: self.blobs)
        return self._running

    # --- the log --------------------------------------------------------------------------------

    async def publish(self, package: Package) -> Published:
        """Appends a package; one whose id is there already is not appended again.

        A TEST has the number of the package before it: it is in no queue, and is not counted.
        """
        running = self._running or await self.running()
        return await running.publish(package)

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        """Which of these blobs are not stored; the others are kept for the next package."""
        return await (await self.running()).keeper.missing(blobs)

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
        running.announce(discovery)

    async def report(self, statuses: Sequence[PackageStatus]) -> None:
        """A subscriber says what became of packages."""
        running = self._running or await self.running()
        await running.report(statuses)

    async def snapshot_taken(self, event: SnapshotTaken) -> None:
        """A subscriber says that it has stored what it holds."""
        running = self._running or await self.running()
        await running.events.append([event])

    # --- what people see ------------------------------------------------------------------------

    async def publishers(self) -> list[str]:
        """The publishers, by name."""
        self._check_here()
        return (await self.running()).state.names() if self.is_used else []

    async def publishers_of(self, subscriber: str) -> list[str]:
        """The publishers that a subscriber takes packages of."""
        return list((await self._look()).state.subscriber(subscriber).of)

    async def subscribers(self, publisher: str) -> list[SubscriberSummary]:
        """The subscribers of a publisher, by name, and how far they are."""
        return await (await self._look()).subscribers(publisher)

    async def farm(self, publisher: str) -> FarmSummary:
        """All subscribers of a publisher in one view."""
        return await (await self._look()).farm(publisher)

    async def queue(
        self, publisher: str, subscriber: str, after: int = NOWHERE, limit: int = 100
    ) -> QueueSummary:
        """What a subscriber has still to take in, with a page of it behind an offset."""
        running = await self._look()
        known, _, progress = running.state.pair(publisher, subscriber)
        return await running.queues.view(known, subscriber, progress, after, limit)

    async def queues(self, publisher: str) -> list[QueueSummary]:
        """The queues of all subscribers of a publisher, each with its head."""
        running = await self._look()
        known = running.state.publisher(publisher)
        return [
            await running.queues.view(known, each.name, progress)
            for each, progress in list(running.state.topology.of(publisher))
        ]

    async def errors(
        self, publisher: str, subscriber: str, after: int = NOWHERE, limit: int = 100
    ) -> list[QueueItem]:
        """A page of the packages that a subscriber gave up on, in the order of offsets."""
        running = await self._look()
        known, _, _ = running.state.pair(publisher, subscriber)
        return await running.queues.failed(known, subscriber, after, limit)

    async def events(
        self, publisher: str, after: int = NOWHERE, limit: int = 100, wait_ms: int = 0
    ) -> tuple[list[StoredEvent], int]:
        """Which packages every subscriber has, behind an event; and the event to ask on from."""
        return await (await self._look()).distributed(publisher, after, limit, wait_ms)

    async def snapshots(self) -> list[SnapshotSummary]:
        """What subscribers stored for others to begin with, newest first."""
        self._check_here()
        if not self.is_used:
            return []
        return (await self.running()).snapshots()

    # --- what people ask of subscribers ---------------------------------------------------------

    async def clear(self, publisher: str, subscriber: str, up_to: int) -> CommandSent:
        """Makes an editable subscriber skip all packages up to an offset."""
        return await (await self._administration()).clear(publisher, subscriber, up_to)

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandSent:
        """Lets an editable subscriber skip one package, or drops it from an error queue."""
        return await (await self._administration()).remove(publisher, subscriber, offset)

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandSent:
        """Retries a failed package at a subscriber."""
        return await (await self._administration()).retry(publisher, subscriber, offset)

    async def take_snapshot(self, subscriber: str) -> CommandSent:
        """Lets a subscriber store what it holds, for another one to begin with."""
        return await (await self._administration()).take_snapshot(subscriber)

    async def clean_up(self) -> BlobCleanup:
        """Removes the blobs that nobody can refer to any more, without waiting for its time."""
        return await (await self._look()).keeper.clean()

    async def forget(self, subscriber: str) -> None:
        """A subscriber is gone for good: nothing waits for it any longer."""
        await (await self._administration()).forget(subscriber)

    # --- for the node ---------------------------------------------------------------------------

    async def needs(self) -> ContentNeeds:
        """What retention must not drop; everything, while it is not known what the topics say."""
        self._check_here()
        if not self.is_used:
            return ContentNeeds({}, {})
        if self._running is None:
            return EVERYTHING
        return await self._running.needs(self._clock.now_ms() - self._kept_ms)

    @property
    def is_ready(self) -> bool:
        """Whether what the topics say is known; nothing is to be known where they are not used."""
        return self._running is not None or not self._is_here or not self.is_used

    def numbers(self) -> ContentNumbers:
        """What is measured; nothing, before content is used."""
        running = self._running
        return NO_NUMBERS if running is None else running.numbers()

    def warnings(self) -> list[str]:
        """What somebody should look at."""
        if self._failure:
            return [f"Content is not distributed: {self._failure}"]
        running = self._running
        return [] if running is None else running.warnings()

    async def _administration(self) -> Administration:
        from holdfast.content.publisher.administration import Administration

        return Administration(await self._look(), self._new_id)

    async def _look(self) -> RunningContent:
        """What runs; looking at a node without content creates no topics."""
        self._check_here()
        if not self.is_used:
            raise NotFound("This node has no publisher and no subscriber yet")
        return await self.running()
