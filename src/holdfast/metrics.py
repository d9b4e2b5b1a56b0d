"""What a node counts and measures. The only module that imports prometheus_client.

The hot paths count in plain integers; Prometheus' own objects are made when somebody asks.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.parser import text_string_to_metric_families

_SYNC_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)


class PartitionMetrics:
    """What is counted and measured of one partition."""

    def __init__(self) -> None:
        self.appended = 0
        self.processed = 0
        self.rejected = 0
        self.bugs = 0
        self.in_flight = 0
        self.lag = 0
        self.open = 0

    def step(self, records: int, commands: int, rejections: int, bugs: int, lag: int) -> None:
        """A step became durable."""
        self.appended += records
        self.processed += commands
        self.rejected += rejections
        self.bugs += bugs
        self.lag = lag


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


class TargetMetrics:
    """What is counted of the commands that are distributed to one partition."""

    def __init__(self) -> None:
        self.sent = 0
        self.retries = 0
        self.acknowledgements_sent = 0
        self.acknowledgements_received = 0


class DistributionGauges(NamedTuple):
    """How much is being distributed: read from the state, so a restart changes nothing."""

    active: dict[int, int]  # by the partition that started them
    pending: dict[int, int]  # by the partition that has not acknowledged them
    in_flight: dict[int, int]


class DistributionMetrics:
    """What is counted and measured of distribution, by the partition that receives."""

    def __init__(self) -> None:
        self.targets: dict[int, TargetMetrics] = {}
        self.gauges: Callable[[], DistributionGauges] = lambda: DistributionGauges({}, {}, {})

    def of(self, partition: int) -> TargetMetrics:
        """The numbers of one receiving partition, to be counted up."""
        return self.targets.setdefault(partition, TargetMetrics())

    def collect(self) -> Iterable[Metric]:
        for attribute, name, text in _DISTRIBUTED:
            counter = CounterMetricFamily(name, text, labels=["target"])
            for target, numbers in self.targets.items():
                counter.add_metric([str(target)], getattr(numbers, attribute))
            yield counter
        gauges = self.gauges()
        for attribute, name, text, label in _DISTRIBUTING:
            gauge = GaugeMetricFamily(name, text, labels=[label])
            for partition, value in getattr(gauges, attribute).items():
                gauge.add_metric([str(partition)], value)
            yield gauge


_DISTRIBUTED = (
    ("sent", "holdfast_distribution_sent", "Distributed commands sent"),
    ("retries", "holdfast_distribution_retries", "Of these, second and later attempts"),
    (
        "acknowledgements_sent",
        "holdfast_distribution_acknowledgements_sent",
        "Acknowledgements that the target sent",
    ),
    (
        "acknowledgements_received",
        "holdfast_distribution_acknowledgements_received",
        "Acknowledgements of the target that reached the origin",
    ),
)
_DISTRIBUTING = (
    ("active", "holdfast_distributions_active", "Distributions not finished", "partition"),
    (
        "pending",
        "holdfast_distributions_pending",
        "Distributions that the target has not acknowledged",
        "target",
    ),
    (
        "in_flight",
        "holdfast_distributions_in_flight",
        "Of these, how many are on their way; the others wait for their turn",
        "target",
    ),
)


ByTwo = dict[tuple[str, str], int]  # by a type and a state or an outcome


class BatchNumbers(NamedTuple):
    """What batch operations add up to."""

    running: ByTwo  # operations, by type and state
    ended: ByTwo  # operations, by type and final state
    items: ByTwo  # by type and outcome
    per_second: float


class BatchMetrics:
    """What is counted and measured of batch operations."""

    def __init__(self) -> None:
        self.numbers: Callable[[], BatchNumbers] = lambda: BatchNumbers({}, {}, {}, 0.0)

    def collect(self) -> Iterable[Metric]:
        numbers = self.numbers()
        running = GaugeMetricFamily(
            "holdfast_batch_operations", "Batch operations not finished", labels=["type", "state"]
        )
        ended = CounterMetricFamily(
            "holdfast_batch_operations_ended", "Batch operations that ended, by their final state",
            labels=["type", "state"],
        )  # fmt: skip
        items = CounterMetricFamily(
            "holdfast_batch_items", "Items of batch operations with an outcome",
            labels=["type", "outcome"],
        )  # fmt: skip
        for family, counts in (
            (running, numbers.running),
            (ended, numbers.ended),
            (items, numbers.items),
        ):
            for labels, count in counts.items():
                family.add_metric(list(labels), count)
            yield family
        yield GaugeMetricFamily(
            "holdfast_batch_items_per_second",
            "Items of batch operations in the last seconds, all operations together",
            value=numbers.per_second,
        )


class HttpMetrics:
    """What is counted of the requests that were refused before anything was done for them."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}
        self.connections: Callable[[], int] = lambda: 0

    def refuse(self, reason: str) -> None:
        """A request or a connection was refused."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def collect(self) -> Iterable[Metric]:
        refused = CounterMetricFamily(
            "holdfast_http_refused", "Requests and connections that were refused at the door",
            labels=["reason"],
        )  # fmt: skip
        for reason, count in self._refused.items():
            refused.add_metric([reason], count)
        yield refused
        yield GaugeMetricFamily(
            "holdfast_http_connections", "Connections of clients", value=self.connections()
        )


class StorageMetrics:
    """What is counted and measured of the files of a node."""

    def __init__(self) -> None:
        self.snapshots_taken = 0
        self.snapshots_failed = 0
        self.uploads = 0
        self.uploads_failed = 0
        self.rebuilds = 0
        self.scrubs = 0
        self.damaged_files = 0
        self._damage = {"state": 0, "snapshot": 0, "log": 0}

    def damage_found(self, what: str) -> None:
        """Stored bytes are not as they were written."""
        self._damage[what] += 1

    def collect(self) -> Iterable[Metric]:
        for name, text, value in (
            ("holdfast_snapshots", "Snapshots taken and verified", self.snapshots_taken),
            ("holdfast_snapshots_failed", "Snapshots not taken", self.snapshots_failed),
            ("holdfast_snapshots_stored", "Snapshots in the snapshot store", self.uploads),
            ("holdfast_snapshots_not_stored", "Attempts that failed", self.uploads_failed),
            ("holdfast_state_rebuilds", "Damaged states that were rebuilt", self.rebuilds),
            ("holdfast_scrubs", "Times that everything at rest was read", self.scrubs),
        ):
            yield CounterMetricFamily(name, text, value=value)
        found = CounterMetricFamily(
            "holdfast_damage_found", "Stored bytes found damaged", labels=["what"]
        )
        for what, count in self._damage.items():
            found.add_metric([what], count)
        yield found
        yield GaugeMetricFamily(
            "holdfast_damaged_files", "Files that are damaged now", value=self.damaged_files
        )


class PipelineLag(NamedTuple):
    """How far the tables are behind the log."""

    records: dict[int, int]  # by partition
    seconds: float


class ClockNumbers(NamedTuple):
    """How the machine's clock and the time of the node go together."""

    jumps: int  # how often the machine's clock was set
    ahead_seconds: float  # how far it is ahead of the node's time


