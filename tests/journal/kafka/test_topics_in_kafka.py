"""Topics that somebody else has created: used where they fit, refused with the reason if not."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.kafka_server import SecuredKafka, fresh_url, open_kafka_journal

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.journal.kafka.address import parse_kafka_url

pytest.importorskip("confluent_kafka")
from confluent_kafka import admin as kafka_admin

pytestmark = pytest.mark.xdist_group("kafka")


def created(kafka: SecuredKafka, partitions: int = 1, **config: str) -> str:
    """The URL of a journal whose topic `t` is there already."""
    url = fresh_url(kafka)
    name = parse_kafka_url(url).topic("t")
    client = kafka_admin.AdminClient({"bootstrap.servers": kafka.endpoint, "log_level": 0})
    settings = {each.replace("_", "."): value for each, value in config.items()}
    topic = kafka_admin.NewTopic(  # pyright: ignore[reportPrivateImportUsage]
        name, partitions, 1, config=settings
    )
    client.create_topics([topic])[name].result(30)
    return url


def test_the_limit_of_a_topic_is_named_when_an_entry_is_larger(kafka: SecuredKafka) -> None:
    url = created(kafka)  # as Kafka's default is
    largest = 1_048_588 - 100

    async def story() -> None:
        journal = open_kafka_journal(url)
        journal.create_topic("t", 1)
        with pytest.raises(InvalidArgument, match=f"{largest} bytes, by max.message.bytes"):
            await journal.append("t", 1, [bytes(largest + 1)])
        await journal.append("t", 1, [bytes(largest), b"", bytes(600_000), bytes(600_000)])
        found = [len(each.payload) for each in await journal.read("t", 1, 0, 8_000_000)]
        assert found == [largest, 0, 600_000, 600_000], "an append may be larger than a batch"
        await journal.close()

    asyncio.run(story())


def test_a_topic_that_takes_less_than_a_batch_is_refused(kafka: SecuredKafka) -> None:
    url = created(kafka, max_message_bytes="2000")
    with pytest.raises(InvalidArgument, match="is 2000"):
        open_kafka_journal(url)


def test_a_topic_that_loses_records_is_refused(kafka: SecuredKafka) -> None:
    url = created(kafka, cleanup_policy="compact")
    with pytest.raises(InvalidArgument, match="set it to delete"):
        open_kafka_journal(url)


def test_a_topic_with_other_partitions_is_refused(kafka: SecuredKafka) -> None:
    url = created(kafka, partitions=2)

    async def story() -> None:
        journal = open_kafka_journal(url)
        with pytest.raises(InvalidArgument, match="with 2"):
            journal.create_topic("t", 3)
        assert journal.topics() == {"t": 2}
        await journal.close()

    asyncio.run(story())


def test_where_no_broker_answers_a_journal_does_not_open(
    monkeypatch: pytest.MonkeyPatch, logged: Callable[[], list[logging.LogRecord]]
) -> None:
    monkeypatch.setattr("holdfast.journal.kafka.topics.KAFKA_OPEN_MS_MAX", 300)
    monkeypatch.setattr("holdfast.journal.kafka.asking.KAFKA_NOTICE_MS", 100)
    with pytest.raises(Unavailable, match=r"broker answers at 127\.0\.0\.1:9"):
        open_kafka_journal("kafka://127.0.0.1:9/orders")
    message = "no Kafka broker has answered yet servers='127.0.0.1:9 (PLAINTEXT)'"
    assert message in [each.getMessage() for each in logged()]
