"""What is counted and measured of partitions, distribution and batch operations."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


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
        "Of these, the number in flight; the others are queued",
        "target",
    ),
)


class TransactionGauges(NamedTuple):
    """How much is undecided: read from the state, so a restart changes nothing."""

    open: dict[int, int]  # by the partition that decides them
    prepared: dict[int, int]  # by the partition that has reserved something
    oldest_seconds: float  # since the oldest of them began


class TransactionMetrics:
    """What is counted and measured of transactions."""

    def __init__(self) -> None:
        self.decided: dict[str, int] = {"COMMITTED": 0, "ABORTED": 0}
        self.gauges: Callable[[], TransactionGauges] = lambda: TransactionGauges({}, {}, 0.0)

    def collect(self) -> Iterable[Metric]:
        decided = CounterMetricFamily(
            "holdfast_transactions", "Transactions that were decided", labels=["outcome"]
        )
        for outcome, count in self.decided.items():
            decided.add_metric([outcome], count)
        yield decided
        gauges = self.gauges()
        for attribute, text in _UNDECIDED:
            name = f"holdfast_transactions_{attribute}"
            gauge = GaugeMetricFamily(name, text, labels=["partition"])
            for partition, value in getattr(gauges, attribute).items():
                gauge.add_metric([str(partition)], value)
            yield gauge
        yield GaugeMetricFamily(
            "holdfast_transactions_oldest_seconds",
            "Age of the oldest undecided transaction",
            value=gauges.oldest_seconds,
        )


_UNDECIDED = (
    ("open", "Transactions that the partition has begun and not decided"),
    ("prepared", "Transactions with reservations on the partition"),
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
            "Rate of items over the last seconds, for all batch operations",
            value=numbers.per_second,
        )
