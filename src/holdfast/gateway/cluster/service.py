"""What is asked of the cluster goes to the member that this node is."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.errors import InvalidArgument, InvalidState
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.cluster.api import ClusterApi
from holdfast.gateway.cluster.shapes import ClusterRepair, ClusterStatus, CutMoment, Cuts, OrderPage
from holdfast.limits import CUTS_LISTED_MAX, ORDER_SPANS_MAX, TIMESTAMP_MS_MAX, WHOLE_MAX


class ClusterHome(Protocol):
    """The member of a cluster that a node is."""

    async def status(self) -> ClusterStatus: ...

    async def cuts(self, limit: int) -> Cuts: ...

    async def positions(self, cut: int | None, time_ms: int | None) -> CutMoment: ...

    async def order(self, cut: int, limit: int) -> OrderPage: ...

    async def drain(self, member: str, is_draining: bool) -> None: ...

    async def remove(self, member: str, force: bool) -> None: ...

    async def move(self, partition: int, member: str) -> None: ...

    async def repair(self, confirm: bool, without: Sequence[str]) -> ClusterRepair: ...


class ClusterService(ClusterApi):
    """What can be asked about the cluster."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.home: ClusterHome | None = None

    def _cluster(self) -> ClusterHome:
        if self.home is None:
            raise InvalidState(
                "This is a single node, not a member of a cluster; start members with"
                " holdfast start FOLDER --cluster etcd://HOST:PORT"
            )
        return self.home

    async def status(self) -> ClusterStatus:
        return await self._cluster().status()

    async def cuts(self, limit: int = 20) -> Cuts:
        checks.within(limit, 1, CUTS_LISTED_MAX, "limit")
        return await self._cluster().cuts(limit)

    async def positions(self, cut: int | None = None, time_ms: int | None = None) -> CutMoment:
        if cut is not None:
            checks.within(cut, 0, WHOLE_MAX, "cut")
        if time_ms is not None:
            checks.within(time_ms, 0, TIMESTAMP_MS_MAX, "timeMs")
        return await self._cluster().positions(cut, time_ms)

    async def order(self, cut: int = 0, limit: int = ORDER_SPANS_MAX) -> OrderPage:
        checks.within(cut, 0, WHOLE_MAX, "cut")
        checks.within(limit, 1, ORDER_SPANS_MAX, "limit")
        return await self._cluster().order(cut, limit)

    async def drain(self, member: str, is_draining: bool = True) -> None:
        await self._cluster().drain(member, is_draining)

    async def remove(self, member: str, force: bool = False) -> None:
        await self._cluster().remove(member, force)

    async def move(self, partition: str, member: str) -> None:
        if not partition.isascii() or not partition.isdigit():
            raise InvalidArgument(f"Expected the number of a partition, but found {partition!r}")
        checks.within(int(partition), 1, self._asked.count, "partition")
        await self._cluster().move(int(partition), member)

    async def repair(self, confirm: bool = False, without: Sequence[str] = ()) -> ClusterRepair:
        return await self._cluster().repair(confirm, without)
