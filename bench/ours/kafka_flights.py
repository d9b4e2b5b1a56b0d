"""What a node has appended to Kafka, flight by flight, and a bare transactional producer of it."""

import statistics
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,  # pyright: ignore[reportPrivateImportUsage]
)

from bench.harness import UnmeasurableError
from holdfast.journal.kafka.marks import unpack

READ_SECONDS_MAX = 60.0
TRANSACTION_SECONDS_MAX = 30.0


class KafkaFlight(NamedTuple):
    """What was appended to a partition at once."""

    partition: int  # by Kafka's count, from 0
    records: list[tuple[bytes, bytes]]  # keys and payloads


def flights_of(endpoint: str, topic: str, partitions: int) -> list[KafkaFlight]:
    """All that a topic has, in the order of each partition."""
    consumer = Consumer(
        {"bootstrap.servers": endpoint, "group.id": f"flights-{uuid.uuid4().hex}"}
        | {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    )
    try:
        return [each for n in range(partitions) for each in _read(consumer, topic, n)]
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partition: int) -> list[KafkaFlight]:
    place = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=READ_SECONDS_MAX)
    consumer.assign([place])
    flights: list[KafkaFlight] = []
    at, deadline = 0, time.monotonic() + READ_SECONDS_MAX
    while at < end:
        for message in consumer.consume(10_000, timeout=1.0):
            key, value = message.key(), message.value()
            mark = unpack(key)  # pyright: ignore[reportArgumentType]
            at = (message.offset() or 0) + 1
            if mark is None or value is None:
                continue
            if mark.place == 0 or not flights:
                flights.append(KafkaFlight(partition, []))
            flights[-1].records.append((bytes(key or b""), bytes(value)))
        if time.monotonic() > deadline:
            raise UnmeasurableError(f"the records of {topic} did not come")
    return flights


def create_topic(endpoint: str, topic: str, partitions: int) -> None:
    """A topic for the bare producers."""
    admin = AdminClient({"bootstrap.servers": endpoint})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(TRANSACTION_SECONDS_MAX)


class BareProducers:
    """One transactional producer for each partition, side by side, as owners of partitions are."""

    def __init__(self, endpoint: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._producers = [
            Producer(
                {"bootstrap.servers": endpoint, "acks": "all", "linger.ms": 0, "log_level": 0}
                | {"transactional.id": f"{topic}/{n}/{uuid.uuid4().hex}"}
            )
            for n in range(partitions)
        ]
        for each in self._producers:
            each.init_transactions(TRANSACTION_SECONDS_MAX)

    def seconds_for(self, flights: Sequence[KafkaFlight]) -> float:
        """How long it takes to write all of them, each in a transaction of its own."""
        began = time.perf_counter()
        with ThreadPoolExecutor(len(self._producers)) as pool:
            list(pool.map(lambda n: self._write(n, flights), range(len(self._producers))))
        return time.perf_counter() - began

    def _write(self, partition: int, flights: Sequence[KafkaFlight]) -> None:
        producer = self._producers[partition]
        for flight in flights:
            if flight.partition == partition:
                _commit(producer, self._topic, flight)

    def latency_seconds(self, flight: KafkaFlight, count: int) -> float:
        """The median of one transaction after the other."""
        spans: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            _commit(self._producers[0], self._topic, flight._replace(partition=0))
            spans.append(time.perf_counter() - began)
        return statistics.median(spans)


def _commit(producer: Any, topic: str, flight: KafkaFlight) -> None:
    producer.begin_transaction()
    for key, value in flight.records:
        producer.produce(topic, value, key, flight.partition)
    producer.commit_transaction(TRANSACTION_SECONDS_MAX)
