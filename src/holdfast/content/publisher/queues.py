"""Queues: what each subscriber has still to take in, seen through the publisher's offset map."""

import asyncio

from holdfast.content.messages import (
    NOWHERE,
    Package,
    PackageAction,
    PackageDistributed,
    PackageStatus,
    SubscriberProgress,
)
from holdfast.content.ports import TopicEntry
from holdfast.content.publisher.farm import queue_state
from holdfast.content.publisher.offset_map import END, QueueEntry
from holdfast.content.publisher.state import ContentState, KnownPublisher, decode_head, entry_of
from holdfast.content.publisher.topic_log import TopicLog
from holdfast.content.publisher.views import QueueItem, QueueSummary
from holdfast.content.topics import PARTITION
from holdfast.journal import Journal
from holdfast.limits import (
    CONTENT_BATCH_BYTES_MAX,
    CONTENT_BATCH_MESSAGES_MAX,
    CONTENT_QUEUE_BLOCK_ENTRIES,
    READ_BYTES_MAX,
)


class Queues:
    """Looks at queues; parts that the map has not are read from the log, once for all askers."""

    def __init__(self, state: ContentState, journal: Journal, packages: TopicLog[Package]) -> None:
        self._state = state
        self._journal = journal
        self._packages = packages
        self._fetching: dict[tuple[str, int], asyncio.Future[None]] = {}
        self._first: dict[str, tuple[int, int]] = {}  # the first package kept: earliest, number
        self.fetches = 0

    async def entries(self, publisher: KnownPublisher, after: int, limit: int) -> list[QueueEntry]:
        """The packages of a publisher behind an offset, in order."""
        found: list[QueueEntry] = []
        at = max(after + 1, self._packages.earliest)
        while len(found) < limit and at != END:
            part = publisher.map.read(at, limit - len(found))
            if part is None:
                await self._fetch(publisher, at)
                at = max(at, self._packages.earliest)
            else:
                found += part.entries
                at = part.next
        return found

    async def _fetch(self, publisher: KnownPublisher, start: int) -> None:
        """Reads a part from the log; others that want the same part wait for this read."""
        key = publisher.name, start
        if (fetching := self._fetching.get(key)) is not None:
            await asyncio.wait([fetching])
            return
        self._fetching[key] = done = asyncio.get_running_loop().create_future()
        try:
            self.fetches += 1
            topic = self._packages.topic.topic
            found = await self._journal.read(topic, PARTITION, start, READ_BYTES_MAX)
            end = found[-1].offset + 1 if found else self._packages.end
            if publisher.map.read(start, 1) is None:
                kept = [_entry(publisher, TopicEntry._make(each)) for each in found]
                publisher.map.fill(start, end, [each for each in kept if each is not None])
        finally:
            del self._fetching[key]
            done.set_result(None)

    async def length(self, publisher: KnownPublisher, progress: SubscriberProgress) -> int:
        """How many packages a subscriber has still to take in."""
        number = progress.number
        earliest = self._packages.earliest
        if progress.offset + 1 < earliest:  # what is no longer kept is in no queue
            number = max(number, await self._first_number(publisher, earliest) - 1)
        return max(publisher.number - number, 0)

    async def _first_number(self, publisher: KnownPublisher, earliest: int) -> int:
        known = self._first.get(publisher.name)
        if known is None or known[0] != earliest:
            first = await self.entries(publisher, earliest - 1, 1)
            number = first[0].number if first else publisher.number + 1
            known = self._first[publisher.name] = earliest, number
        return known[1]

    async def view(
        self,
        publisher: KnownPublisher,
        subscriber: str,
        progress: SubscriberProgress,
        after: int = NOWHERE,
        limit: int = 0,
    ) -> QueueSummary:
        """A queue, with a page of it behind an offset."""
        length = await self.length(publisher, progress)
        head: QueueItem | None = None
        if length:
            first = await self.entries(publisher, progress.offset, 1)
            head = _item(first[0], progress.retries, progress.reason) if first else None
        items: list[QueueItem] = []
        following: int | None = None
        if limit and head is not None:
            after = max(after, progress.offset)
            found = await self.entries(publisher, after, limit + 1)
            items = [head if each.offset == head.offset else _item(each) for each in found[:limit]]
            following = found[limit - 1].offset if len(found) > limit else None
        return QueueSummary(
            publisher.name, subscriber, queue_state(length, progress.retries), length,
            progress.offset, head, items, following,
        )  # fmt: skip

    async def failed(
        self, publisher: KnownPublisher, subscriber: str, after: int, limit: int
    ) -> list[QueueItem]:
        """A page of an error queue, in the order of offsets."""
        errors = self._state.errors
        found = errors.of(subscriber, publisher.name)
        items: list[QueueItem] = []
        for offset in sorted(each for each in found if each > after)[:limit]:
            status = found[offset].status
            entries = await self.entries(publisher, offset - 1, 1)
            items.append(
                _failed_item(
                    status, entries[0] if entries and entries[0].offset == offset else None,
                    is_retrying=errors.retry_of(subscriber, publisher.name, offset) is not None,
                )
            )  # fmt: skip
        return items

    async def distributed(self, publisher: KnownPublisher, done: int) -> list[PackageDistributed]:
        """The next packages that every subscriber has, up to an offset, and nobody was told of."""
        events: list[PackageDistributed] = []
        after, size_bytes = publisher.distributed, 0
        while after < done and len(events) < CONTENT_BATCH_MESSAGES_MAX:
            found = await self.entries(publisher, after, CONTENT_QUEUE_BLOCK_ENTRIES)
            if not found:
                break
            for each in found:
                size_bytes += sum(map(len, each.paths))
                if each.offset > done or (events and size_bytes > CONTENT_BATCH_BYTES_MAX):
                    return events
                events.append(_distributed(publisher.name, each))
            after = found[-1].offset
        return events


def _distributed(publisher: str, entry: QueueEntry) -> PackageDistributed:
    return PackageDistributed(publisher, entry.package_id, entry.offset, entry.number, entry.paths)


def _entry(publisher: KnownPublisher, entry: TopicEntry) -> QueueEntry | None:
    head = decode_head(entry.payload)
    if head.publisher != publisher.name or head.action is PackageAction.TEST:
        return None
    return entry_of(head, entry.offset, entry.timestamp_ms)


def _item(entry: QueueEntry, attempts: int = 0, reason: str = "") -> QueueItem:
    return QueueItem(*entry, attempts=attempts, reason=reason)


def _failed_item(
    status: PackageStatus, entry: QueueEntry | None, *, is_retrying: bool
) -> QueueItem:
    """A package of an error queue; of one that the log no longer has only its status is known."""
    if entry is None:
        entry = QueueEntry(status.offset, status.number, status.package_id, None, [], 0, 0)
    return QueueItem(
        *entry, attempts=status.attempts, reason=status.reason, failed_ms=status.at_ms,
        is_retrying=is_retrying,
    )  # fmt: skip
