"""Reading partitions: what is there by fetching it, what comes by following it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from holdfast.errors import Unavailable
from holdfast.journal.api import Entry, Start
from holdfast.journal.checks import check_offset, start_offset
from holdfast.journal.kafka.asking import Brokers
from holdfast.journal.kafka.fetching import BeyondLog, Fetchers
from holdfast.journal.kafka.following import LOST, PartitionFollower
from holdfast.journal.kafka.marks import Raw
from holdfast.journal.kafka.partition import Recent
from holdfast.journal.kafka.topics import KafkaTopics, Place
from holdfast.limits import READ_BYTES_MAX

T = TypeVar("T")


class InThread(Protocol):
    """Calls what blocks, beside the event loop."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]: ...


class KafkaReading:
    """Reads and follows the partitions of topics."""

    def __init__(
        self,
        topics: KafkaTopics,
        brokers: Brokers,
        settings: Mapping[str, Any],
        in_thread: InThread,
    ) -> None:
        self._topics = topics
        self._brokers = brokers
        self._in_thread = in_thread
        self.fetchers = Fetchers(settings)
        self._follower = PartitionFollower(settings, self._came)

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal."""
        known = self._topics.known(topic, partition)
        check_offset(topic, partition, offset, known.bounds)
        if offset == known.next:
            return []
        name = self._topics[topic].name
        fetcher = self.fetchers.borrow((name, partition, offset))
        try:
            entries = await self._in_thread(
                lambda: fetcher.entries(name, partition, offset, bytes_max, known.bounds)
            )
        except BeyondLog:
            self._topics.learn(
                await self._in_thread(lambda: self._brokers.ends([(name, partition)]))
            )
            check_offset(topic, partition, offset, known.bounds)
            raise Unavailable(
                f"Kafka does not give what is at offset {offset} of partition {partition} of topic"
                f" {topic!r} now"
            ) from None
        finally:
            self.fetchers.give_back(fetcher)
        if entries:
            known.reaches(entries[-1].offset + 1)
            known.weigh(len(entries), sum(len(each.payload) for each in entries))
            check_offset(topic, partition, offset, known.bounds)  # it may have been discarded
        return entries

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        offset = start_offset(topic, partition, start, self._topics.known(topic, partition).bounds)
        return self._stream(topic, partition, offset)

    async def _stream(self, topic: str, partition: int, offset: int) -> AsyncIterator[list[Entry]]:
        known, recent = self._topics.known(topic, partition), self._follow(topic, partition)
        try:
            while True:
                self._topics.check_open()
                if offset < known.earliest:
                    check_offset(topic, partition, offset, known.bounds)
                entries, seen = recent.after(offset), known.next
                if entries is None:
                    entries = await self.read(topic, partition, offset)
                if entries:
                    offset = entries[-1].offset + 1
                    yield entries
                    await asyncio.sleep(0)  # one that catches up must not keep the loop to itself
                elif known.next == seen and not recent.after(offset):
                    await known.change()
        finally:
            self._leave(topic, partition)

    def _follow(self, topic: str, partition: int) -> Recent:
        known = self._topics.known(topic, partition)
        if known.recent is None:
            known.recent = Recent(known.next)
            self._follower.follow((self._topics[topic].name, partition), known.next)
        known.recent.followers += 1
        return known.recent

    def _leave(self, topic: str, partition: int) -> None:
        known = self._topics[topic].partitions[partition - 1]
        if known.recent is None:
            return
        known.recent.followers -= 1
        if known.recent.followers == 0:
            known.recent = None
            if not self._topics.is_closed:
                self._follower.leave((self._topics[topic].name, partition))

    def _came(self, place: Place, entries: list[Entry], following: int) -> None:
        """Entries of a partition that is followed."""
        known = self._topics.at(place)
        if following == LOST:
            if known.recent is not None:
                known.recent.start = known.next
                self._follower.leave(place)
                self._follower.follow(place, known.next)
            return
        if known.recent is not None:
            known.recent.add(entries)
        known.reaches(following)
        known.wake()

    async def records(self, topic: str, partition: int, start: int, end: int) -> list[Raw]:
        """Records as they are, from an offset up to another, of a topic by Kafka's name."""
        if start >= end:
            return []
        fetcher = self.fetchers.borrow((topic, partition, -1))
        try:
            return await self._in_thread(lambda: fetcher.records(topic, partition, start, end))
        except BeyondLog:
            raise Unavailable(f"Kafka does not have offset {start} of {topic} any more") from None
        finally:
            self.fetchers.give_back(fetcher)

    def close(self) -> None:
        """Ends the clients; blocks."""
        self._follower.close()
        self.fetchers.close()
