"""The journal in Kafka against a bare transactional producer, which is the plain way to fence one.

Both append the same batches to one partition of the same broker, one after the other.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop

from bench.harness import Figure, Run, UnmeasurableError
from bench.peers.kafka import KafkaServer
from holdfast.config import Config
from holdfast.journal import Append, Appended, Taken

ENTRY_BYTES = 200
BATCHES = (1, 16, 256)
APPENDS = 400
TOPIC = "bench"
PARTITION = 1


@contextmanager
def broker() -> Iterator[KafkaServer]:
    """A broker for measurements: with Java's second compiler, and room for it."""
    server = KafkaServer(heap_megabytes=512, short_lived=False)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class BareProducer:
    """A transactional producer as Kafka's documentation has it: a transaction for each batch."""

    def __init__(self, server: KafkaServer, topic: str) -> None:
        try:
            from confluent_kafka import Producer
            from confluent_kafka.admin import (
                AdminClient,
                NewTopic,  # pyright: ignore[reportPrivateImportUsage]
            )
        except ImportError:
            raise UnmeasurableError(
                "expected confluent-kafka: pip install 'holdfast[kafka]'"
            ) from None
        settings = {"bootstrap.servers": server.endpoint, "log_level": 0}
        admin = AdminClient(settings)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        self._topic = topic
        self._producer = Producer(
            {
                **settings,
                "transactional.id": topic,
                "acks": "all",
                "linger.ms": 0,
                "retry.backoff.ms": 2,  # a transaction that follows at once is told to wait
            }
        )
        self._producer.init_transactions(30)

    def commit(self, payloads: list[bytes]) -> None:
        """Returns when the batch is committed."""
        self._producer.begin_transaction()
        for payload in payloads:
            self._producer.produce(self._topic, payload, partition=0)
        self._producer.commit_transaction()

    def seconds_each(self, batch: int, count: int) -> list[float]:
        """How long each of so many batches took."""
        payloads, taken = [bytes(ENTRY_BYTES)] * batch, []
        for _ in range(count):
            begun = time.perf_counter()
            self.commit(payloads)
            taken.append(time.perf_counter() - begun)
        return taken


class JournalAppending:
    """The owner of a partition, who appends batches."""

    def __init__(self, loop: asyncio.Runner, server: KafkaServer, name: str) -> None:
        self._loop = loop
        self._url = f"{server.url}/{name}"
        self._epoch = self._end = 0
        loop.run(self._open())

    async def _open(self) -> None:
        from holdfast.journal.kafka import KafkaJournal

        self._journal = KafkaJournal.open(self._url, Config())
        self._journal.create_topic(TOPIC, 1)
        taken = await self._journal.take(TOPIC, PARTITION)
        assert isinstance(taken, Taken)
        self._epoch, self._end = taken.epoch, taken.next

    def seconds_each(self, batch: int, count: int) -> list[float]:
        """How long each of so many appends took."""
        return self._loop.run(self._append(batch, count))

    async def _append(self, batch: int, count: int) -> list[float]:
        payloads, taken = [bytes(ENTRY_BYTES)] * batch, []
        for _ in range(count):
            begun = time.perf_counter()
            append = Append(TOPIC, PARTITION, payloads, self._epoch, self._end)
            (outcome,) = await self._journal.append_many([append])
            assert isinstance(outcome, Appended)
            self._end = outcome.next
            taken.append(time.perf_counter() - begun)
        return taken

    def close(self) -> None:
        self._loop.run(self._journal.close())


Side = BareProducer | JournalAppending


def _per_second(side: Side, batch: int, count: int) -> float:
    return batch * count / sum(side.seconds_each(batch, count))


def _p50_ms(side: Side, batch: int, count: int) -> float:
    return 1_000 * statistics.median(side.seconds_each(batch, count))


def _busy_us(side: Side, batch: int, count: int) -> float:
    """The processor time of this process for an entry; the broker's is not in it."""
    begun = time.process_time()
    side.seconds_each(batch, count)
    return 1e6 * (time.process_time() - begun) / (batch * count)


def appending(run: Run) -> Iterator[Figure]:
    count = run.scaled(APPENDS)
    with broker() as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        bare, ours = BareProducer(server, "bare"), JournalAppending(loop, server, "ours")
        try:
            for batch in BATCHES:
                for what, goal, unit, measure in (
                    ("entries acknowledged", ">= 1", "entries/s", _per_second),
                    ("acknowledged after, p50", "<= 1", "ms", _p50_ms),
                    ("processor time of an entry", "<= 1.5", "µs", _busy_us),
                ):
                    yield Figure(
                        name=f"{what}, batches of {batch}",
                        against="a bare transactional producer",
                        goal=goal,
                        unit=unit,
                        ours=lambda batch=batch, measure=measure: measure(ours, batch, count),
                        peer=lambda batch=batch, measure=measure: measure(bare, batch, count),
                    )
        finally:
            ours.close()
