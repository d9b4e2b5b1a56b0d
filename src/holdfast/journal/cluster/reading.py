"""Reading the logs of a cluster: up to what is acknowledged, from this disk or from another one."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.errors import Unavailable
from holdfast.journal.api import Bounds, Entry, Start
from holdfast.journal.checks import check_offset, check_partition, start_offset
from holdfast.journal.cluster.chain import earliest
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.fetching import Fetching
from holdfast.journal.cluster.opened import OPENED_TOPIC, is_opened
from holdfast.journal.cluster.positions import Positions
from holdfast.journal.cluster.topics import ClusterTopics
from holdfast.limits import READ_BYTES_MAX


class ClusterReading:
    """What every member can do with every log: owner, replica or neither."""

    def __init__(
        self, disk: ClusterDisk, positions: Positions, fetching: Fetching, topics: ClusterTopics
    ) -> None:
        self._disk = disk
        self._positions = positions
        self._fetching = fetching
        self._topics = topics
        self._is_closed = False

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now, here or from other members.

        Ranges that left the chain cannot be read any more, even where a disk has them still.
        """
        self._check(topic, partition)
        first = earliest(self._positions.chain(partition), topic)
        earliest_here = max(self._disk.earliest(topic, partition), first)
        return Bounds(earliest_here, max(self._positions.mark(topic, partition), earliest_here))

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """Acknowledged entries from an offset on; the beginnings of ranges are left out."""
        bounds = self.bounds(topic, partition)
        check_offset(topic, partition, offset, bounds)
        while offset < bounds.next:
            entries = await self._read_range(topic, partition, offset, bytes_max)
            if not entries:
                break
            offset = entries[-1].offset + 1
            if is_opened(entries[0].payload):
                del entries[0]
            if entries:
                return entries
        return []

    async def _read_range(
        self, topic: str, partition: int, offset: int, bytes_max: int
    ) -> list[Entry]:
        found = self._positions.spans(partition, topic, offset)
        if found is None:
            return []
        opened, span = found
        entries = self._disk.entries(topic, partition, span, opened.epoch, offset, bytes_max)
        if entries is not None:
            return entries
        assert span.length is not None
        end = span.start + span.length
        return await self._fetching.read(topic, partition, opened, offset, end, bytes_max)

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        bounds = self.bounds(topic, partition)
        return self._stream(topic, partition, start_offset(topic, partition, start, bounds))

    async def _stream(self, topic: str, partition: int, offset: int) -> AsyncIterator[list[Entry]]:
        while True:
            entries = await self.read(topic, partition, offset)
            if entries:
                offset = entries[-1].offset + 1
                yield entries
                await asyncio.sleep(0)  # a stream that catches up must not keep the loop to itself
            else:
                await self._positions.wait(topic, partition)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset on this disk that was written at or after a time; `next` if none was.

        Time never goes back in a partition, so it is found by halving.
        """
        first, end = self.bounds(topic, partition)
        while first < end:
            middle = (first + end) // 2
            entry = self._entry(topic, partition, middle)
            if entry is None or entry.timestamp_ms < timestamp_ms:
                first = middle + 1
            else:
                end = middle
        return first

    def unread(self, topic: str, partition: int, offset: int) -> int:
        """How many entries readers are given from an offset on: not those that begin ranges."""
        following = self.bounds(topic, partition).next
        ranges = self._positions.chain(partition).ranges if topic == OPENED_TOPIC else ()
        begun = sum(offset <= each.starts.get(topic, 0) < following for each in ranges)
        return max(following - offset - begun, 0)

    def last_ms(self, topic: str, partition: int) -> int:
        """When the last acknowledged entry was written, as far as this disk knows; 0 if none is."""
        earliest, following = self.bounds(topic, partition)
        entry = self._entry(topic, partition, following - 1) if following > earliest else None
        return 0 if entry is None else entry.timestamp_ms

    def _entry(self, topic: str, partition: int, offset: int) -> Entry | None:
        found = self._positions.spans(partition, topic, offset)
        if found is None:
            return None
        opened, span = found
        entries = self._disk.entries(topic, partition, span, opened.epoch, offset, 1)
        return entries[0] if entries else None

    def _check(self, topic: str, partition: int) -> None:
        """Refuses what is not there, or a journal that is closed."""
        self._check_open()
        check_partition(topic, partition, self._topics.partitions(topic))

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unavailable("expected an open journal, but this one is closed")
