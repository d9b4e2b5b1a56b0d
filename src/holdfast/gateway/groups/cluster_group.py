"""The group of a cluster's own members, beside those of users' programs."""

from typing import Protocol

from holdfast.errors import InvalidState
from holdfast.gateway.groups.home import GroupsPort, SyncEntries
from holdfast.gateway.groups.near import page_of, view_of
from holdfast.gateway.groups.shapes import (
    GroupPartitionPage,
    GroupPartitionQuery,
    Heartbeat,
    HeartbeatView,
    NewSession,
    PartitionGroupView,
    PartitionMove,
    SessionView,
    SyncQuery,
)
from holdfast.groups.messages import Ask, AskKind
from holdfast.groups.observing import GroupObserver


class ClusterGroup(Protocol):
    """The group that shares the partitions of the engine among members."""

    @property
    def name(self) -> str: ...

    def observer(self) -> GroupObserver:
        """The group as this member has read its log."""
        ...

    async def ask(self, ask: Ask) -> None:
        """Asks the owner of a partition for something."""
        ...


class GroupsOfCluster:
    """Keeps the port `GroupsPort`: one group more than the home has, which members alone join."""

    def __init__(self, own: ClusterGroup, rest: GroupsPort) -> None:
        self._own = own
        self._rest = rest
        self.needs = rest.needs

    # --- members ------------------------------------------------------------------------------

    async def join(self, group: str, session: NewSession) -> SessionView:
        return await self._programs(group).join(group, session)

    async def heartbeat(self, group: str, session_id: str, beat: Heartbeat) -> HeartbeatView:
        return await self._programs(group).heartbeat(group, session_id, beat)

    async def leave(self, group: str, session_id: str) -> None:
        await self._programs(group).leave(group, session_id)

    async def append(self, group: str, message: bytes) -> None:
        await self._programs(group).append(group, message)

    async def read(self, group: str, query: SyncQuery) -> SyncEntries:
        return await self._programs(group).read(group, query)

    def _programs(self, group: str) -> GroupsPort:
        if group == self._own.name:
            raise InvalidState(
                f"Group {group!r} is that of the cluster's members, which no program can join;"
                " choose another name",
                group=group,
            )
        return self._rest

    # --- operators ----------------------------------------------------------------------------

    async def groups(self) -> list[PartitionGroupView]:
        return [view_of(self._own.name, self._own.observer()), *await self._rest.groups()]

    async def group(self, group: str) -> PartitionGroupView:
        if group != self._own.name:
            return await self._rest.group(group)
        return view_of(group, self._own.observer())

    async def partitions(self, group: str, query: GroupPartitionQuery) -> GroupPartitionPage:
        if group != self._own.name:
            return await self._rest.partitions(group, query)
        return page_of(self._own.observer(), query)

    async def move(self, group: str, move: PartitionMove) -> None:
        if group != self._own.name:
            return await self._rest.move(group, move)
        await self._own.ask(Ask(AskKind.MOVE, move.token, move.to))

    async def park(self, group: str, token: str) -> None:
        if group != self._own.name:
            return await self._rest.park(group, token)
        await self._own.ask(Ask(AskKind.PARK, token))

    async def resume(self, group: str, token: str) -> None:
        if group != self._own.name:
            return await self._rest.resume(group, token)
        await self._own.ask(Ask(AskKind.RESUME, token))
