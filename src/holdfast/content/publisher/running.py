"""The five topics of a node that runs, and what is known from them: written, read and kept up."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.blobs import Blobs
from holdfast.clock import Clock
from holdfast.content.cleaning import BlobKeeper
from holdfast.content.messages import (
    Announcement,
    ContentCommand,
    ContentEvent,
    Discovery,
    Package,
    PackageDistributed,
    PackageStatus,
    decode_event,
    encode,
    encode_event,
)
from holdfast.content.ports import Published, TopicEntry
from holdfast.content.publisher.checks import check_package, checked_discovery
from holdfast.content.publisher.farm import farm_of, summary_of, warnings_of
from holdfast.content.publisher.numbers import numbers_of
from holdfast.content.publisher.opening import ReadBack, apply_entry
from holdfast.content.publisher.pressure import delay_ms
from holdfast.content.publisher.queues import Queues
from holdfast.content.publisher.retention import ContentNeeds, needs_of
from holdfast.content.publisher.topic_log import TopicLog, entries_of
from holdfast.content.publisher.upkeep import ContentUpkeep
from holdfast.content.publisher.views import (
    FarmSummary,
    SnapshotSummary,
    StoredEvent,
    SubscriberSummary,
)
from holdfast.content.topics import ContentTopic
from holdfast.errors import HoldfastError
from holdfast.journal import Journal
from holdfast.limits import (
    CONTENT_BACKLOG_FREE,
    CONTENT_EVENTS_LOOK_MAX,
    CONTENT_PRESSURE_LOOK_MS,
    CONTENT_RECENT_BYTES,
    READ_BYTES_MAX,
)
from holdfast.metrics import ContentNumbers

_OTHER_RECENT_BYTES = CONTENT_RECENT_BYTES // 8  # of topics with small messages
_MESSAGE_BYTES = 500  # of a package without its content


class RunningContent:
    """What a node does for content while it runs."""

    def __init__(
        self, journal: Journal, clock: Clock, found: ReadBack, open_blobs: Callable[[], Blobs]
    ) -> None:
        self.state = found.state
        self._clock = clock
        self._journal = journal
        self._publishing: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._slowest: dict[str, tuple[int, int | None]] = {}  # when looked at, and what was found
        self._published_bytes = 0
        self._held_back_ms = 0
        self.packages: TopicLog[Package] = TopicLog(
            journal, ContentTopic.PACKAGES, self._numbered, self._taken(ContentTopic.PACKAGES),
            CONTENT_RECENT_BYTES, lambda package: len(package.content or b"") + _MESSAGE_BYTES,
            self._offset_of,
        )  # fmt: skip
        self.statuses: TopicLog[PackageStatus] = self._log(ContentTopic.STATUSES)
        self.commands: TopicLog[ContentCommand] = self._log(ContentTopic.COMMANDS)
        self.discoveries: TopicLog[Announcement] = TopicLog(
            journal, ContentTopic.DISCOVERIES, lambda some: entries_of(some, encode),
            lambda entries: None, _OTHER_RECENT_BYTES,  # what is said is known before it is written
        )  # fmt: skip
        self.events: TopicLog[ContentEvent] = TopicLog(
            journal, ContentTopic.EVENTS, lambda some: entries_of(some, encode_event),
            self._taken(ContentTopic.EVENTS), _OTHER_RECENT_BYTES,
        )  # fmt: skip
        self.logs: dict[ContentTopic, TopicLog[Any]] = {
            each.topic: each
            for each in (
                self.packages, self.statuses, self.commands, self.discoveries, self.events,
            )
        }  # fmt: skip
        for topic, each in self.logs.items():
            each.begin_at(found.ends[topic])
        self.state.topology.listen(clock.now_ms())
        self.queues = Queues(self.state, journal, self.packages)
        self._open_blobs = open_blobs
        self._keeper: BlobKeeper | None = None
        self.upkeep = ContentUpkeep(self, found)

    @property
    def keeper(self) -> BlobKeeper:
        """Of the blobs that packages refer to; a node that needs none has no store."""
        if self._keeper is None:
            self._keeper = BlobKeeper(self._open_blobs(), self._journal, self._clock)
        return self._keeper

    def now_ms(self) -> int:
        """The time of the node."""
        return self._clock.now_ms()

    def _log(self, topic: ContentTopic) -> TopicLog[Any]:
        return TopicLog(
            self._journal, topic, lambda some: entries_of(some, encode), self._taken(topic),
            _OTHER_RECENT_BYTES,
        )  # fmt: skip

    def _taken(self, topic: ContentTopic) -> Callable[[list[TopicEntry]], None]:
        def apply(entries: list[TopicEntry]) -> None:
            for entry in entries:
                apply_entry(self.state, topic, entry)

        return apply

    def _offset_of(self, package: Package) -> int | None:
        """Where a package stands already, as when it was sent again while it was written."""
        known = self.state.publishers.get(package.publisher)
        found = None if known is None else known.find(package.package_id)
        return None if found is None else found.offset

    def _numbered(self, packages: list[Package]) -> list[bytes]:
        return entries_of(self.state.numbered(packages), encode)

    # --- what publishers and subscribers say ----------------------------------------------------

    async def publish(self, package: Package) -> Published:
        """Appends a package once, however often it is sent."""
        check_package(package, self.state)
        key = package.publisher, package.package_id
        while (under_way := self._publishing.get(key)) is not None:
            await asyncio.wait([under_way])
        known = self.state.publishers.get(package.publisher)
        if known is not None and (found := known.find(package.package_id)) is not None:
            return found
        self._publishing[key] = done = asyncio.get_running_loop().create_future()
        try:
            return await self._publish(package)
        finally:
            del self._publishing[key]
            done.set_result(None)

    async def _publish(self, package: Package) -> Published:
        waited_ms = await self._hold_back(package.publisher)
        blobs = [*package.binaries, *([package.blob] if package.blob else [])]
        if blobs:
            async with self.keeper.publishing(blobs):
                await self.packages.append([package])
        else:
            await self.packages.append([package])
        found = self.state.publishers[package.publisher].find(package.package_id)
        assert found is not None, "what was appended is taken up"
        self._published_bytes += package.size_bytes
        self._held_back_ms += waited_ms
        return found._replace(waited_ms=waited_ms)

    async def _hold_back(self, publisher: str) -> int:
        """Waits for subscribers that are behind; for how long it did."""
        waited_ms = 0
        while waited_ms < (wanted_ms := delay_ms(self.backlog(publisher))):
            pause_ms = min(wanted_ms - waited_ms, CONTENT_PRESSURE_LOOK_MS)
            await asyncio.sleep(pause_ms / 1_000)
            waited_ms += pause_ms
        return waited_ms

    def backlog(self, publisher: str) -> int:
        """How far the slowest subscriber is behind that publishing waits for."""
        known = self.state.publishers.get(publisher)
        if known is None:
            return 0
        now_ms = self._clock.now_ms()
        looked_ms, slowest = self._slowest.get(publisher, (0, None))
        behind = 0 if slowest is None else known.number - slowest
        # Looked at seldom, so that the cost of a package is independent of the subscribers; and
        # again before a package has to wait.
        if now_ms - looked_ms >= CONTENT_PRESSURE_LOOK_MS or behind > CONTENT_BACKLOG_FREE:
            slowest = self.state.topology.slowest_number(publisher, now_ms, known.number)
            self._slowest[publisher] = now_ms, slowest
            behind = 0 if slowest is None else known.number - slowest
        return max(behind, 0)

    def announce(self, discovery: Discovery) -> None:
        """Takes up what a subscriber says; it is written together with what others say."""
        self.discoveries.check_open()
        discovery = checked_discovery(discovery, self.state)
        self.state.topology.hear(discovery, self._clock.now_ms(), self.state.last_numbers())
        self.upkeep.said(discovery)

    async def report(self, statuses: Sequence[PackageStatus]) -> None:
        """Appends what became of packages; what was said before is not said again."""
        new = [each for each in statuses if not self.state.errors.is_known(each)]
        if new:
            await self.statuses.append(new)

    # --- what people see ------------------------------------------------------------------------

    async def subscribers(self, publisher: str) -> list[SubscriberSummary]:
        """The subscribers of a publisher, by name."""
        known, now_ms = self.state.publisher(publisher), self.now_ms()
        found = sorted(self.state.topology.of(publisher), key=lambda each: each[0].name)
        return [
            summary_of(
                self.state, known, each, progress, await self.queues.length(known, progress), now_ms
            )
            for each, progress in found
        ]

    async def farm(self, publisher: str) -> FarmSummary:
        """All of them in one view."""
        known = self.state.publisher(publisher)
        subscribers = await self.subscribers(publisher)
        return farm_of(known, subscribers, delay_ms(self.backlog(publisher)))

    def warnings(self) -> list[str]:
        """What somebody should look at."""
        return warnings_of(self.state, self.now_ms())

    def snapshots(self) -> list[SnapshotSummary]:
        """What subscribers stored for others to begin with, newest first."""
        return [
            SnapshotSummary(
                event.subscriber, event.blob, event.command_id, at_ms,
                [each.publisher for each in event.progress], event.error,
            )
            for event, at_ms in (
                (each.event, each.at_ms) for each in reversed(self.state.snapshots)
            )
        ]  # fmt: skip

    def numbers(self) -> ContentNumbers:
        """What is measured."""
        return numbers_of(self.state, self.now_ms(), self._published_bytes, self._held_back_ms)

    async def distributed(
        self, publisher: str, after: int, limit: int, wait_ms: int
    ) -> tuple[list[StoredEvent], int]:
        """Packages that every subscriber has, behind an event, and where to read on."""
        self.state.publisher(publisher)
        found: list[StoredEvent] = []
        offset = after + 1
        for _ in range(CONTENT_EVENTS_LOOK_MAX):
            some = await self.events.read(offset, READ_BYTES_MAX, 0 if found else wait_ms)
            for entry in some.entries:
                event = decode_event(entry.payload)
                offset = entry.offset + 1
                if isinstance(event, PackageDistributed) and event.publisher == publisher:
                    found.append(_stored(event, entry))
                    if len(found) == limit:
                        return found, entry.offset
            offset = max(offset, some.next)
            if offset >= some.end:
                break
        return found, offset - 1

    # --- its life -------------------------------------------------------------------------------

    async def needs(self, too_old_ms: int) -> ContentNeeds:
        """What of the topics is needed."""
        return await needs_of(self.state, self._journal, self.upkeep.recovery, too_old_ms)

    def shut(self, error: HoldfastError) -> None:
        """Another member has the topics: waiting callers are told to ask there."""
        for each in self.logs.values():
            each.shut(error)

    async def stop(self) -> None:
        """Writes what was gathered, and lets go; callers that wait are told."""
        await self.upkeep.stop()
        for each in self.logs.values():
            await each.close()

    def abandon(self) -> None:
        """The process ends: nobody is told."""
        self.upkeep.cancel()
        for each in self.logs.values():
            each.abandon()


def _stored(event: PackageDistributed, entry: TopicEntry) -> StoredEvent:
    return StoredEvent(
        entry.offset, entry.timestamp_ms, event.package_id, event.offset, event.number, event.paths
    )
