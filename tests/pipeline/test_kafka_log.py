"""A log in Kafka, read from the broker and through a node: the same, and each record once."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from local_batch import LocalBatch
from node_story import StoredTables
from tests.kafka_server import open_kafka_journal

from holdfast.client.portal import Portal
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.errors import InvalidArgument, InvalidState, NotFound
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.journal import Entry
from holdfast.pipeline.log import Log, entries_between, open_log
from holdfast.pipeline.project import Projection
from holdfast.pipeline.schema import RANGES
from holdfast.pipeline.source import LogStreamReader
from holdfast.pipeline.wanted import Wanted
from holdfast.testing import MemoryNode

pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer

from holdfast.journal.kafka.address import parse_kafka_url
from holdfast.journal.kafka.marks import BARRIER, EXPECTED, PLAIN, Raw, pack
from holdfast.journal.kafka.sieve import is_under_way

PARTITIONS = 2
TOPIC = "records"

in_kafka = pytest.mark.xdist_group("kafka")


def whole(log: Log, partition: int) -> list[Entry]:
    bounds = log.bounds()[partition]
    pieces = entries_between(log, partition, bounds.earliest, bounds.next)
    return [entry for piece in pieces for entry in piece]


def send(url: str, *records: tuple[bytes, bytes]) -> None:
    """Writes records as they are, to partition 1."""
    address = parse_kafka_url(url)
    producer = Producer({"bootstrap.servers": address.servers[0], "log_level": 0})
    for key, payload in records:
        producer.produce(address.topic(TOPIC), payload, key, 0)
        assert producer.flush(30) == 0


# --- the log itself ---------------------------------------------------------------------------


@in_kafka
def test_the_broker_gives_what_the_journal_gives_without_barriers(kafka_url: str) -> None:
    async def write() -> list[list[Entry]]:
        journal = open_kafka_journal(kafka_url)
        journal.create_topic(TOPIC, PARTITIONS)
        for _ in range(2):  # each take leaves a barrier
            for partition in (1, 2):
                await journal.take(TOPIC, partition)
                for number in range(3):
                    payloads = [b"%d/%d" % (number, each) for each in range(50 * partition)]
                    await journal.append(TOPIC, partition, payloads)
        found = [await journal.read(TOPIC, partition, 0) for partition in (1, 2)]
        await journal.close()
        return found

    written = asyncio.run(write())
    log = open_log(kafka_url)
    assert [whole(log, partition) for partition in (1, 2)] == written
    assert [len(each) for each in written] == [300, 600]
    assert log.bounds()[1].next > 300, "barriers have offsets"
    assert log.stream_bounds() == {}
    end = log.bounds()[1].next
    halves = [*entries_between(log, 1, 0, 77), *entries_between(log, 1, 77, end)]
    assert [each for piece in halves for each in piece] == written[0], "cut inside an append"
    assert log.read(1, end) == []
    later = log.bounds_since(written[0][-1].timestamp_ms + 60_000)
    assert later[1] == (end, end)
    assert log.bounds_since(0) == log.bounds()
    with pytest.raises(NotFound, match="expected an offset from 0 to"):
        log.read(1, end + 1)
    with pytest.raises(NotFound, match="expected partition 1 to 2"):
        log.read(3, 0)
    with pytest.raises(InvalidState, match="has no cuts"):
        log.as_of(None)
    log.close()


@in_kafka
def test_an_append_of_which_a_part_is_in_the_log_is_behind_its_end(kafka_url: str) -> None:
    """A micro-batch that ended in the middle of it would leave its first part out for ever."""

    async def begin() -> int:
        journal = open_kafka_journal(kafka_url)
        journal.create_topic(TOPIC, 1)
        await journal.take(TOPIC, 1, 1)
        first = await journal.append(TOPIC, 1, [b"a", b"b"])
        await journal.close()
        return first + 2

    start = asyncio.run(begin())
    log = open_log(kafka_url)
    assert log.bounds()[1].next == start
    flight = [(pack(EXPECTED, 1, start, place, 3), b"%d" % place) for place in range(3)]
    send(kafka_url, *flight[:2])
    assert log.bounds()[1].next == start
    send(kafka_url, flight[2])
    assert log.bounds()[1].next == start + 3
    assert [each.payload for each in whole(log, 1)] == [b"a", b"b", b"0", b"1", b"2"]

    void = [(pack(EXPECTED, 1, start + 3, place, 3), b"void") for place in range(2)]
    barrier = (pack(BARRIER, 2, 7, 0, 1), b"")
    send(kafka_url, *void)
    assert log.bounds()[1].next == start + 3, "its writer may go on"
    send(kafka_url, barrier)
    assert log.bounds()[1].next == start + 6, "it cannot go on behind a barrier"
    assert [each.payload for each in whole(log, 1)] == [b"a", b"b", b"0", b"1", b"2"]
    log.close()


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (pack(EXPECTED, 1, 10, 0, 2), True),
        (pack(EXPECTED, 1, 9, 1, 2), False),  # the last of its flight
        (pack(EXPECTED, 1, 8, 0, 2), False),  # not where it must be
        (pack(PLAIN, 0, 99, 0, 2), True),
        (pack(BARRIER, 1, 99, 0, 1), False),
        (b"somebody else's", False),
        (None, False),
    ],
)
def test_whether_more_of_an_append_may_follow(key: bytes | None, expected: bool) -> None:
    assert is_under_way(Raw(10, 0, key, b"")) is expected


@in_kafka
def test_where_no_log_is_the_error_names_the_address(kafka_url: str) -> None:
    log = open_log(kafka_url)
    with pytest.raises(NotFound, match=f"the log of a cluster at {kafka_url}"):
        log.bounds()
    log.close()
    with pytest.raises(InvalidArgument, match="Expected kafka://"):
        open_log("kafka://127.0.0.1:9092/")


# --- as tables --------------------------------------------------------------------------------


class ServedOnKafka:
    """A node that has nothing but the log in Kafka, served over HTTP."""

    def __init__(self, url: str) -> None:
        self.portal = Portal("node")
        self._node = self.portal.call(self._open(url))
        self.server = HttpServer(self._node.gateway)
        self.portal.call(self.server.start())

    async def _open(self, url: str) -> MemoryNode:
        journal, config = open_kafka_journal(url), Config(log_level="error")
        return await MemoryNode(
            partitions=PARTITIONS, clock=SystemClock(), journal=journal, config=config
        ).start()

    def work(self, count: int) -> None:
        """Submits tasks, to all partitions in turn, and completes half of them."""
        gateway = self._node.gateway
        for _ in range(4):
            tasks = [NewTask("mail", msgspec.Raw(b"[1]"))] * (count // 4)
            self.portal.call(gateway.tasks.submit(tasks))
        jobs = self.portal.call(gateway.jobs.activate(ActivationRequest(["mail"], "w", count // 2)))
        done = [JobCompletion(job.job_key, job.lease) for job in jobs]
        self.portal.call(gateway.jobs.complete(done))

    def close(self) -> None:
        self.portal.call(self.server.close())
        self.portal.call(self._node.close())
        self.portal.close()


def advance(address: str, tables: Path) -> dict[int, int]:
    """The tables as far as the log is, in several micro-batches, as Spark takes them."""
    reader = LogStreamReader(address, RANGES, Wanted(), 250)
    projection = Projection(address, tables, SystemClock())
    start = reader.initialOffset() | {
        str(partition): at for partition, at in projection.progress.positions.items()
    }
    reader.prepareForTriggerAvailableNow()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        ranges = [
            {"partition_id": each.partition, "start": each.start, "end": each.end}
            for each in reader.partitions(start, end)
        ]
        batch: Any = LocalBatch(ranges)
        projection.take(batch, projection.progress.batch + 1)
        start = end
    reader.stop()
    return projection.progress.records()


@in_kafka
def test_tables_go_on_over_a_take_over_from_the_broker_and_from_a_node(
    kafka_url: str, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    for rounds, is_by_node in ((1, False), (2, True)):
        node = ServedOnKafka(kafka_url)  # takes the partitions: a barrier in each of them
        try:
            node.work(80)
            progress = advance(node.server.url if is_by_node else kafka_url, tables)
        finally:
            node.close()
        rows, log = StoredTables(tables, None).rows("records"), open_log(kafka_url)
        for partition in range(1, PARTITIONS + 1):
            pieces = entries_between(log, partition, 0, progress[partition])
            there = sum(map(len, pieces))  # without barriers
            found = [row["position"] for row in rows if row["partition_id"] == partition]
            assert sorted(found) == list(range(there)), "lost or doubled"
            assert there > 50 * rounds
        log.close()
        jobs = StoredTables(tables, None).rows("jobs")
        assert len(jobs) == 80 * rounds
        assert sum(row["state"] == "COMPLETED" for row in jobs) == 40 * rounds
