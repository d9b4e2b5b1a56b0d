"""What can be asked of a node about groups that share partitions."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.groups.shapes import (
    GroupPartitionPage,
    GroupPartitionQuery,
    Heartbeat,
    HeartbeatView,
    NewSession,
    PartitionGroupView,
    PartitionGroupViews,
    PartitionMove,
    PartitionToken,
    SessionView,
    SyncQuery,
)
from holdfast.gateway.operation import BYTES, Namespace, operation

WORK = one(ResourceType.PARTITION_GROUP, Permission.WORK)
READ = one(ResourceType.PARTITION_GROUP, Permission.READ)
UPDATE = one(ResourceType.PARTITION_GROUP, Permission.UPDATE)

_GROUP = "/v2/partition-groups/{group}"
_SESSION = f"{_GROUP}/sessions/{{session_id}}"


class GroupApi(Namespace, Protocol):
    """Groups of programs that share partitions among themselves."""

    # --- members --------------------------------------------------------------------------

    @operation("join_partition_group", "POST", f"{_GROUP}/sessions", WORK)
    async def join(self, group: str, session: NewSession) -> SessionView:
        """Join a group; the first member creates it."""
        ...

    @operation("keep_group_session", "POST", f"{_SESSION}/heartbeat", WORK, waits=True)
    async def heartbeat(self, group: str, session_id: str, beat: Heartbeat) -> HeartbeatView:
        """Keep a session alive, and wait for the next generation."""
        ...

    @operation("leave_partition_group", "DELETE", _SESSION, WORK)
    async def leave(self, group: str, session_id: str) -> None:
        """Leave a group."""

    @operation("append_to_group", "POST", f"{_GROUP}/log", WORK)
    async def append(self, group: str, message: bytes) -> None:
        """Append a message to the sync log of a group. Durable when it returns."""

    @operation("read_group_log", "POST", f"{_GROUP}/log/read", WORK, media_type=BYTES, waits=True)
    async def read(self, group: str, query: SyncQuery) -> bytes:
        """Read the sync log, as MessagePack: [[[offset, timestampMs, message]], earliest, next]."""
        ...

    # --- operators ------------------------------------------------------------------------

    @operation(
        "list_partition_groups", "GET", "/v2/partition-groups", READ, answer=PartitionGroupViews
    )
    async def groups(self) -> list[PartitionGroupView]:
        """List the groups that the caller may see."""
        ...

    @operation("get_partition_group", "GET", _GROUP, READ)
    async def group(self, group: str) -> PartitionGroupView:
        """Show a group with its members."""
        ...

    @operation("search_group_partitions", "POST", f"{_GROUP}/partitions/search", READ)
    async def partitions(self, group: str, query: GroupPartitionQuery) -> GroupPartitionPage:
        """Show partitions of a group: owners and offsets."""
        ...

    @operation("move_group_partition", "POST", f"{_GROUP}/partitions/move", UPDATE)
    async def move(self, group: str, move: PartitionMove) -> None:
        """Move a partition to another member."""

    @operation("park_group_partition", "POST", f"{_GROUP}/partitions/park", UPDATE)
    async def park(self, group: str, partition: PartitionToken) -> None:
        """Park a partition until it is resumed."""

    @operation("resume_group_partition", "POST", f"{_GROUP}/partitions/resume", UPDATE)
    async def resume(self, group: str, partition: PartitionToken) -> None:
        """Resume a parked partition at once."""
