"""A journal in memory, for the simulation and for tests: the same promise, nothing outlives it.

It can be told to leave gaps between offsets, as brokers do, and what becomes of appends, as a
network between the writer and its log decides it.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from enum import Enum
from operator import attrgetter
from types import MappingProxyType

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidArgument, Unavailable, Unknown
from holdfast.journal.api import (
    Append,
    Appended,
    Bounds,
    Entry,
    Needed,
    Outcome,
    Refused,
    Retention,
    Start,
    Taken,
)
from holdfast.journal.checks import (
    check_append_bytes,
    check_entries,
    check_epoch,
    check_offset,
    check_partition,
    check_same_partitions,
    check_topic,
    not_newer,
    start_offset,
    unknown_topic,
)
from holdfast.limits import READ_BYTES_MAX


class Fate(Enum):
    """What becomes of an append that expects the right thing."""

    DURABLE = "durable"
    SLOW = "slow"  # durable, told by a future
    REFUSED = "refused"  # somebody else has taken the partition just before
    KEPT = "kept"  # unknown, and in the log
    LATE = "late"  # unknown, and in the log when the partition is taken again
    LOST = "lost"  # unknown, and gone


class _Partition:
    """The entries of a partition from the earliest on."""

    def __init__(self) -> None:
        self.earliest = 0
        self.next = 0
        self.epoch = 0  # the newest that it was taken or written in
        self.needed: int | None = None  # the first offset that somebody needs
        self.late: list[Append] = []
        self.entries: list[Entry] = []
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.earliest, self.next)

    def index(self, offset: int) -> int:
        """Where the first entry at or behind an offset stands."""
        return bisect_left(self.entries, offset, key=_offset)

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for more in waiting:
            if not more.done():
                more.set_result(None)

    def free(self) -> int:
        """How many entries nobody needs."""
        return len(self.entries) if self.needed is None else self.index(self.needed)

    def drop(self, count: int) -> None:
        """Gives up so many entries."""
        del self.entries[:count]
        if count:
            self.earliest = self.entries[0].offset if self.entries else self.next

    def refusal(self, append: Append) -> Refused | None:
        """Why an append is not written; None if it is."""
        epoch, offset = append.epoch, append.offset
        if epoch is not None and epoch < self.epoch:
            reason = f"epoch {self.epoch} has the partition, and this append is of epoch {epoch}"
        elif offset is not None and offset != self.next:
            reason = f"the log ends at {self.next}, and this append expects {offset}"
        else:
            return None
        return Refused(append.partition, self.epoch, self.next, reason)


class _Topic:
    """A topic's partitions, numbered from 1, and the time of its last entry."""

    def __init__(self, partitions: int, retention: Retention) -> None:
        self.partitions = [_Partition() for _ in range(partitions)]
        self.retention = retention
        self.last_ms = 0

    def bytes_used(self) -> int:
        return sum(len(entry.payload) for each in self.partitions for entry in each.entries)

    def oldest(self) -> _Partition | None:
        """The partition with the entry that was written first and that nobody needs."""
        written = [each for each in self.partitions if each.free()]
        return min(written, key=lambda each: each.entries[0].timestamp_ms, default=None)


