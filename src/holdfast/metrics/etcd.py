"""What is counted and measured of a member's calls to etcd."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)


class EtcdCounters(Protocol):
    """What the client of etcd counts."""

    seconds: float
    buckets: list[int]
    bounds_seconds: Sequence[float]
    failures: int
    unknowns: int
    lapses: int
    watches: int


class EtcdSource(Protocol):
    """Coordination in etcd."""

    @property
    def numbers(self) -> EtcdCounters: ...

    @property
    def available(self) -> bool: ...

    @property
    def rolled_back(self) -> str: ...


class EtcdMetrics:
    """The numbers of the member's coordination, once there is one."""

    def __init__(self) -> None:
        self.source: EtcdSource | None = None

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects."""
        if (source := self.source) is None:
            return
        yield GaugeMetricFamily(
            "holdfast_etcd_available", "Whether etcd answered the last call: 1, or 0",
            value=source.available,
        )  # fmt: skip
        yield GaugeMetricFamily(
            "holdfast_etcd_rolled_back", "Whether etcd was rolled back to an older state: 1, or 0",
            value=bool(source.rolled_back),
        )  # fmt: skip
        numbers = source.numbers
        names = [*map(str, numbers.bounds_seconds), "+Inf"]
        yield HistogramMetricFamily(
            "holdfast_etcd_call_seconds", "Time until etcd answered a call",
            buckets=list(zip(names, accumulate(numbers.buckets), strict=True)),
            sum_value=numbers.seconds,
        )  # fmt: skip
        for name, text, value in (
            ("call_failures", "Calls that etcd refused or did not answer", numbers.failures),
            ("unknown_writes", "Writes with an unknown outcome", numbers.unknowns),
            ("leases_lapsed", "Leases of this member that expired", numbers.lapses),
            ("watches", "Watches started: the first, and one for each that broke", numbers.watches),
        ):
            yield CounterMetricFamily(f"holdfast_etcd_{name}", text, value=value)
