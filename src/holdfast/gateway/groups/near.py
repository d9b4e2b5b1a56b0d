"""The groups are in this process: what is asked goes to the home that has them."""

from collections.abc import Collection

from holdfast.gateway.groups.home import SyncEntries
from holdfast.gateway.groups.shapes import (
    GenerationView,
    GroupMemberView,
    GroupPartitionPage,
    GroupPartitionQuery,
    GroupPartitionView,
    Heartbeat,
    HeartbeatView,
    MemberCard,
    NewSession,
    PartitionGroupView,
    PartitionMove,
    SessionView,
    SyncQuery,
)
from holdfast.groups.api import MemberId
from holdfast.groups.home import GroupsHome
from holdfast.groups.kept import KeptGroup
from holdfast.groups.observing import GroupObserver


class NearGroups:
    """Keeps the port `GroupsPort` over the home of this process."""

    def __init__(self, home: GroupsHome) -> None:
        self._home = home

    async def join(self, group: str, session: NewSession) -> SessionView:
        return SessionView(
            await self._home.join(
                group, session.member, session.card, session.generation, session.session_ms
            )
        )

    async def heartbeat(self, group: str, session_id: str, beat: Heartbeat) -> HeartbeatView:
        heard = await self._home.heartbeat(group, session_id, beat.generation, beat.wait_ms)
        if heard is None:
            return HeartbeatView()
        (number, leader, members), cards = heard
        shown = [MemberCard(each, cards.get(each, b"")) for each in members]
        return HeartbeatView(GenerationView(number, leader, shown))

    async def leave(self, group: str, session_id: str) -> None:
        await self._home.leave_group(group, session_id)

    async def append(self, group: str, message: bytes) -> None:
        await self._home.append(group, message)

    async def read(self, group: str, query: SyncQuery) -> SyncEntries:
        entries, bounds = await self._home.read(group, query.offset, query.bytes_max, query.wait_ms)
        return SyncEntries([(each[0], each[1], each[2]) for each in entries], *bounds)

    async def groups(self) -> list[PartitionGroupView]:
        return [_kept_view(each) for each in await self._home.all()]

    async def group(self, group: str) -> PartitionGroupView:
        return _kept_view(await self._home.group(group))

    async def partitions(self, group: str, query: GroupPartitionQuery) -> GroupPartitionPage:
        return page_of((await self._home.group(group)).observer, query)

    async def move(self, group: str, move: PartitionMove) -> None:
        await self._home.move(group, move.token, move.to)

    async def park(self, group: str, token: str) -> None:
        await self._home.park(group, token)

    async def resume(self, group: str, token: str) -> None:
        await self._home.resume(group, token)

    async def needs(self) -> dict[str, int]:
        return await self._home.needs()


def page_of(observer: GroupObserver, query: GroupPartitionQuery) -> GroupPartitionPage:
    """The partitions of a group that a query is about."""
    found = observer.partitions(query.state, query.member, query.after, query.limit + 1)
    shown = [
        GroupPartitionView(
            each.token, each.state, each.member, each.offset, each.watermark, each.target,
            list(each.parents), each.error, each.attempts, each.pin, each.is_held,
        )
        for each in found[: query.limit]
    ]  # fmt: skip
    return GroupPartitionPage(shown, shown[-1].token if len(found) > query.limit else None)


def _kept_view(kept: KeptGroup) -> PartitionGroupView:
    return view_of(kept.name, kept.observer, kept.hub.members)


def view_of(
    group: str, observer: GroupObserver, there: Collection[MemberId] | None = None
) -> PartitionGroupView:
    """A group as its log says, and which of its members are still there, where that is known."""
    found = observer.summary()
    members = [
        GroupMemberView(
            each.member, each.owned, each.running, each.parked, each.shared,
            each.member == found.leader, there is not None and each.member not in there,
        )
        for each in found.members
    ]  # fmt: skip
    return PartitionGroupView(
        group, found.epoch, found.generation, found.leader, found.is_rebalancing, members,
        found.partitions, found.running, found.shared, found.parked, found.finished,
        found.watermark,
    )  # fmt: skip