class MemoryJournal:
    """Topics and partitions in memory; an append is as durable as anything here, at once."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        gap: Callable[[], int] | None = None,
        fate: Callable[[Append], Fate] | None = None,
    ) -> None:
        self.fate = fate  # of appends that name an epoch
        self._gap = gap  # how many offsets are left out before an entry, and after the last
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

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Begins to write a partition in an epoch; what was late has arrived, or never will."""
        found = self._partition(topic, partition)
        taken = found.epoch + 1 if epoch is None else epoch
        check_epoch(taken)
        if taken <= found.epoch:
            return Refused(partition, found.epoch, found.next, not_newer(taken, found.epoch))
        late, found.late = found.late, []
        for append in late:
            if found.refusal(append) is None:
                self._append(append)
        found.epoch = taken
        await asyncio.sleep(0)
        return Taken(taken, found.next)

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends in the newest epoch; returns the offset of the first entry."""
        outcome = (await self.append_many([Append(topic, partition, entries)]))[0]
        assert isinstance(outcome, Appended), "it expected nothing that could be refused"
        return outcome.first

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        """Appends to many partitions; what became of each."""
        sizes_bytes: dict[str, int] = {}
        for topic, partition, entries, epoch, _ in appends:
            self._partition(topic, partition)
            check_epoch(epoch or 0)
            size_bytes = sum(check_entries(entries))
            sizes_bytes[topic] = sizes_bytes.get(topic, 0) + size_bytes
            if not set(map(type, entries)) <= {bytes}:
                raise InvalidArgument("expected every entry to be bytes, but found another type")
        for size_bytes in sizes_bytes.values():
            check_append_bytes(size_bytes)
        outcomes = [self._outcome(append) for append in appends]
        await asyncio.sleep(
            0
        )  # as with a disk, nobody is answered before the others had their turn
        return outcomes

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now."""
        return self._partition(topic, partition).bounds

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal."""
        return self.read_now(topic, partition, offset, bytes_max)

    def read_now(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """Entries from an offset on, about `bytes_max` of them, at least one if there is one."""
        found = self._partition(topic, partition)
        check_offset(topic, partition, offset, found.bounds)
        first = last = found.index(offset)
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
        return self._stream(topic, partition, start_offset(topic, partition, start, bounds))

    async def _stream(self, topic: str, partition: int, offset: int) -> AsyncIterator[list[Entry]]:
        while True:
            entries = self.read_now(topic, partition, offset)
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
        index = bisect_left(found.entries, timestamp_ms, key=_time)
        return found.entries[index].offset if index < len(found.entries) else found.next

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up the entries below an offset; it only moves up."""
        found = self._partition(topic, partition)
        if before > found.earliest:
            check_offset(topic, partition, before, found.bounds)
            found.drop(found.index(before))
            found.earliest = before

    def bytes_used(self, topic: str) -> int:
        """How much space the topic's entries take."""
        self._partition(topic, 1)
        return self._topics[topic].bytes_used()

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        """Drops what the topics' retention no longer keeps, entry by entry."""
        self._check_open()
        now_ms = self._clock.now_ms() if now_ms is None else now_ms
        for name, topic in self._topics.items():
            age_ms, bytes_max = topic.retention.age_ms, topic.retention.bytes
            first_needed = needed.get(name, {})
            for number, each in enumerate(topic.partitions, start=1):
                each.needed = first_needed.get(number)
                if age_ms is not None:
                    outdated = bisect_left(each.entries, now_ms - age_ms, key=_time)
                    each.drop(min(outdated, each.free()))
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

    def _outcome(self, append: Append) -> Outcome:
        found = self._topics[append.topic].partitions[append.partition - 1]
        if (refused := found.refusal(append)) is not None:
            return refused
        fate = Fate.DURABLE
        if self.fate is not None and append.epoch is not None:
            fate = self.fate(append)
        if fate is Fate.DURABLE:
            return self._append(append)
        if fate is Fate.SLOW:
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[Appended | Refused] = loop.create_future()
            appended = self._append(append)
            loop.call_later(0.001, lambda: answer.done() or answer.set_result(appended))
            return answer
        if fate is Fate.REFUSED:
            found.epoch += 1
            refused = found.refusal(append)
            assert refused is not None
            return refused
        if fate is Fate.KEPT:
            self._append(append)
        elif fate is Fate.LATE:
            found.late.append(append)
        return Unknown(
            f"expected to hear what became of an append to partition {append.partition} of topic"
            f" {append.topic!r}, but there was no answer",
            partition=append.partition,
        )

    def _append(self, append: Append) -> Appended:
        topic = self._topics[append.topic]
        found = topic.partitions[append.partition - 1]
        topic.last_ms = max(self._clock.now_ms(), topic.last_ms)
        found.epoch = max(found.epoch, append.epoch or 0)
        first = len(found.entries)
        for payload in append.entries:
            found.next += self._skipped()
            found.entries.append(Entry(found.next, topic.last_ms, payload))
            found.next += 1
        found.next += self._skipped()
        found.wake()
        return Appended(found.entries[first].offset, found.next)

    def _skipped(self) -> int:
        return self._gap() if self._gap is not None else 0

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


_offset = attrgetter("offset")
_time = attrgetter("timestamp_ms")
