"""Where users' groups are: in this process, or in the one of the node's that has partition 1."""

from typing import Protocol

import msgspec

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

PREFIX = "groups."  # of calls between the processes of a node


class SyncEntries(msgspec.Struct, array_like=True, frozen=True):
    """A part of a sync log, and its bounds."""

    entries: list[tuple[int, int, bytes]]  # offset, when it was written, message
    earliest: int
    next: int


class GroupsPort(Protocol):
    """What is asked of the process that has the groups; who may ask was checked before."""

    async def join(self, group: str, session: NewSession) -> SessionView: ...

    async def heartbeat(self, group: str, session_id: str, beat: Heartbeat) -> HeartbeatView: ...

    async def leave(self, group: str, session_id: str) -> None: ...

    async def append(self, group: str, message: bytes) -> None: ...

    async def read(self, group: str, query: SyncQuery) -> SyncEntries: ...

    async def groups(self) -> list[PartitionGroupView]: ...

    async def group(self, group: str) -> PartitionGroupView: ...

    async def partitions(self, group: str, query: GroupPartitionQuery) -> GroupPartitionPage: ...

    async def move(self, group: str, move: PartitionMove) -> None: ...

    async def park(self, group: str, token: str) -> None: ...

    async def resume(self, group: str, token: str) -> None: ...

    async def needs(self) -> dict[str, int]:
        """By topic, the first offset of a group's log that no member of the cluster may drop."""
        ...
