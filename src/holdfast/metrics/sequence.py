"""What is counted and measured of a member's part in the order of a cluster."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from holdfast.limits import TICK_LATENESS_BUCKETS


class OrderNumbers(Protocol):
    """What the member's publisher counts."""

    written: int
    beaten: int
    unknown: int
    away: int
    late: int
    jumps: int
    lateness: list[int]
    lateness_seconds: float

    @property
    def cut_bytes(self) -> int: ...


class OrderMetrics:
    """Hands out what the member's publisher counts, once there is one."""

    def __init__(self) -> None:
        self.numbers: OrderNumbers | None = None

    def collect(self) -> Iterable[Metric]:
        if (numbers := self.numbers) is None:
            return
        tries = CounterMetricFamily(
            "holdfast_cut_attempts", "Attempts of this member to publish a cut", labels=["outcome"]
        )
        tries.add_metric(["written"], numbers.written)
        tries.add_metric(["beaten"], numbers.beaten)
        tries.add_metric(["unknown"], numbers.unknown)
        yield tries
        yield CounterMetricFamily(
            "holdfast_cuts_late",
            "Cuts published more than a tick late",
            value=numbers.late,
        )
        yield CounterMetricFamily(
            "holdfast_cuts_missed", "Times that cuts were missed for ever", value=numbers.jumps
        )
        yield CounterMetricFamily(
            "holdfast_cut_store_failures", "Calls that etcd did not answer", value=numbers.away
        )
        yield GaugeMetricFamily(
            "holdfast_cut_bytes", "Size of the last cut of this member", value=numbers.cut_bytes
        )
        yield HistogramMetricFamily(
            "holdfast_tick_lateness_seconds", "Delay of a cut after its due time",
            buckets=_buckets(numbers.lateness), sum_value=numbers.lateness_seconds,
        )  # fmt: skip


def _buckets(counts: Sequence[int]) -> list[tuple[str, float]]:
    names = [*map(str, TICK_LATENESS_BUCKETS), "+Inf"]
    return list(zip(names, accumulate(counts), strict=True))
