"""Consumers that read parts of partitions, lent to readers; they block, so they run in threads."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from holdfast.errors import Unavailable
from holdfast.journal.api import Entry
from holdfast.journal.kafka.marks import Raw
from holdfast.journal.kafka.sieve import Sieve, flight_start
from holdfast.limits import (
    KAFKA_CONSUMER_IDLE_MS,
    KAFKA_CONSUMERS_IDLE_MAX,
    KAFKA_FETCH_WAIT_MS,
    KAFKA_QUEUE_BACKOFF_MS,
    KAFKA_READ_MS_MAX,
)

_MESSAGES_MAX = 2_000  # taken over from the client in one go
_IGNORED = frozenset(
    (
        KafkaError._PARTITION_EOF,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError.GROUP_AUTHORIZATION_FAILED,  # it has to name a group, and uses none
    )
)  # the client goes on by itself


def consumer(settings: Mapping[str, Any], wait_ms: int = KAFKA_FETCH_WAIT_MS) -> Consumer:
    """A consumer that reads what it is told to and belongs to no group.

    A broker without news answers after `wait_ms`. A consumer that is sent elsewhere meanwhile hears
    nothing from there before that answer has come.
    """
    told = {
        **settings,
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        # Marks tell what counts. A transaction that a stranger left open must hold nobody up.
        "isolation.level": "read_uncommitted",
        "fetch.wait.max.ms": wait_ms,
        "fetch.error.backoff.ms": 50,
        "fetch.queue.backoff.ms": KAFKA_QUEUE_BACKOFF_MS,
        "fetch.message.max.bytes": 1_048_576,
        "queued.min.messages": 20_000,
        "queued.max.messages.kbytes": 8_192,
        "enable.partition.eof": True,
        "check.crcs": True,
    }
    return Consumer(told)


class BeyondLog(Exception):
    """The partition does not begin, or does not reach, where it was to be read."""


def raw_records(messages: Sequence[Any]) -> list[Raw]:
    """Messages of a consumer as records; an error of one is Unavailable."""
    records: list[Raw] = []
    for message in messages:
        error = message.error()
        if error is None:
            records.append(
                Raw(message.offset(), message.timestamp()[1], message.key(), message.value() or b"")
            )
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise BeyondLog
        elif error.code() not in _IGNORED:
            raise Unavailable(f"Kafka does not give the records of {message.topic()}: {error}")
    return records


def _end_of(message: Any) -> int | None:
    """Where the partition ends, if that is what a message tells."""
    error = message.error()
    is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
    return message.offset() if is_end else None


class PartitionFetcher:
    """Reads one partition from one offset on, as long as it is asked for what comes next."""

    def __init__(self, settings: Mapping[str, Any], wait_ms: int = KAFKA_FETCH_WAIT_MS) -> None:
        self._consumer = consumer(settings, wait_ms)
        self.place: tuple[str, int, int] | None = None  # topic, partition, the next offset to give
        self._topic = ""  # of which the client knows who leads it
        self._sieve = Sieve(0)
        self._next = 0  # the next record's offset
        self.used = 0.0
        self._ready: list[Entry] = []  # entries that were not asked for yet

    def entries(
        self, topic: str, partition: int, offset: int, bytes_max: int, bounds: tuple[int, int]
    ) -> list[Entry]:
        """Entries from an offset on, at least one if there is one below the end of the bounds."""
        earliest, end = bounds
        is_there, self.place = self.place == (topic, partition, offset), None
        if not is_there:  # nor is it after an error
            self._go_to(topic, partition, offset)
            self._begin(topic, partition, earliest, end)
            self._ready = [each for each in self._ready if each.offset >= offset]
        deadline = time.monotonic() + KAFKA_READ_MS_MAX / 1000
        given, size_bytes = 0, 0
        while True:
            while given < len(self._ready):
                size_bytes += len(self._ready[given].payload)
                if size_bytes > bytes_max and given > 0:
                    return self._give(topic, partition, offset, given)
                given += 1
            if self._next >= end:
                return self._give(topic, partition, offset, given)
            found = self._more(deadline, end)
            entries = self._sieve.add(found)
            self._ready += [each for each in entries if each.offset >= offset]

    def records(self, topic: str, partition: int, start: int, end: int) -> list[Raw]:
        """All records from an offset up to another, whatever they are."""
        self.place = None
        self._go_to(topic, partition, start)
        deadline = time.monotonic() + KAFKA_READ_MS_MAX / 1000
        found: list[Raw] = []
        while self._next < end:
            found += self._more(deadline, end)
        self._consumer.unassign()  # nobody goes on from here
        return [each for each in found if each.offset < end]

    def close(self) -> None:
        self._consumer.close()

    def _give(self, topic: str, partition: int, offset: int, count: int) -> list[Entry]:
        given, self._ready = self._ready[:count], self._ready[count:]
        self.place = (topic, partition, given[-1].offset + 1 if given else offset)
        return given

    def _go_to(self, topic: str, partition: int, offset: int) -> None:
        if topic != self._topic:  # a client that has to look for the leader may take a second
            with contextlib.suppress(KafkaException):  # then it looks by itself
                self._consumer.list_topics(topic, KAFKA_READ_MS_MAX / 1000)
            self._topic = topic
        self._consumer.assign([TopicPartition(topic, partition - 1, offset)])
        self._next, self._sieve, self._ready = offset, Sieve(offset), []

    def _begin(self, topic: str, partition: int, earliest: int, end: int) -> None:
        """Reads the first records; goes back to where their flight begins, if in the middle."""
        if self._next >= end:
            return
        deadline = time.monotonic() + KAFKA_READ_MS_MAX / 1000
        found = self._more(deadline, end)
        if not found:
            return
        start = max(flight_start(found[0]), earliest)
        if start < found[0].offset:
            self._go_to(topic, partition, start)
            found = self._more(deadline, end)
        self._sieve = Sieve(found[0].offset if found else start)
        self._ready = self._sieve.add(found)

    def _more(self, deadline: float, end: int) -> list[Raw]:
        """At least one record below the end, if there is one; Unavailable if it does not come."""
        is_end = False
        while True:
            message = self._consumer.poll(min(0.5, max(deadline - time.monotonic(), 0)))
            if message is not None:
                messages = [message, *self._consumer.consume(_MESSAGES_MAX, 0)]
                found = raw_records(messages)
                if found:
                    self._next = found[-1].offset + 1
                elif (last := _end_of(messages[-1])) is not None:
                    self._next = max(self._next, last)  # behind others' markers
                    is_end = self._next >= end
                if found or is_end:
                    return found
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Kafka did not give the record at offset {self._next} within"
                    f" {KAFKA_READ_MS_MAX} ms"
                )


class Fetchers:
    """Lends out fetchers; one that stands at the right place is found again."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._idle: list[PartitionFetcher] = []  # the one that was used last is last

    def borrow(self, place: tuple[str, int, int]) -> PartitionFetcher:
        """One that stands at a place, or any; a new one if all are lent."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].place == place:
                return self._idle.pop(index)
        if len(self._idle) >= KAFKA_CONSUMERS_IDLE_MAX:
            return self._idle.pop(0)
        return PartitionFetcher(self._settings)

    def give_back(self, fetcher: PartitionFetcher) -> None:
        fetcher.used = time.monotonic()
        self._idle.append(fetcher)

    def unused(self) -> list[PartitionFetcher]:
        """Those that nobody has used for a while, to be closed."""
        since = time.monotonic() - KAFKA_CONSUMER_IDLE_MS / 1000
        unused = [each for each in self._idle if each.used < since]
        self._idle = [each for each in self._idle if each.used >= since]
        return unused

    def close(self) -> None:
        for fetcher in self._idle:
            fetcher.close()
        self._idle.clear()
