"""The journal in Kafka: a topic with one Kafka partition for each of ours."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from holdfast.clock import Clock, SystemClock
from holdfast.config import Config
from holdfast.errors import HoldfastError, Unavailable, Unknown
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
from holdfast.journal.checks import check_offset, check_topic
from holdfast.journal.kafka.address import (
    KafkaAddress,
    client_settings,
    kafka_access,
    parse_kafka_url,
)
from holdfast.journal.kafka.asking import BrokerEnds, Brokers
from holdfast.journal.kafka.marks import Raw
from holdfast.journal.kafka.reading import KafkaReading
from holdfast.journal.kafka.sending import FlightSender
from holdfast.journal.kafka.topics import KafkaTopics, Place
from holdfast.journal.kafka.writing import KafkaWriting
from holdfast.limits import (
    KAFKA_RECORD_OVERHEAD_BYTES,
    KAFKA_REFRESH_MS,
    KAFKA_THREADS_MAX,
    READ_BYTES_MAX,
)
from holdfast.logs import log

T = TypeVar("T")


class KafkaJournal:
    """Topics and partitions in Kafka; what is acknowledged is on all replicas in sync."""

    def __init__(self, address: KafkaAddress, config: Config, clock: Clock | None = None) -> None:
        settings = client_settings(address, kafka_access(address, config))
        self._clock = clock or SystemClock()
        self._threads = ThreadPoolExecutor(KAFKA_THREADS_MAX, "kafka")
        self._nonce, self._count = int.from_bytes(os.urandom(4)) << 32, 0
        self._brokers = Brokers(settings)
        self._topics = KafkaTopics(address, self._brokers, config.kafka_replicas)
        self._sender = FlightSender(settings)
        self._writing = KafkaWriting(self._topics, self._sender, self._clock, self)
        self._reading = KafkaReading(self._topics, self._brokers, settings, self._in_thread)
        self._refreshing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, url: str, config: Config, clock: Clock | None = None) -> "KafkaJournal":
        """The journal that a URL names; waits for a broker. Unavailable if none answers."""
        return cls(parse_kafka_url(url), config, clock)

    @property
    def cluster_id(self) -> str:
        """What Kafka calls itself."""
        return self._topics.cluster_id

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; a retention that is given replaces the one it has.

        Blocks until a broker has answered.
        """
        self.check_open()
        check_topic(topic, partitions)
        self._topics.create(topic, partitions)
        if retention is not None:
            self._topics[topic].retention = retention

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        self.check_open()
        return {name: len(topic.partitions) for name, topic in self._topics.items()}

    # --- writing ------------------------------------------------------------------------------

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Begins to write a partition; waits for a broker if none answers."""
        self._refresh()
        return await self._writing.take(topic, partition, epoch)

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends in the newest epoch; returns the offset of the first entry, once durable."""
        (outcome,) = await self.append_many([Append(topic, partition, entries)])
        if isinstance(outcome, asyncio.Future):
            outcome = await outcome
        if isinstance(outcome, Unknown):
            raise outcome
        assert isinstance(outcome, Appended), "it expected nothing that could be refused"
        return outcome.first

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        """Appends to many partitions; what became of each."""
        self._refresh()
        return await self._writing.append_many(appends)

    # --- reading ------------------------------------------------------------------------------

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now, as far as is known here."""
        return self._topics.known(topic, partition).bounds

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal."""
        self._refresh()
        return await self._reading.read(topic, partition, offset, bytes_max)

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        return self._reading.stream(topic, partition, start)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose entry was written at or after a time; asks a broker."""
        known = self._topics.known(topic, partition)
        if timestamp_ms <= 0:
            return known.earliest
        if self._sender.is_away:
            raise Unavailable("No Kafka broker can be reached, to find an offset by its time")
        found = self._brokers.offset_at(self._topics[topic].name, partition, timestamp_ms)
        return known.next if found is None else max(found, known.earliest)

    # --- discarding ---------------------------------------------------------------------------

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up the entries below an offset. The last record stays, with who wrote it."""
        known = self._topics.known(topic, partition)
        if before <= known.earliest:
            return
        check_offset(topic, partition, before, known.bounds)
        known.begins(before)
        lane = self._writing.lanes.get((topic, partition))
        kept_from = lane.kept_from if lane is not None and lane.kept_from else known.next - 1
        self._brokers.discard(self._topics[topic].name, partition, min(before, kept_from))

    def bytes_used(self, topic: str) -> int:
        """About how much space the topic takes: entries by their mean size, of one replica."""
        self._topics.known(topic, 1)
        return sum(
            int((each.next - each.earliest) * (each.entry_bytes + KAFKA_RECORD_OVERHEAD_BYTES))
            for each in self._topics[topic].partitions
        )

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        """Drops what the topics' retention no longer keeps. Nothing that is needed is dropped."""
        self.check_open()
        now_ms = self._clock.now_ms() if now_ms is None else now_ms
        for name, topic in self._topics.items():
            age_ms, bytes_max = topic.retention.age_ms, topic.retention.bytes
            excess = 0.0
            if bytes_max is not None and (used := self.bytes_used(name)) > bytes_max:
                excess = 1 - bytes_max / used
            for number, known in enumerate(topic.partitions, start=1):
                before = known.earliest + int((known.next - known.earliest) * excess)
                if age_ms is not None:
                    before = max(before, self.offset_at(name, number, now_ms - age_ms))
                self.discard(name, number, min(before, needed.get(name, {}).get(number, before)))

    # --- what lanes ask -----------------------------------------------------------------------

    async def records(self, topic: str, partition: int, start: int, end: int) -> list[Raw]:
        """Records as they are, from an offset up to another, of a topic by Kafka's name."""
        return await self._reading.records(topic, partition, start, end)

    async def ends(self, topic: str, partition: int) -> BrokerEnds:
        """Where the log begins and ends now."""
        place = (topic, partition)
        found = await self._in_thread(lambda: self._brokers.ends([place]))
        self._topics.learn(found)
        return found[place]

    def number(self) -> int:
        """A number that no other flight has: by the start of this process, and a counter."""
        self._count += 1
        return self._nonce | (self._count & 0xFFFF_FFFF)

    def check_open(self) -> None:
        """Raises Unavailable once the journal is closed."""
        self._topics.check_open()

    # --- keeping what is known fresh ----------------------------------------------------------

    def _refresh(self) -> None:
        """From the first use on a task looks how far partitions reach that others write."""
        if self._refreshing is None:
            loop = asyncio.get_running_loop()
            self._refreshing = loop.create_task(self._keep_fresh(), name="kafka bounds")

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(KAFKA_REFRESH_MS / 1000)
            for fetcher in self._reading.fetchers.unused():
                await self._in_thread(fetcher.close)
            try:
                self._topics.learn(await self._in_thread(partial(self._brokers.ends, self._dim())))
            except HoldfastError as error:
                log.info("how far Kafka's partitions reach is not known", error=error.message)

    def _dim(self) -> list[Place]:
        """Partitions of which nobody here hears how far they reach."""
        return [
            (topic.name, number)
            for name, topic in self._topics.items()
            for number, known in enumerate(topic.partitions, start=1)
            if known.recent is None and not self._writing.is_held(name, number)
        ]

    # --- closing ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Finishes what is waiting, refuses what comes after; streams end with Unavailable."""
        if self._topics.is_closed:
            return
        self._topics.is_closed = True
        await self._writing.finish()
        if self._refreshing is not None:
            self._refreshing.cancel()
        for topic in self._topics.values():
            for known in topic.partitions:
                known.wake()
        await asyncio.get_running_loop().run_in_executor(None, self._close_clients)

    def _close_clients(self) -> None:
        self._sender.close()
        self._threads.shutdown(wait=True)
        self._reading.close()
        self._brokers.close()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
