"""What can be asked of the cluster that a node is a member of."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.cluster.shapes import (
    ClusterRepair,
    ClusterStatus,
    CutMoment,
    CutOf,
    CutQuery,
    Cuts,
    Draining,
    Move,
    OrderPage,
    OrderQuery,
    Removal,
    RepairRequest,
)
from holdfast.gateway.operation import Namespace, Resend, operation
from holdfast.limits import ORDER_SPANS_MAX

_READ = one(ResourceType.SYSTEM, Permission.READ)
_UPDATE = one(ResourceType.SYSTEM, Permission.UPDATE)


class ClusterApi(Namespace, Protocol):
    """The cluster: its members, and who owns which partition. InvalidState without a cluster."""

    @operation("get_cluster", "GET", "/v2/cluster", _READ)
    async def status(self) -> ClusterStatus:
        """Show the state of the cluster, as this member sees it."""
        ...

    @operation("list_cuts", "POST", "/v2/cluster/cuts", _READ, body=CutQuery)
    async def cuts(self, limit: int = 20) -> Cuts:
        """List the latest cuts, the newest first."""
        ...

    @operation("get_cut_positions", "POST", "/v2/cluster/cuts/positions", _READ, body=CutOf)
    async def positions(self, cut: int | None = None, time_ms: int | None = None) -> CutMoment:
        """Show where all logs ended as of a cut: a consistent moment of the whole cluster.

        NotFound if it is not published yet, or no longer kept by any member.
        """
        ...

    @operation("list_order", "POST", "/v2/cluster/order", _READ, body=OrderQuery)
    async def order(self, cut: int = 0, limit: int = ORDER_SPANS_MAX) -> OrderPage:
        """List the one order of all entries, by spans of logs, from a cut on."""
        ...

    @operation("drain_member", "POST", "/v2/cluster/members/{member}/drain", _UPDATE, body=Draining)
    async def drain(self, member: str, is_draining: bool = True) -> None:
        """Have a member give all its partitions away, or keep them again.

        Returns at once; the status tells how far it is. A member that restarts does not drain.
        """
        ...

    @operation(
        "remove_member", "POST", "/v2/cluster/members/{member}/remove", _UPDATE,
        body=Removal, resend=Resend.NEVER,
    )  # fmt: skip
    async def remove(self, member: str, force: bool = False) -> None:
        """Take a member out of the cluster for ever: its key counts for nothing any more.

        InvalidState where too few disks of a partition would be left, unless it is forced.
        """
        ...

    @operation(
        "move_partition", "POST", "/v2/cluster/partitions/{partition}/move", _UPDATE, body=Move
    )
    async def move(self, partition: str, member: str) -> None:
        """Hand a partition to another member that keeps its log; it stays until members change."""
        ...

    @operation(
        "repair_cluster", "POST", "/v2/cluster/repair", _UPDATE,
        body=RepairRequest, resend=Resend.NEVER,
    )  # fmt: skip
    async def repair(self, confirm: bool = False, without: Sequence[str] = ()) -> ClusterRepair:
        """Write back what an etcd that was restored from an older copy lacks, from the members.

        Without `confirm` it only tells what would be written. InvalidState if members do not answer
        or contradict one another: then nothing is written.
        """
        ...
