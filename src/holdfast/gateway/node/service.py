"""What the node says about itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from holdfast.config import Config
from holdfast.config.showing import running_settings
from holdfast.engine.progress import FindProgress
from holdfast.errors import InvalidState, Moved, Unavailable, Unknown
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.cluster.service import ClusterHome
from holdfast.gateway.cluster.shapes import ClusterStatus
from holdfast.gateway.node.api import NodeApi
from holdfast.gateway.node.shapes import (
    BackupView,
    Health,
    MemberView,
    NodeSettings,
    PartitionView,
    SettingView,
    Topology,
)
from holdfast.metrics import Metrics
from holdfast.partitions import Placement
from holdfast.version import VERSION

UP = Health("UP")


class AllMembers(Protocol):
    """What is asked of all members of a node together."""

    async def health(self) -> Health: ...

    async def metrics(self) -> bytes: ...


class BackupHome(Protocol):
    """Who makes backups of the node."""

    async def start(self, target: str) -> BackupView: ...

    async def status(self) -> BackupView: ...


class NoBackups:
    """A node that is nowhere on a disk."""

    async def start(self, target: str) -> BackupView:
        del target  # it may have credentials
        raise InvalidState("Expected a node with a folder to back up, but this one has none")

    async def status(self) -> BackupView:
        return BackupView("NONE")


class NodeService(NodeApi):
    """What can be asked about the node."""

    def __init__(
        self,
        asked: Asked,
        config: Config,
        metrics: Metrics,
        count: Callable[[], Awaitable[None]],
    ) -> None:
        self._asked = asked
        self._config = config
        self._metrics = metrics
        self._count = count  # brings numbers up to date that are only counted when asked for
        self.health_now: Callable[[], Health] = lambda: UP
        self.members: AllMembers | None = None  # of a node that has several
        self.cluster: ClusterHome | None = None  # that the node is a member of
        self.backups: BackupHome = NoBackups()
        self.settings_now = running_settings(config)

    async def topology(self) -> Topology:
        views = await asyncio.gather(*(self._partition(each) for each in self._asked.placement()))
        found = Topology(VERSION, views, self._config.host, self._config.port)
        if self.cluster is None:
            return found
        status = await self.cluster.status()
        return msgspec.structs.replace(
            found, members=_members(status), cluster_id=status.cluster_id,
            replication_factor=status.replication_factor,
        )  # fmt: skip

    async def _partition(self, placement: Placement) -> PartitionView:
        partition, member = placement.partition, placement.member
        try:
            found = await self._asked.ask(partition, FindProgress())
        except (Unavailable, Moved, Unknown):
            return PartitionView(partition, 0, 0, member, is_reached=False)
        return PartitionView(partition, found.next_position, found.processed_position, member)

    async def health(self) -> Health:
        return self.health_now() if self.members is None else await self.members.health()

    async def metrics(self) -> bytes:
        return await (self.own_metrics() if self.members is None else self.members.metrics())

    async def settings(self) -> NodeSettings:
        return NodeSettings(
            [
                SettingView(each.name, _plain(each.value), each.source, each.place)
                for each in self.settings_now
            ]
        )

    async def back_up(self, target: str) -> BackupView:
        return await self.backups.start(target)

    async def backup(self) -> BackupView:
        return await self.backups.status()

    async def own_metrics(self) -> bytes:
        """The numbers of this member alone."""
        await self._count()
        await self._metrics.refresh()
        return self._metrics.exposition()


def _plain(value: object) -> str | int | bool | None:
    return value if isinstance(value, str | int | bool | None) else str(value)


def _members(status: ClusterStatus) -> list[MemberView]:
    keeps: dict[str, list[int]] = {}
    for each in status.partitions:
        for replica in each.replicas:
            if replica.member != each.owner:
                keeps.setdefault(replica.member, []).append(each.partition_id)
    return [
        MemberView(
            each.member, each.url, each.version, each.owned_partitions, keeps.get(each.member, []),
            each.state != "AWAY",
        )
        for each in status.members
    ]  # fmt: skip


def with_problems(health: Health, problems: list[str]) -> Health:
    """How a node is that works, but among others of which some do not."""
    if not problems:
        return health
    status = "DEGRADED" if health.status in ("UP", "CHECKING") else health.status
    return msgspec.structs.replace(health, status=status, warnings=[*health.warnings, *problems])
