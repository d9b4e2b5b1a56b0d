"""A journal in Kafka that others write, read without an event loop: for processes that only read.

What it calls the end of a partition is settled: no flight is under way across it. A reader that
goes on from there misses nothing of a flight of which only the beginning was in the log.
"""

from collections.abc import Collection

from holdfast.config import Config
from holdfast.errors import Unavailable
from holdfast.journal.api import Bounds, Entry
from holdfast.journal.checks import check_offset, check_partition, unknown_topic
from holdfast.journal.kafka.address import client_settings, kafka_access, parse_kafka_url
from holdfast.journal.kafka.asking import BrokerEnds, Brokers
from holdfast.journal.kafka.fetching import BeyondLog, PartitionFetcher
from holdfast.journal.kafka.sieve import Sieve, flight_start, is_under_way
from holdfast.journal.kafka.topics import Place
from holdfast.limits import KAFKA_LOOK_WAIT_MS, KAFKA_OPEN_MS_MAX, READ_BYTES_MAX


class KafkaReader:
    """Reads topics of one name; blocks. For one thread."""

    def __init__(self, url: str, config: Config) -> None:
        self._address = parse_kafka_url(url)
        settings = client_settings(self._address, kafka_access(self._address, config))
        self._brokers = Brokers(settings)
        self._fetcher = PartitionFetcher(settings, KAFKA_LOOK_WAIT_MS)
        self._ends: dict[Place, BrokerEnds] = {}  # as they were when they were last asked for
        self._settled: dict[Place, tuple[BrokerEnds, Bounds]] = {}  # the same, and what is settled

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        _, found = self._brokers.cluster(KAFKA_OPEN_MS_MAX / 1000)
        prefix = self._address.topic("")
        return {
            name.removeprefix(prefix): count
            for name, count in found.items()
            if name.startswith(prefix)
        }

    def bounds(self, topic: str, partitions: Collection[int]) -> dict[int, Bounds]:
        """What is settled now, of some partitions of a topic."""
        name = self._address.topic(topic)
        self._ask([(name, each) for each in partitions])
        return {each: self._settled_bounds((name, each)) for each in partitions}

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after a time; None if there is none."""
        return self._brokers.offset_at(self._address.topic(topic), partition, timestamp_ms)

    def read_now(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal; what is given up meanwhile is NotFound."""
        place = (self._address.topic(topic), partition)
        if place not in self._ends or offset >= self._ends[place].next:
            self._check(topic, partition)
            self._ask([place])
        try:
            check_offset(topic, partition, offset, Bounds(*self._ends[place]))
            return self._fetcher.entries(*place, offset, bytes_max, self._ends[place])
        except BeyondLog:
            self._ask([place])
            check_offset(topic, partition, offset, Bounds(*self._ends[place]))
            raise Unavailable(
                f"Kafka does not give what is at offset {offset} of partition {partition} of topic"
                f" {topic!r} now"
            ) from None

    def close(self) -> None:
        """Ends the clients."""
        self._fetcher.close()
        self._brokers.close()

    def _check(self, topic: str, partition: int) -> None:
        count = self.topics().get(topic)
        if count is None:
            raise unknown_topic(topic)
        check_partition(topic, partition, count)

    def _ask(self, places: list[Place]) -> None:
        self._ends |= self._brokers.ends(places)

    def _settled_bounds(self, place: Place) -> Bounds:
        """A record is read for it, but only where the log has moved."""
        ends = self._ends[place]
        asked, settled = self._settled.get(place, (None, None))
        if settled is None or asked != ends:
            settled = Bounds(ends.earliest, self._settled_end(place, ends))
            self._settled[place] = ends, settled
        return settled

    def _settled_end(self, place: Place, ends: BrokerEnds) -> int:
        """The end, or where the flight begins that is under way there."""
        if ends.next == ends.earliest:
            return ends.next
        last = self._fetcher.records(*place, ends.next - 1, ends.next)
        if not last or not is_under_way(last[-1]):
            return ends.next
        start = max(flight_start(last[-1]), ends.earliest)
        sieve = Sieve(start)
        sieve.add(self._fetcher.records(*place, start, ends.next))
        return sieve.settled
