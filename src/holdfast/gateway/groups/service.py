"""What can be asked about groups: who may ask, and is what they send in order?"""

import msgspec

from holdfast.engine.identity.queries import FindAllowed
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Required
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, asker_now
from holdfast.gateway.groups.api import GroupApi
from holdfast.gateway.groups.home import GroupsPort
from holdfast.gateway.groups.shapes import (
    GroupPartitionPage,
    GroupPartitionQuery,
    Heartbeat,
    HeartbeatView,
    NewSession,
    PartitionGroupView,
    PartitionMove,
    PartitionToken,
    SessionView,
    SyncQuery,
)
from holdfast.groups.messages import decode
from holdfast.groups.names import check_card, check_group, check_member, check_token
from holdfast.limits import (
    GROUP_MESSAGE_BYTES_MAX,
    GROUP_SESSION_MS_MAX,
    GROUP_SESSION_MS_MIN,
    PAGE_ITEMS_MAX,
    READ_BYTES_MAX,
    WAIT_MS_MAX,
    WHOLE_MAX,
)

_encode = msgspec.msgpack.Encoder().encode
_WORK, _READ, _UPDATE = Permission.WORK, Permission.READ, Permission.UPDATE


class GroupGateway(GroupApi):
    """Groups, for callers that may use them."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._home: GroupsPort | None = None

    def serve(self, home: GroupsPort) -> None:
        """From now on it is asked of this."""
        self._home = home

    @property
    def home(self) -> GroupsPort:
        if self._home is None:
            raise Unavailable("This node does not keep groups", lasting=1)
        return self._home

    # --- members --------------------------------------------------------------------------

    async def join(self, group: str, session: NewSession) -> SessionView:
        check_member(session.member)
        check_card(session.card)
        checks.within(session.generation, 0, WHOLE_MAX, "generation")
        checks.within(session.session_ms, GROUP_SESSION_MS_MIN, GROUP_SESSION_MS_MAX, "sessionMs")
        await self._check(group, _WORK)
        return await self.home.join(group, session)

    async def heartbeat(self, group: str, session_id: str, beat: Heartbeat) -> HeartbeatView:
        checks.name(session_id, "session")
        checks.within(beat.generation, 0, WHOLE_MAX, "generation")
        checks.within(beat.wait_ms, 0, WAIT_MS_MAX, "waitMs")
        await self._check(group, _WORK)
        return await self.home.heartbeat(group, session_id, beat)

    async def leave(self, group: str, session_id: str) -> None:
        checks.name(session_id, "session")
        await self._check(group, _WORK)
        await self.home.leave(group, session_id)

    async def append(self, group: str, message: bytes) -> None:
        if not isinstance(message, bytes):
            raise InvalidArgument(f"Expected bytes for a message, but found {message!r:.50}")
        if not 0 < len(message) <= GROUP_MESSAGE_BYTES_MAX:
            raise InvalidArgument(
                f"Expected a message of 1 to {GROUP_MESSAGE_BYTES_MAX} bytes, but found one of"
                f" {len(message)}"
            )
        try:
            decode(message)
        except msgspec.DecodeError as error:
            raise InvalidArgument(
                f"Expected a message of a group of this version, but {error}"
            ) from error
        await self._check(group, _WORK)
        await self.home.append(group, message)

    async def read(self, group: str, query: SyncQuery) -> bytes:
        checks.within(query.offset, -1, WHOLE_MAX, "offset")
        checks.within(query.bytes_max, 1, READ_BYTES_MAX, "bytesMax")
        checks.within(query.wait_ms, 0, WAIT_MS_MAX, "waitMs")
        await self._check(group, _WORK)
        return _encode(await self.home.read(group, query))

    # --- operators ------------------------------------------------------------------------

    async def groups(self) -> list[PartitionGroupView]:
        allowed = await self._allowed()
        found = await self.home.groups()
        return [each for each in found if allowed is None or each.group in allowed]

    async def group(self, group: str) -> PartitionGroupView:
        await self._check(group, _READ)
        return await self.home.group(group)

    async def partitions(self, group: str, query: GroupPartitionQuery) -> GroupPartitionPage:
        checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        for given, what in ((query.member, "member"), (query.after, "after")):
            if given is not None:
                checks.name(given, what)
        await self._check(group, _READ)
        return await self.home.partitions(group, query)

    async def move(self, group: str, move: PartitionMove) -> None:
        check_token(move.token)
        checks.name(move.to, "member")
        await self._check(group, _UPDATE)
        await self.home.move(group, move)

    async def park(self, group: str, partition: PartitionToken) -> None:
        check_token(partition.token)
        await self._check(group, _UPDATE)
        await self.home.park(group, partition.token)

    async def resume(self, group: str, partition: PartitionToken) -> None:
        check_token(partition.token)
        await self._check(group, _UPDATE)
        await self.home.resume(group, partition.token)

    # --- inside ---------------------------------------------------------------------------

    async def _check(self, group: str, permission: Permission) -> None:
        """Forbidden, unless the caller has the permission for the group."""
        check_group(group)
        required = Required(ResourceType.PARTITION_GROUP, (permission,), (group,))
        await self._asked.check(required)

    async def _allowed(self) -> frozenset[str] | None:
        """The groups that the caller may see; None: all of them."""
        if asker_now() is None:
            return None
        rights = ((ResourceType.PARTITION_GROUP, _READ),)
        [found] = await self._asked.ask_any(FindAllowed(rights))
        return None if found is None else frozenset(found)
