"""The numbers of one node."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from holdfast.metrics.cluster import ClusterMetrics
from holdfast.metrics.content import ContentMetrics
from holdfast.metrics.engine import (
    BatchMetrics,
    DistributionMetrics,
    PartitionMetrics,
    TransactionMetrics,
)
from holdfast.metrics.etcd import EtcdMetrics
from holdfast.metrics.groups import GroupMetrics
from holdfast.metrics.histogram import command_histogram, histogram_family
from holdfast.metrics.sequence import OrderMetrics
from holdfast.metrics.storage import HttpMetrics, StorageMetrics
from holdfast.metrics.work import WorkMetrics

_SYNC_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)

_COUNTED = (
    ("appended", "holdfast_appended_records", "Records appended to the log"),
    ("processed", "holdfast_processed_commands", "Commands processed"),
    ("rejected", "holdfast_rejected_commands", "Commands answered by a rejection"),
    ("bugs", "holdfast_failed_commands", "Commands that threw: bugs"),
)
_GAUGED = (
    ("in_flight", "holdfast_commands_in_flight", "Commands waiting for their answer"),
    ("open", "holdfast_partition_open", "Whether the partition runs: 1, or 0 if it has stopped"),
    ("lag", "holdfast_lag_records", "Records on the log that are not processed yet"),
)


class PipelineLag(NamedTuple):
    """How far the tables are behind the log."""

    records: dict[int, int]  # by partition
    seconds: float


class ClockNumbers(NamedTuple):
    """How the machine's clock and the time of the node go together."""

    jumps: int  # how often the machine's clock was set
    ahead_seconds: float  # how far it is ahead of the node's time


async def _nothing_to_refresh() -> None:
    """No partition runs yet."""


class Metrics:
    """The numbers of one node, by partition where that says more."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.distribution = DistributionMetrics()
        self.transactions = TransactionMetrics()
        self.batch = BatchMetrics()
        self.work = WorkMetrics()
        self.commands = command_histogram()  # from their submission to their durable answer
        self.storage = StorageMetrics()
        self.http = HttpMetrics()
        self.content = ContentMetrics()
        self.groups = GroupMetrics()
        self.order = OrderMetrics()
        self.etcd = EtcdMetrics()
        self.cluster = ClusterMetrics()
        # brings numbers up to date that are read from the state
        self.refresh: Callable[[], Awaitable[None]] = _nothing_to_refresh
        self.pipeline_lag: Callable[[], PipelineLag | None] = lambda: None  # None: no tables
        self.clock: Callable[[], ClockNumbers] = lambda: ClockNumbers(0, 0.0)
        self._partitions: dict[int, PartitionMetrics] = {}
        self._syncs = [0] * (len(_SYNC_SECONDS) + 1)
        self._sync_seconds = 0.0
        self._bytes = 0
        self._refused = 0

    def partition(self, partition: int) -> PartitionMetrics:
        """The numbers of one partition, to be counted up."""
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = PartitionMetrics()
        return found

    def refused(self, commands: int) -> None:
        """Commands were not taken because too many are in flight."""
        self._refused += commands

    def on_commit(self, entries: int, size_bytes: int, sync_seconds: float) -> None:
        """The journal wrote and synced; named as the journal's observer expects it."""
        self._syncs[bisect_left(_SYNC_SECONDS, sync_seconds)] += 1
        self._sync_seconds += sync_seconds
        self._bytes += size_bytes

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects; called by the registry."""
        for attribute, name, text in _COUNTED:
            counter = CounterMetricFamily(name, text, labels=["partition"])
            for partition, numbers in self._partitions.items():
                counter.add_metric([str(partition)], getattr(numbers, attribute))
            yield counter
        for attribute, name, text in _GAUGED:
            gauge = GaugeMetricFamily(name, text, labels=["partition"])
            for partition, numbers in self._partitions.items():
                gauge.add_metric([str(partition)], getattr(numbers, attribute))
            yield gauge
        yield from self.work.collect()
        yield histogram_family(
            "holdfast_command_seconds", "Time from a command's arrival to its durable answer",
            (), [((), self.commands)],
        )  # fmt: skip
        yield from self.distribution.collect()
        yield from self.transactions.collect()
        yield from self.batch.collect()
        yield from self.storage.collect()
        yield from self.http.collect()
        yield from self.content.collect()
        yield from self.groups.collect()
        yield from self.order.collect()
        yield from self.etcd.collect()
        yield from self.cluster.collect()
        yield from self._pipeline()
        clock = self.clock()
        yield CounterMetricFamily(
            "holdfast_clock_jumps", "Times that the machine's clock was set", value=clock.jumps
        )
        yield GaugeMetricFamily(
            "holdfast_clock_ahead_seconds",
            "Lead of the machine's clock over the time of the node",
            value=clock.ahead_seconds,
        )
        yield HistogramMetricFamily(
            "holdfast_journal_sync_seconds",
            "Time of one write and sync of the journal",
            buckets=self._cumulated(),
            sum_value=self._sync_seconds,
        )
        yield CounterMetricFamily(
            "holdfast_journal_bytes", "Bytes appended to the journal", value=self._bytes
        )
        yield CounterMetricFamily(
            "holdfast_refused_commands",
            "Commands refused because too many are in flight",
            value=self._refused,
        )

    def _pipeline(self) -> Iterable[Metric]:
        lag = self.pipeline_lag()
        if lag is None:
            return
        records = GaugeMetricFamily(
            "holdfast_pipeline_lag_records",
            "Records that are not in the tables yet",
            labels=["partition"],
        )
        for partition, count in lag.records.items():
            records.add_metric([str(partition)], count)
        yield records
        yield GaugeMetricFamily(
            "holdfast_pipeline_lag_seconds",
            "Age of the last record in the tables; 0 if they are up to date",
            value=lag.seconds,
        )

    def _cumulated(self) -> list[tuple[str, float]]:
        """Prometheus' buckets count everything up to their bound."""
        buckets: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*map(str, _SYNC_SECONDS), "+Inf"), self._syncs, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets
