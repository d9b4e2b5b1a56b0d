"""A broker forgets a producer that is silent for long: what it wrote and writes counts once."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest
from bench.peers.kafka import KafkaServer
from tests.journal.kafka.test_owners import append, everything, fresh_view, journals, take, until

from holdfast.journal import Appended

pytest.importorskip("confluent_kafka")
from bench.ours.kafka_flights import flights_of
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,  # pyright: ignore[reportPrivateImportUsage]
    ConfigEntry,  # pyright: ignore[reportPrivateImportUsage]
    ConfigResource,  # pyright: ignore[reportPrivateImportUsage]
    ResourceType,  # pyright: ignore[reportPrivateImportUsage]
)

from holdfast.journal.kafka.address import parse_kafka_url

pytestmark = pytest.mark.xdist_group("kafka")

EXPIRATION = "producer.id.expiration.ms"
DESCRIBE_PRODUCERS = 61
SIZES = (1, 40, 600)  # each is sent by a producer of its own


@contextlib.contextmanager
def short_memory(kafka: KafkaServer) -> Iterator[None]:
    """The broker forgets producers that have written nothing for a moment."""
    admin = AdminClient({"bootstrap.servers": kafka.endpoint})

    def configure(value: str | None, operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(EXPIRATION, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)

    configure("300", AlterConfigOpType.SET)
    try:
        yield
    finally:
        configure(None, AlterConfigOpType.DELETE)


def known_producers(kafka: KafkaServer, topic: str) -> int:
    """How many producers the broker remembers for the first partition of a topic."""
    name = topic.encode()
    assert len(name) < 127, "longer ones take two bytes for their length"
    header = struct.pack(">hhihB", DESCRIBE_PRODUCERS, 0, 1, -1, 0)
    request = header + bytes([2, len(name) + 1]) + name + struct.pack(">BiBB", 2, 0, 0, 0)
    with socket.create_connection(("127.0.0.1", kafka.port), timeout=30) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    at = (
        4 + 1 + 4 + 1 + 1 + len(name) + 1
    )  # correlation, tags, throttling, topics, name, partitions
    number, error, message, producers = struct.unpack_from(">ihBB", answer, at)
    assert (number, error, message) == (0, 0, 0), answer
    return producers - 1


def test_an_owner_that_its_broker_has_forgotten_goes_on_writing(
    kafka: KafkaServer, kafka_url: str
) -> None:
    topic = parse_kafka_url(kafka_url).topic("t")

    async def story(forgetting: contextlib.ExitStack) -> None:
        expected: list[bytes] = []
        async with journals(kafka_url) as (journal,):
            epoch, end = await take(journal)
            for turn in range(3):
                for size in SIZES:
                    entries = [b"%d/%d/%d" % (turn, size, number) for number in range(size)]
                    outcome = await append(journal, entries, epoch, end)
                    assert isinstance(outcome, Appended), outcome
                    assert outcome.first == end
                    end = outcome.next
                    expected += entries
                if turn == 0:
                    assert known_producers(kafka, topic), "nothing is there to be forgotten"
                    forgetting.enter_context(short_memory(kafka))
                await until(lambda: known_producers(kafka, topic) == 0)
            assert await everything(journal) == expected
        assert await fresh_view(kafka_url) == expected

    with contextlib.ExitStack() as forgetting:
        asyncio.run(story(forgetting))


@pytest.mark.parametrize(
    "size", [600, *(pytest.param(size, marks=pytest.mark.soak) for size in (1, 40))]
)
def test_what_a_forgotten_producer_sends_again_does_not_count_twice(
    kafka: KafkaServer, kafka_url: str, size: int
) -> None:
    """A broker knows a repeated batch by its producer's number: one that it forgot, it takes."""
    topic = parse_kafka_url(kafka_url).topic("t")
    entries = [b"%d" % number for number in range(size)]

    async def story() -> None:
        async with journals(kafka_url) as (journal,):
            epoch, end = await take(journal)
            first = await append(journal, entries, epoch, end)
            assert isinstance(first, Appended)
            await until(lambda: known_producers(kafka, topic) == 0)
            send_again(kafka, topic, size)
            assert await everything(journal) == await fresh_view(kafka_url) == entries
            second = await append(journal, [b"next"], epoch, first.next)
            assert isinstance(second, Appended), second
            assert await everything(journal) == await fresh_view(kafka_url) == [*entries, b"next"]

    with short_memory(kafka):
        asyncio.run(story())


def send_again(kafka: KafkaServer, topic: str, size: int) -> None:
    """The records of the last flight of a topic, byte for byte."""
    flight = flights_of(kafka.endpoint, topic, 1)[-1]
    assert len(flight.records) == size
    producer = Producer({"bootstrap.servers": kafka.endpoint, "enable.idempotence": True})
    for key, payload in flight.records:
        producer.produce(topic, payload, key, 0)
    assert producer.flush(30) == 0
