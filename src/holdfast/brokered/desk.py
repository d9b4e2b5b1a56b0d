"""What is asked about a cluster over a broker through a member's API, and how it answers."""

import asyncio
from collections.abc import Sequence
from typing import NoReturn, Protocol

from holdfast.brokered.cards import MemberSaid
from holdfast.brokered.keeping import token_of
from holdfast.brokered.roster import CardRoster
from holdfast.cluster.place import ClusterPlace
from holdfast.errors import InvalidState, NotFound, Unavailable
from holdfast.gateway.cluster.shapes import (
    ClusterMemberView,
    ClusterPartitionView,
    ClusterRepair,
    ClusterStatus,
    CutMoment,
    Cuts,
    MemberState,
    OrderPage,
)
from holdfast.groups.messages import Ask, AskKind
from holdfast.limits import BROKERED_MOVE_MS_MAX, CLUSTER_LOOK_MS


class DeskIdentity(Protocol):
    """What a member is, of which status is made."""

    @property
    def cluster(self) -> str: ...

    @property
    def journal(self) -> str: ...


class DeskParts(Protocol):
    """The parts of a member that answers are made of."""

    name: str
    roster: CardRoster
    place: ClusterPlace

    @property
    def identity(self) -> DeskIdentity: ...

    def without_owner(self) -> list[int]: ...

    async def ask(self, asks: list[Ask]) -> None: ...

    async def drain(self, member: str, is_draining: bool) -> None: ...


class BrokeredDesk:
    """Keeps the port `ClusterHome` of the gateway."""

    def __init__(self, member: DeskParts) -> None:
        self._member = member

    async def status(self) -> ClusterStatus:
        member = self._member
        members = [self._view(name) for name in sorted(self._names())]
        without = set(member.without_owner())
        partitions = [
            ClusterPartitionView(
                each.partition, "NO_OWNER" if each.partition in without else "HEALTHY",
                each.member, each.epoch, [],
            )
            for each in member.place.placements.all()
        ]  # fmt: skip
        return ClusterStatus(
            member.identity.cluster, member.name, "NONE", 0, members, partitions, 0,
            _problems(members, without), member.identity.journal,
        )  # fmt: skip

    def _names(self) -> set[str]:
        return {*self._member.roster.cards, self._member.name}

    def _view(self, name: str) -> ClusterMemberView:
        roster = self._member.roster
        said: MemberSaid | None = roster.own if name == self._member.name else roster.said.get(name)
        card = roster.cards.get(name)
        address, version = ("", "") if card is None else (card.address, card.version)
        if said is None:
            return ClusterMemberView(name, "AWAY", [], address, "", version)
        state: MemberState = "DRAINING" if said.is_draining else "UP"
        return ClusterMemberView(
            name, state, sorted(said.epochs), address, said.url, version, list(said.problems)
        )

    async def cuts(self, limit: int) -> Cuts:
        _no_order()

    async def positions(self, cut: int | None, time_ms: int | None) -> CutMoment:
        _no_order()

    async def order(self, cut: int, limit: int) -> OrderPage:
        _no_order()

    async def drain(self, member: str, is_draining: bool) -> None:
        self._check_known(member)
        await self._member.drain(member, is_draining)

    async def move(self, partition: int, member: str) -> None:
        """Returns when the member has it."""
        self._check_known(member)
        placements = self._member.place.placements
        if placements.of(partition).member == member:
            return
        await self._member.ask([Ask(AskKind.MOVE, token_of(partition), member)])
        try:
            async with asyncio.timeout(BROKERED_MOVE_MS_MAX / 1_000):
                while placements.of(partition).member != member:  # noqa: ASYNC110
                    await asyncio.sleep(CLUSTER_LOOK_MS / 5_000)
        except TimeoutError:
            raise Unavailable(
                f"Partition {partition} is still on its way to member {member!r}; look again with"
                " holdfast cluster status",
                partition=partition, member=member,
            ) from None  # fmt: skip

    async def remove(self, member: str, force: bool) -> None:
        raise InvalidState(
            f"Expected a cluster with etcd to remove member {member!r} from, but members over a"
            " broker are not registered: stop it, and the others take over what it owns",
            member=member,
        )

    async def repair(self, confirm: bool, without: Sequence[str]) -> ClusterRepair:
        raise InvalidState(
            "Expected a cluster with etcd to repair, but the log is kept by a broker; what it lost"
            " is restored there"
        )

    def _check_known(self, member: str) -> None:
        known = sorted({*self._names(), *self._member.roster.said})
        if member not in known:
            raise NotFound(
                f"The cluster has no member {member!r}; there are {', '.join(known)}",
                member=member,
            )


def _no_order() -> NoReturn:
    raise InvalidState(
        "Expected a cluster with etcd, but the log is kept by a broker, which orders the records of"
        " each partition and not those of all: there are no cuts; read the partitions one by one"
    )


def _problems(members: list[ClusterMemberView], without: set[int]) -> list[str]:
    """What somebody should look at, in the order of how bad it is."""
    found: list[str] = []
    if without:
        these = ", ".join(map(str, sorted(without)))
        one, verb = ("Partition", "has") if len(without) == 1 else ("Partitions", "have")
        found.append(f"{one} {these} {verb} no owner at the moment")
    for each in members:
        if each.state == "AWAY":
            found.append(
                f"Member {each.member} is not reached, though it is in the group; look at its"
                " machine and at --listen-members"
            )
        found += [f"Member {each.member}: {problem}" for problem in each.problems]
    return found