class Metrics:
    """The numbers of one node, by partition where that says more."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.distribution = DistributionMetrics()
        self.batch = BatchMetrics()
        self.storage = StorageMetrics()
        self.http = HttpMetrics()
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
        yield from self.distribution.collect()
        yield from self.batch.collect()
        yield from self.storage.collect()
        yield from self.http.collect()
        yield from self._pipeline()
        clock = self.clock()
        yield CounterMetricFamily(
            "holdfast_clock_jumps", "How often the machine's clock was set", value=clock.jumps
        )
        yield GaugeMetricFamily(
            "holdfast_clock_ahead_seconds",
            "How far the machine's clock is ahead of the time of the node",
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
            "How long ago the last record was written that is in the tables; 0 if none is missing",
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


# What is not added up over the members of a node: the worst of them counts.
_WORST = frozenset({"holdfast_clock_ahead_seconds", "holdfast_pipeline_lag_seconds"})


class _Merged:
    """Several expositions as one."""

    def __init__(self, expositions: Iterable[bytes]) -> None:
        self._metrics: dict[str, Metric] = {}
        self._values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for exposition in expositions:
            for family in text_string_to_metric_families(exposition.decode()):
                self._add(family)

    def _add(self, family: Metric) -> None:
        self._metrics.setdefault(
            family.name, Metric(family.name, family.documentation, family.type)
        )
        values = self._values.setdefault(family.name, {})
        for sample in family.samples:
            place = sample.name, tuple(sorted(sample.labels.items()))
            if place not in values:
                values[place] = sample.value
            elif family.name in _WORST:
                values[place] = max(values[place], sample.value)
            else:
                values[place] += sample.value

    def collect(self) -> Iterable[Metric]:
        for name, metric in self._metrics.items():
            for (sample, labels), value in self._values[name].items():
                metric.add_sample(sample, dict(labels), value)
            yield metric


def merged(expositions: Iterable[bytes]) -> bytes:
    """The numbers of several members as those of one node."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged(expositions))
    return generate_latest(registry)
