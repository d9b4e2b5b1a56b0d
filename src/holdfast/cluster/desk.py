"""What is asked about the cluster through a member's API, and how it answers."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from holdfast.cluster.errands import MemberReport, Messenger
from holdfast.cluster.member_cuts import MemberCuts
from holdfast.cluster.placing import MemberSight, Sight, is_missing_quorum, is_missing_replicas
from holdfast.cluster.repairing import repair
from holdfast.cluster.roster import Roster
from holdfast.errors import HoldfastError, InvalidState, NotFound, Unavailable
from holdfast.gateway.cluster.shapes import (
    ClusterMemberView,
    ClusterPartitionView,
    ClusterRepair,
    ClusterStatus,
    CutMoment,
    Cuts,
    CutView,
    EtcdState,
    LogPosition,
    MemberState,
    OrderedSpan,
    OrderPage,
    ReplicaView,
)
from holdfast.limits import COLLEAGUE_MS_MAX
from holdfast.member_names import check_member_name
from holdfast.sequence.api import Chain, ClusterSettings, Coordination, Range
from holdfast.sequence.keeping import CutKeeper
from holdfast.sequence.order import first_id
from holdfast.sequence.quorum import quorum_of


class ChainsKnown(Protocol):
    """What a member knows of who owns what."""

    def chain(self, partition: int) -> Chain: ...


class MemberParts(Protocol):
    """The parts of a member that answers are made of."""

    name: str
    settings: ClusterSettings
    coordination: Coordination
    roster: Roster
    messenger: Messenger
    cuts: CutKeeper

    @property
    def journal(self) -> ChainsKnown: ...

    def members(self) -> dict[str, MemberSight]: ...


class ClusterDesk:
    """Keeps the port `ClusterHome` of the gateway."""

    def __init__(self, member: MemberParts) -> None:
        self._member = member

    # --- how it is ----------------------------------------------------------------------------

    async def status(self) -> ClusterStatus:
        member = self._member
        sights = member.members()
        reports = await self._reports(sights)
        partitions = [
            self._partition(each, sights, reports)
            for each in range(1, member.settings.partitions + 1)
        ]
        members = [self._view(name, sight, reports.get(name)) for name, sight in sights.items()]
        own = reports.get(member.name)
        return ClusterStatus(
            member.settings.id, member.name, self._etcd(), 0 if own is None else own.cut,
            sorted(members, key=lambda each: each.member), partitions, member.settings.replicas,
            _problems(members, partitions),
        )  # fmt: skip

    async def _reports(self, sights: Mapping[str, MemberSight]) -> dict[str, MemberReport]:
        """What members that are heard say of themselves; one that does not answer is left out."""
        there = [name for name, sight in sights.items() if sight.is_there]
        answers = await asyncio.gather(*map(self._report, there))
        return {
            name: answer for name, answer in zip(there, answers, strict=True) if answer is not None
        }

    async def _report(self, member: str) -> MemberReport | None:
        try:
            async with asyncio.timeout(COLLEAGUE_MS_MAX / 1_000):
                return await self._member.messenger.report(member)
        except (TimeoutError, HoldfastError):
            return None

    def _view(
        self, name: str, sight: MemberSight, report: MemberReport | None
    ) -> ClusterMemberView:
        live = self._member.roster.live.get(name)
        state: MemberState = "UP" if sight.is_there else "AWAY"
        if sight.is_there and sight.is_draining:
            state = "DRAINING"
        owned = [] if report is None else report.owned
        problems = [] if report is None else report.problems
        if live is None:
            return ClusterMemberView(name, state, owned, problems=problems)
        return ClusterMemberView(name, state, owned, live.address, live.url, live.version, problems)

    def _partition(
        self,
        partition: int,
        sights: Mapping[str, MemberSight],
        reports: Mapping[str, MemberReport],
    ) -> ClusterPartitionView:
        last = self._member.journal.chain(partition).last
        if last is None:
            return ClusterPartitionView(partition, "NO_OWNER", "", 0, [])
        report = reports.get(last.owner)
        lags = {} if report is None else report.lags.get(partition, {})
        replicas = [
            ReplicaView(
                each.member, _is_used(each.disk, sights.get(each.member)), lags.get(each.member)
            )
            for each in last.replicas
        ]
        owner = sights.get(last.owner)
        settings = self._member.settings
        sight = Sight(self._member.name, sights, settings.replicas, settings.partitions)
        if owner is None or owner.nonce != last.nonce or (report and partition not in report.owned):
            state = "NO_OWNER"
        elif is_missing_quorum(last, sight):
            state = "NO_QUORUM"
        else:
            state = "UNDER_REPLICATED" if is_missing_replicas(last, sight) else "HEALTHY"
        return ClusterPartitionView(partition, state, last.owner, last.epoch, replicas)

    def _etcd(self) -> EtcdState:
        coordination = self._member.coordination
        if coordination.rolled_back:
            return "ROLLED_BACK"
        return "AVAILABLE" if coordination.available else "AWAY"

    async def cuts(self, limit: int) -> Cuts:
        coordination = self._member.coordination
        latest = await coordination.latest()
        if latest is None:
            return Cuts([])
        first = max(latest.number - limit + 1, 1)
        found = await coordination.cuts(first, latest.number)
        return Cuts(
            [
                CutView(
                    each.number, each.writer, _moment(each.time_ms),
                    len(each.grown), sum(each.grown.values()),
                )
                for each in reversed(found)
            ]
        )  # fmt: skip

    async def positions(self, cut: int | None, time_ms: int | None) -> CutMoment:
        found = await self._cuts.positions(cut, time_ms)
        logs = [
            LogPosition(key.topic, key.partition, offset)
            for key, offset in sorted(found.offsets.items())
        ]
        return CutMoment(found.number, _moment(found.time_ms), first_id(found), logs)

    async def order(self, cut: int, limit: int) -> OrderPage:
        spans, following = await self._cuts.order(cut, limit)
        items = [
            OrderedSpan(each.id, each.cut, *each.key, each.offset, each.entries) for each in spans
        ]
        return OrderPage(items, following, self._member.cuts.last)

    @property
    def _cuts(self) -> MemberCuts:
        return MemberCuts(self._member.cuts, self._member.messenger.cuts)

    # --- what is done about it ----------------------------------------------------------------

    async def drain(self, member: str, is_draining: bool) -> None:
        self._check_known(member)
        await self._member.messenger.drain(member, is_draining)

    async def move(self, partition: int, member: str) -> None:
        self._check_known(member)
        last = self._member.journal.chain(partition).last
        if last is None:
            raise Unavailable(f"Partition {partition} has no owner yet; try again")
        if last.owner != member:
            await self._member.messenger.move(last.owner, partition, member)

    async def remove(self, member: str, force: bool) -> None:
        self._check_known(member)
        if not force:
            sights = self._member.members()
            for partition in range(1, self._member.settings.partitions + 1):
                _check_left(partition, self._member.journal.chain(partition).last, member, sights)
        await self._member.coordination.remove(member)
        await self._member.roster.read_registered()

    async def repair(self, confirm: bool, without: Sequence[str]) -> ClusterRepair:
        return await repair(self._member, confirm=confirm, without=without)

    def _check_known(self, member: str) -> None:
        if member not in self._member.roster.registered:
            check_member_name(member)
            known = ", ".join(sorted(self._member.roster.registered))
            raise NotFound(
                f"The cluster has no member {member!r}; there are {known}",
                member=member,
            )


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1_000, UTC)


def _is_used(disk: str, sight: MemberSight | None) -> bool:
    return sight is not None and sight.is_there and sight.disk == disk


def _check_left(
    partition: int, last: Range | None, member: str, sights: Mapping[str, MemberSight]
) -> None:
    """Refuses to take out a disk without which a partition would have no quorum."""
    if last is None or member not in {each.member for each in last.replicas}:
        return
    left = [
        each
        for each in last.replicas
        if each.member != member and _is_used(each.disk, sights.get(each.member))
    ]
    needed = quorum_of(len(last.replicas))
    if len(left) < needed:
        raise InvalidState(
            f"Expected {needed} disks of partition {partition} without member {member!r}, but"
            f" {len(left)} are there; bring another one back first, or --force if they are lost",
            member=member, partition=partition,
        )  # fmt: skip


def _problems(
    members: list[ClusterMemberView], partitions: list[ClusterPartitionView]
) -> list[str]:
    """What somebody should look at, in the order of how bad it is."""
    found: list[str] = []
    for state, text in (
        ("NO_OWNER", "have no owner at the moment"),
        ("NO_QUORUM", "commit nothing: too few of their disks are there"),
        ("UNDER_REPLICATED", "are on fewer disks than they should be"),
    ):
        these = [str(each.partition_id) for each in partitions if each.state == state]
        if these:
            found.append(f"Partitions {', '.join(these)} {text}")
    for each in members:
        if each.state == "AWAY":
            found.append(
                f"Member {each.member} is down; start it, or remove it if it does not come back"
            )
        found += [f"Member {each.member}: {problem}" for problem in each.problems]
    return found
