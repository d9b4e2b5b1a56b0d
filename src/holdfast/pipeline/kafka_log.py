"""The log of a cluster on Kafka, read from the broker itself: no member has to hand it on."""

import time

from holdfast.config import load_config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import InvalidState, NotFound, Unavailable
from holdfast.journal import Bounds, Entry
from holdfast.pipeline.log import CutEnds
from holdfast.pipeline.streams import ONLY_PARTITION, STREAMS, log_of

try:
    from holdfast.journal.kafka.reader import KafkaReader
except ImportError as error:
    raise Unavailable(
        f"Expected Kafka's client to be installed, but {error}: pip install 'holdfast[kafka]'"
    ) from error

_TOPICS_SECONDS = 2.0  # from one look at which topics there are to the next


class KafkaLog:
    """The log at a kafka:// URL; user, password and certificates are those of the settings."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._reader = KafkaReader(url, load_config())
        self._topics: dict[str, int] = {}
        self._look_at = 0.0  # when it is asked again which topics there are

    def bounds(self) -> dict[int, Bounds]:
        return self._reader.bounds(TOPIC, self._partitions())

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        found: dict[int, Bounds] = {}
        for partition, bounds in self.bounds().items():
            first = self._reader.offset_at(TOPIC, partition, since_ms)
            start = bounds.next if first is None else first
            found[partition] = Bounds(min(max(start, bounds.earliest), bounds.next), bounds.next)
        return found

    def stream_bounds(self) -> dict[int, Bounds]:
        only, topics = (ONLY_PARTITION,), self._find_topics()
        return {
            number: self._reader.bounds(stream.topic, only)[ONLY_PARTITION]
            for number, stream in STREAMS.items()
            if stream.topic in topics
        }

    def read(self, partition: int, position: int) -> list[Entry]:
        return self._reader.read_now(*log_of(partition, TOPIC), position)

    def as_of(self, cut: int | None) -> CutEnds:
        raise InvalidState(
            "A cluster on Kafka has no cuts: Kafka orders each partition by itself. Only a cluster"
            " with etcd has them"
        )

    def close(self) -> None:
        self._reader.close()

    def _partitions(self) -> range:
        count = self._find_topics().get(TOPIC)
        if count is None:
            raise NotFound(f"Expected the log of a cluster at {self._url}, but it has no records")
        return range(1, count + 1)

    def _find_topics(self) -> dict[str, int]:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _TOPICS_SECONDS
            self._topics = self._reader.topics()
        return self._topics
