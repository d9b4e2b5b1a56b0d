"""The map of the cluster: what a member says of it, and what it is asked to do."""

from datetime import UTC, datetime
from typing import Any

from holdfast.errors import InvalidState
from holdfast.gateway.cluster.shapes import (
    ClusterMemberView,
    ClusterPartitionView,
    ClusterStatus,
    Cuts,
    CutView,
    ReplicaView,
)

from .conftest import ConsoleSite

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def _status(**more: Any) -> ClusterStatus:
    members = [
        ClusterMemberView("a", "UP", [1], "10.0.0.1:7", "http://a:8080", "1"),
        ClusterMemberView("b", "DRAINING", [2], "10.0.0.2:7", "http://b:8080", "1", ["slow disk"]),
        ClusterMemberView("c", "AWAY", []),
    ]
    on_a = [ReplicaView("a", True, 0), ReplicaView("b", True, 1_234), ReplicaView("c", False)]
    on_b = [ReplicaView("b", True, 0), ReplicaView("c", False)]
    partitions = [
        ClusterPartitionView(1, "UNDER_REPLICATED", "a", 7, on_a),
        ClusterPartitionView(2, "NO_QUORUM", "b", 3, on_b),
    ]
    problems = ["partition 2 has no quorum"]
    return ClusterStatus("c-1", "a", "AVAILABLE", 42, members, partitions, 3, problems, **more)


class FixedCluster:
    """The member of a cluster that is always the same, and keeps what it is asked to do."""

    def __init__(self, status: ClusterStatus) -> None:
        self._status = status
        self.asked: list[tuple[Any, ...]] = []

    async def status(self) -> ClusterStatus:
        return self._status

    async def cuts(self, limit: int) -> Cuts:
        if self._status.journal:
            raise InvalidState("there is no order")
        return Cuts([CutView(42, "a", NOON, 2, 5)][:limit])

    async def drain(self, member: str, is_draining: bool) -> None:
        self.asked.append(("drain", member, is_draining))

    async def move(self, partition: int, member: str) -> None:
        self.asked.append(("move", partition, member))


def _join(site: ConsoleSite, status: ClusterStatus) -> FixedCluster:
    home: Any = FixedCluster(status)
    site.api.join_cluster(home)
    return home


def test_a_single_node_says_that_it_is_one(console: ConsoleSite) -> None:
    page = console.get("/console/cluster")
    assert page.status == 200 and page.has("This is a single node") and page.actions == []


def test_the_map_shows_who_owns_what_and_hands_it_over(console: ConsoleSite) -> None:
    home = _join(console, _status())
    page = console.get("/console/cluster")
    assert page.has("partition 2 has no quorum") and page.has("slow disk")
    assert page.has("1 under replicated a 7 a owner , b 1,234 behind , c away")
    assert page.has("2 no quorum b 3 b owner , c away")
    assert page.has("42 a 2026-01-02 12:00:00 2 5")
    base = "/console/cluster"
    assert page.actions == [
        f"{base}/members/a/drain", f"{base}/members/b/keep", f"{base}/partitions/1/move",
    ]  # fmt: skip
    assert console.post(f"{base}/members/a/drain").has("a gives its partitions away")
    assert console.post(f"{base}/members/b/keep").has("b may have partitions again")
    assert console.post(f"{base}/partitions/1/move", member="b").has("is handed to b")
    assert console.post(f"{base}/partitions/1/move").status == 400
    assert console.post(f"{base}/partitions/9/move", member="b").status == 400
    assert home.asked == [("drain", "a", True), ("drain", "b", False), ("move", 1, "b")]


def test_with_a_broker_any_member_that_is_up_can_have_a_partition(console: ConsoleSite) -> None:
    _join(console, _status(journal="kafka://h1"))
    page = console.get("/console/cluster")
    assert page.has("kafka://h1") and not page.has("Latest cuts") and not page.has("etcd")
    assert "/console/cluster/partitions/2/move" in page.actions
