"""A journal in memory, for the simulation and for tests: the same promise, nothing outlives it."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from operator import attrgetter

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.journal.api import Append, Bounds, Entry, Retention, Start
from holdfast.journal.checks import (
    check_append_bytes,
    check_entries,
    check_offset,
    check_partition,
    check_same_partitions,
    check_topic,
    unknown_topic,
)
from holdfast.limits import READ_BYTES_MAX


class _Partition:
    """The entries of a partition from the earliest on."""

    def __init__(self) -> None:
        self.earliest = 0
        self.entries: list[Entry] = []
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.earliest, self.earliest + len(self.entries))

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for more in waiting:
            if not more.done():
                more.set_result(None)

    def drop(self, count: int) -> None:
        del self.entries[:count]
        self.earliest += count


class _Topic:
    """A topic's partitions, numbered from 1, and the time of its last entry."""

    def __init__(self, partitions: int, retention: Retention) -> None:
        self.partitions = [_Partition() for _ in range(partitions)]
        self.retention = retention
        self.last_ms = 0

    def bytes_used(self) -> int:
        return sum(len(entry.payload) for each in self.partitions for entry in each.entries)

    def oldest(self) -> _Partition | None:
        """The partition with the entry that was written first."""
        written = [each for each in self.partitions if each.entries]
        return min(written, key=lambda each: each.entries[0].timestamp_ms, default=None)


class MemoryJournal:
    """Topics and partitions in memory; an append is as durable as anything here, at once."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._topics: dict[str, _Topic] = {}
        self._closed = False

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; a retention that is given replaces the one it has."""
        self._check_open()
        check_topic(topic, partitions)
        there = self._topics.get(topic)
        if there is None:
            self._topics[topic] = _Topic(partitions, retention or Retention())
            return
        check_same_partitions(topic, len(there.partitions), partitions)
        if retention is not None:
            there.retention = retention

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        self._check_open()
        return {name: len(topic.partitions) for name, topic in self._topics.items()}

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends and returns the offset of the first entry."""
        return (await self.append_many([Append(topic, partition, entries)]))[0]

    async def append_many(self, appends: Sequence[Append]) -> list[int]:
        """Appends to many partitions, all or none of them."""
        sizes_bytes: dict[str, int] = {}
        for topic, partition, entries in appends:
            self._partition(topic, partition)
            size_bytes = sum(check_entries(entries))
            sizes_bytes[topic] = sizes_bytes.get(topic, 0) + size_bytes
            if not set(map(type, entries)) <= {bytes}:
                raise InvalidArgument("expected every entry to be bytes, but found another type")
        for size_bytes in sizes_bytes.values():
            check_append_bytes(size_bytes)
        offsets = [self._append(append) for append in appends]
        await asyncio.sleep(
            0
        )  # as with a disk, nobody is answered before the others had their turn
        return offsets

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now."""
        return self._partition(topic, partition).bounds

    def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """Entries from an offset on, about `bytes_max` of them, at least one if there is one."""
        found = self._partition(topic, partition)
        check_offset(topic, partition, offset, found.bounds)
        first = last = offset - found.earliest
        left_bytes = bytes_max
        while last < len(found.entries):
            left_bytes -= len(found.entries[last].payload)
            if left_bytes < 0 and last > first:
                break
            last += 1
        return found.entries[first:last]

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        bounds = self.bounds(topic, partition)
        if start is Start.EARLIEST:
            offset = bounds.earliest
        elif start is Start.NEXT:
            offset = bounds.next
        else:
            offset = start
            check_offset(topic, partition, offset, bounds)
        return self._stream(topic, partition, offset)

    async def _stream(self, topic: str, partition: int, offset: int) -> AsyncIterator[list[Entry]]:
        while True:
            entries = self.read(topic, partition, offset)
            if entries:
                offset = entries[-1].offset + 1
                yield entries
                await asyncio.sleep(0)  # a stream that catches up must not keep the loop to itself
            else:
                more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._partition(topic, partition).waiting.append(more)
                await more

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose entry was written at or after a time; `next` if there is none."""
        found = self._partition(topic, partition)
        key = attrgetter("timestamp_ms")
        return found.earliest + bisect_left(found.entries, timestamp_ms, key=key)

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up the entries below an offset; it only moves up."""
        found = self._partition(topic, partition)
        if before > found.earliest:
            check_offset(topic, partition, before, found.bounds)
            found.drop(before - found.earliest)

    def bytes_used(self, topic: str) -> int:
        """How much space the topic's entries take."""
        self._partition(topic, 1)
        return self._topics[topic].bytes_used()

    def enforce_retention(self, now_ms: int) -> None:
        """Drops what the topics' retention no longer keeps, entry by entry."""
        self._check_open()
        for topic in self._topics.values():
            age_ms, bytes_max = topic.retention.age_ms, topic.retention.bytes
            if age_ms is not None:
                for each in topic.partitions:
                    key = attrgetter("timestamp_ms")
                    each.drop(bisect_left(each.entries, now_ms - age_ms, key=key))
            if bytes_max is not None:
                kept_bytes = topic.bytes_used()
                while kept_bytes > bytes_max and (oldest := topic.oldest()) is not None:
                    kept_bytes -= len(oldest.entries[0].payload)
                    oldest.drop(1)

    async def close(self) -> None:
        """Refuses what comes after; streams end with Unavailable."""
        self._closed = True
        for topic in self._topics.values():
            for partition in topic.partitions:
                partition.wake()

    def _append(self, append: Append) -> int:
        topic = self._topics[append.topic]
        found = topic.partitions[append.partition - 1]
        topic.last_ms = max(self._clock.now_ms(), topic.last_ms)
        first = found.bounds.next
        found.entries += [
            Entry(offset, topic.last_ms, payload)
            for offset, payload in enumerate(append.entries, start=first)
        ]
        found.wake()
        return first

    def _partition(self, topic: str, partition: int) -> _Partition:
        self._check_open()
        there = self._topics.get(topic)
        if there is None:
            raise unknown_topic(topic)
        check_partition(topic, partition, len(there.partitions))
        return there.partitions[partition - 1]

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("expected an open journal, but this one is closed")
