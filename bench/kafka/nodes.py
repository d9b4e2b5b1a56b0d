"""A node whose log is in Kafka: how many no-op tasks a second, and how soon one is acknowledged."""

import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench.costs import Sample, tree_cpu_seconds
from bench.harness import Figure, Run, remove
from bench.ours.kafka_cluster import OurKafkaCluster
from bench.ours.kafka_flights import BareProducers, KafkaFlight, create_topic, flights_of
from bench.ours.node import OurNode
from bench.peers import Celery, measured
from bench.tasks import tasks_per_second
from holdfast import Holdfast

TASKS = 50_000
CELERY_TASKS = 4_000
PARTITIONS = 4
ONE_BY_ONE = 300
LOG = "bench"


def nodes(run: Run) -> Iterator[Figure]:
    folder = run.folder("kafka-nodes")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        options = ("--partitions", str(PARTITIONS))
        cluster = stack.enter_context(OurKafkaCluster(folder, LOG, ("a",), options))
        (url,) = cluster.urls
        count = run.scaled(TASKS)
        bare = BareKafka(cluster, count)
        yield Figure(
            name="no-op tasks on a node over Kafka",
            against="Celery on Redis",
            goal=">= 3",
            unit="tasks/s",
            ours=lambda: tasks_per_second(url, count),
            peer=measured(
                stack, Celery(), lambda it: it.no_op_tasks_per_second(run.scaled(CELERY_TASKS))
            ),
        )
        yield Figure(
            name="no-op tasks on a node over Kafka, beside a bare producer",
            against="a transaction for each of the same batches",
            goal=">= 0.5",
            unit="tasks/s",
            ours=bare.noted_tasks_per_second,
            peer=bare.tasks_per_second,
            cost_of="task",
        )
        local = stack.enter_context(OurNode(folder / "local", PARTITIONS))
        yield Figure(
            name="no-op tasks on a node over Kafka, beside a node on its own disk",
            against="a node with as many partitions on its own disk",
            goal=">= 0.5",
            unit="tasks/s",
            ours=lambda: tasks_per_second(url, count),
            peer=lambda: tasks_per_second(local.url, count),
        )
        app = stack.enter_context(Holdfast.connect(url))
        nothing = app.task(name="kafka-latency")(lambda number: None)

        def acknowledged() -> float:
            return 1e6 * _median(lambda n: nothing.bind(n).submit(delay=3_600), ONE_BY_ONE)

        yield Figure(
            name="one task at a time over Kafka, acknowledged, p50",
            against="a bare transaction of one record",
            goal="<= 2",
            unit="µs",
            ours=acknowledged,
            peer=lambda: 1e6 * bare.latency_seconds(ONE_BY_ONE),
        )


class BareKafka:
    """Writes what the node has appended since it was looked at last, by bare transactions."""

    def __init__(self, cluster: OurKafkaCluster, count: int) -> None:
        self._cluster = cluster
        self._count = count
        self._seen: dict[int, int] = {}  # flights by partition
        self._flights: list[KafkaFlight] = []
        self._producers: BareProducers | None = None

    def noted_tasks_per_second(self) -> Sample:
        """The node's; what it has appended for them is what the producers write next."""
        (member,), (url,) = self._cluster.members.values(), self._cluster.urls
        sample = tasks_per_second(
            url, self._count, [member.process.pid], [self._cluster.broker.pid]
        )
        found = flights_of(self._cluster.broker.endpoint, f"{LOG}.records", PARTITIONS)
        self._flights = []
        for partition in range(PARTITIONS):
            own = [each for each in found if each.partition == partition]
            self._flights += own[self._seen.get(partition, 0) :]
            self._seen[partition] = len(own)
        return sample

    def tasks_per_second(self) -> Sample:
        """What the producers reach; they are threads of this process."""
        bare, broker = self._bare(), self._cluster.broker.pid
        own, brokers = time.process_time(), tree_cpu_seconds(broker)
        seconds = bare.seconds_for(self._flights)
        costs = {
            "producer": 1e6 * (time.process_time() - own) / self._count,
            "broker": 1e6 * (tree_cpu_seconds(broker) - brokers) / self._count,
        }
        return Sample(self._count / seconds, costs)

    def latency_seconds(self, count: int) -> float:
        one = KafkaFlight(0, [(b"0" * 21, os.urandom(256))])
        return self._bare().latency_seconds(one, count)

    def _bare(self) -> BareProducers:
        if self._producers is None:
            topic = f"bare-{uuid.uuid4().hex[:8]}"
            create_topic(self._cluster.broker.endpoint, topic, PARTITIONS)
            self._producers = BareProducers(self._cluster.broker.endpoint, topic, PARTITIONS)
        return self._producers


def _median(call: Callable[[int], object], count: int) -> float:
    spans: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        call(number)
        spans.append(time.perf_counter() - began)
    return statistics.median(spans)
