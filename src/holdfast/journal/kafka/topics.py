"""The topics of one name in Kafka, and what is known of their partitions."""

from collections.abc import Mapping, Sequence

from holdfast.errors import Unavailable
from holdfast.journal.api import Retention
from holdfast.journal.checks import check_partition, check_same_partitions, unknown_topic
from holdfast.journal.kafka.address import KafkaAddress
from holdfast.journal.kafka.asking import BrokerEnds, Brokers
from holdfast.journal.kafka.partition import Known
from holdfast.limits import KAFKA_OPEN_MS_MAX

Place = tuple[str, int]
"""A topic as Kafka calls it, and a partition from 1 on."""
_NOT_OURS = frozenset(("rebalance",))  # members of a group meet there; nothing is ever written


class KafkaTopic:
    """A topic's partitions, numbered from 1."""

    def __init__(self, name: str, ends: Sequence[BrokerEnds], limit_bytes: int) -> None:
        self.name = name  # as Kafka calls it
        self.partitions = [Known(*each) for each in ends]
        self.limit_bytes = limit_bytes  # of a batch
        self.retention = Retention()


class KafkaTopics(Mapping[str, KafkaTopic]):
    """The topics whose names begin with ours, by the rest of their names."""

    def __init__(self, address: KafkaAddress, brokers: Brokers, replicas: int) -> None:
        self.is_closed = False
        self._address = address
        self._brokers = brokers
        self._replicas = replicas
        self._topics: dict[str, KafkaTopic] = {}
        self.cluster_id, topics = brokers.cluster(KAFKA_OPEN_MS_MAX / 1000)
        self._learn(topics)

    def __getitem__(self, topic: str) -> KafkaTopic:
        return self._topics[topic]

    def __iter__(self):
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def create(self, topic: str, partitions: int) -> None:
        """Makes sure that a topic exists; blocks until a broker has answered."""
        if topic not in self._topics:
            name = self._address.topic(topic)
            self._brokers.create(name, partitions, self._replicas)
            _, topics = self._brokers.cluster(KAFKA_OPEN_MS_MAX / 1000)
            self._learn({name: topics.get(name, partitions)})
        check_same_partitions(topic, len(self[topic].partitions), partitions)

    def known(self, topic: str, partition: int) -> Known:
        """What is known of a partition; NotFound if it is not there."""
        self.check_open()
        there = self._topics.get(topic)
        if there is None:
            raise unknown_topic(topic)
        check_partition(topic, partition, len(there.partitions))
        return there.partitions[partition - 1]

    def at(self, place: Place) -> Known:
        """The same, of a partition as Kafka calls it."""
        topic = self._topics[place[0].removeprefix(self._address.topic(""))]
        return topic.partitions[place[1] - 1]

    def learn(self, ends: Mapping[Place, BrokerEnds]) -> None:
        """So far do partitions reach."""
        for place, (earliest, following) in ends.items():
            known = self.at(place)
            known.begins(earliest)
            known.reaches(following)

    def check_open(self) -> None:
        """Raises Unavailable once the journal is closed."""
        if self.is_closed:
            raise Unavailable("expected an open journal, but this one is closed")

    def _learn(self, topics: Mapping[str, int]) -> None:
        """Looks at those of the topics that are ours."""
        prefix = self._address.topic("")
        ours = {
            name: count
            for name, count in topics.items()
            if name.startswith(prefix) and name.removeprefix(prefix) not in _NOT_OURS
        }
        places = [(name, each + 1) for name, count in ours.items() for each in range(count)]
        ends = self._brokers.ends(places)
        for name, count in ours.items():
            self._topics[name.removeprefix(prefix)] = KafkaTopic(
                name,
                [ends[name, each + 1] for each in range(count)],
                self._brokers.limit_bytes(name),
            )
