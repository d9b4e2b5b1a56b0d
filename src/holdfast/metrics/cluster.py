"""What is counted and measured of a member of a cluster."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class MemberNumbers(NamedTuple):
    """How a member of a cluster is."""

    members: int  # that are registered
    members_heard: int  # with this one
    take_overs: int
    take_over_seconds: float  # in all
    moves: int
    owned: int  # partitions that are open here
    under_replicated: int  # of those
    no_owner: int  # partitions without an owner that is heard
    replica_lags: Mapping[str, int]  # entries that members have not reported, of what is owned here
    standby_lag: int  # records that standbys here have not applied
    waiting_commands: int  # for partitions on the move


class ClusterMetrics:
    """The numbers of a member; none where there is no cluster."""

    def __init__(self) -> None:
        self.numbers: Callable[[], MemberNumbers] | None = None

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects."""
        if self.numbers is None:
            return
        numbers = self.numbers()
        for name, text, value in (
            ("members", "Members that are registered", numbers.members),
            ("members_heard", "Connected members, including this one", numbers.members_heard),
            ("owned_partitions", "Partitions that are open here", numbers.owned),
            (
                "under_replicated_ranges",
                "Partitions owned here with fewer replicas than configured",
                numbers.under_replicated,
            ),
            ("partitions_without_owner", "Partitions without a connected owner", numbers.no_owner),
            (
                "standby_lag_records",
                "Records that standbys here have not applied yet",
                numbers.standby_lag,
            ),
            (
                "waiting_commands",
                "Commands that wait for the next owner of their partition",
                numbers.waiting_commands,
            ),
        ):
            yield GaugeMetricFamily(f"holdfast_cluster_{name}", text, value=value)
        for name, text, value in (
            ("take_overs", "Partitions taken over from lost owners", numbers.take_overs),
            (
                "take_over_seconds",
                "Total time of take-overs until the partition was open",
                numbers.take_over_seconds,
            ),
            ("moves", "Partitions handed to other members", numbers.moves),
        ):
            yield CounterMetricFamily(f"holdfast_cluster_{name}", text, value=value)
        lags = GaugeMetricFamily(
            "holdfast_cluster_replica_lag_entries",
            "Entries of partitions owned here that a member has not reported yet",
            labels=["member"],
        )
        for member, lag in numbers.replica_lags.items():
            lags.add_metric([member], lag)
        yield lags
