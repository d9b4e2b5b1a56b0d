"""What a node counts and measures. The only module that imports prometheus_client."""

from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SYNC_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)


class PartitionMetrics(NamedTuple):
    """What is counted and measured of one partition."""

    appended: Counter
    processed: Counter
    rejected: Counter
    bugs: Counter
    in_flight: Gauge
    lag: Gauge

    def step(self, records: int, commands: int, rejections: int, bugs: int, lag: int) -> None:
        """A step became durable."""
        self.appended.inc(records)
        self.processed.inc(commands)
        if rejections:
            self.rejected.inc(rejections)
        if bugs:
            self.bugs.inc(bugs)
        self.lag.set(lag)


class Metrics:
    """The numbers of one node, by partition where that says more."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._appended = self._counter("appended_records", "Records appended to the log")
        self._processed = self._counter("processed_commands", "Commands processed")
        self._rejected = self._counter("rejected_commands", "Commands answered by a rejection")
        self._bugs = self._counter("failed_commands", "Commands that threw: bugs")
        self._in_flight = Gauge(
            "holdfast_commands_in_flight", "Commands waiting for their answer",
            ["partition"], registry=self.registry,
        )  # fmt: skip
        self._lag = Gauge(
            "holdfast_lag_records", "Records on the log that are not processed yet",
            ["partition"], registry=self.registry,
        )  # fmt: skip
        self._synced = Histogram(
            "holdfast_journal_sync_seconds", "Time of one write and fdatasync",
            buckets=_SYNC_SECONDS, registry=self.registry,
        )  # fmt: skip
        self._bytes = Counter(
            "holdfast_journal_bytes", "Bytes appended to the journal", registry=self.registry
        )
        self._overloaded = Counter(
            "holdfast_refused_commands", "Commands refused because too many are in flight",
            registry=self.registry,
        )  # fmt: skip

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"holdfast_{name}", text, ["partition"], registry=self.registry)

    def partition(self, partition: int) -> "PartitionMetrics":
        """The numbers of one partition; looked up once, for a label is slow to find."""
        label = str(partition)
        return PartitionMetrics(
            self._appended.labels(label),
            self._processed.labels(label),
            self._rejected.labels(label),
            self._bugs.labels(label),
            self._in_flight.labels(label),
            self._lag.labels(label),
        )

    def refused(self, commands: int) -> None:
        self._overloaded.inc(commands)

    def on_commit(self, entries: int, size_bytes: int, sync_seconds: float) -> None:
        """The journal wrote and synced; named as the journal's observer expects it."""
        self._synced.observe(sync_seconds)
        self._bytes.inc(size_bytes)

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
