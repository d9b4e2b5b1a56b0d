"""What is counted and measured of groups that share partitions."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class GroupNumbers(NamedTuple):
    """What the home of a group knows of it."""

    group: str
    members: int
    owned: int  # partitions that a member has
    running: int
    shared: int  # partitions that are offered and not picked yet
    parked: int
    epoch: int
    generation: int
    answers: int  # members that have answered the rebalance under way; 0 without one
    rebalances: int  # since the home started
    alarms: int  # broken invariants that were seen since the home started
    watermark_lag: int  # between the highest and the lowest watermark of live partitions


_GAUGES = {
    "members": "Members of the current epoch",
    "owned": "Partitions with an owner",
    "running": "Partitions that run",
    "shared": "Partitions that are offered to a member and not picked yet",
    "parked": "Partitions that wait for a retry or for an operator",
    "epoch": "The current epoch",
    "generation": "The newest generation of the membership",
    "answers": "Members that have answered the current rebalance",
    "watermark_lag": "Difference between the highest and the lowest watermark of live partitions",
}
_COUNTERS = {
    "rebalances": "Rebalances since the home of the group started",
    "alarms": "Violated invariants since the home of the group started",
}


class GroupMetrics:
    """The numbers of all groups whose home is here; none where there are none."""

    def __init__(self) -> None:
        self.numbers: Callable[[], Sequence[GroupNumbers]] = lambda: ()

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects."""
        numbers = self.numbers()
        if not numbers:
            return
        for field, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"holdfast_group_{field}", text, labels=["group"])
            for each in numbers:
                gauge.add_metric([each.group], getattr(each, field))
            yield gauge
        for field, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"holdfast_group_{field}", text, labels=["group"])
            for each in numbers:
                counter.add_metric([each.group], getattr(each, field))
            yield counter
