"""Topology: the members of the node, and their partitions."""

from urllib.parse import urlsplit

from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.node.api import NodeApi
from holdfast.gateway.node.shapes import Topology
from holdfast.gateway.shapes import Shape


class BrokerPartition(Shape, frozen=True):
    """A partition of a broker."""

    partition_id: int
    role: str = "leader"
    health: str = "healthy"
    state: str = "active"


class Broker(Shape, frozen=True):
    """A node of the cluster."""

    node_id: int
    broker_id: str
    host: str
    port: int
    partitions: list[BrokerPartition]
    version: str


class ClusterTopology(Topology, frozen=True, kw_only=True):
    """The members and partitions of the cluster."""

    brokers: list[Broker]
    cluster_size: int = 1
    partitions_count: int
    gateway_version: str
    last_completed_change_id: str = "-1"


@serves(NodeApi.topology)
async def get_topology(api: Api) -> ClusterTopology:
    """Show what the node is."""
    found = await api.node.topology()
    brokers = _members_of_cluster(found) if found.members else _processes(found)
    return ClusterTopology(
        version=found.version, partitions=found.partitions, host=found.host, port=found.port,
        members=found.members, cluster_id=found.cluster_id,
        replication_factor=found.replication_factor, brokers=brokers, cluster_size=len(brokers),
        partitions_count=len(found.partitions), gateway_version=found.version,
    )  # fmt: skip


def _processes(found: Topology) -> list[Broker]:
    by_member: dict[str, list[BrokerPartition]] = {}
    for each in found.partitions:
        health = "healthy" if each.is_reached else "unhealthy"
        row = BrokerPartition(each.partition_id, health=health)
        by_member.setdefault(each.member, []).append(row)
    return [
        Broker(number, str(number), found.host, found.port, rows, found.version)
        for number, rows in enumerate(by_member.values())
    ]


def _members_of_cluster(found: Topology) -> list[Broker]:
    """An owner is what the SDK calls a leader, a standby a follower."""
    reached = {each.partition_id: each.is_reached for each in found.partitions}
    brokers: list[Broker] = []
    for number, member in enumerate(found.members):
        host = urlsplit(member.url)
        rows = [
            *(
                _row(each, "leader", member.is_up and reached.get(each, False))
                for each in member.owns
            ),
            *(_row(each, "follower", member.is_up) for each in member.stands_by),
        ]
        brokers.append(
            Broker(
                number, member.member, host.hostname or "", host.port or 0,
                sorted(rows, key=lambda row: row.partition_id), member.version,
            )
        )  # fmt: skip
    return brokers


def _row(partition: int, role: str, is_healthy: bool) -> BrokerPartition:
    return BrokerPartition(partition, role, "healthy" if is_healthy else "unhealthy")


@endpoint("GET", "/v2/status", Everyone.ANYBODY)
async def get_status(api: Api) -> None:
    """Tell that work can be given to the node."""
    await api.node.topology()


TOPOLOGY_ENDPOINTS: tuple[Endpoint, ...] = (get_topology, get_status)
