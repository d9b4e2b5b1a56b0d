"""A member over a journal that a broker keeps: everything around its node, put together.

Start: the journal, then the node over it, without a partition; then the links; then the group,
which gives this member its partitions. Stop: it hands everything over while it still serves, then
the other way.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from holdfast.brokered.answering import DRAIN, BrokeredHandler, encode_drain
from holdfast.brokered.cards import BrokeredCard, MemberSaid, encode
from holdfast.brokered.desk import BrokeredDesk
from holdfast.brokered.draining import HandingOver
from holdfast.brokered.feeding import Feeding
from holdfast.brokered.keeping import Keeping, token_of
from holdfast.brokered.numbers import numbers_of, problems_of
from holdfast.brokered.own_group import OwnGroup
from holdfast.brokered.roster import CardRoster
from holdfast.brokered.seen_membership import SeenMembership
from holdfast.cluster.place import ClusterPlace
from holdfast.errors import HoldfastError, NotFound, Unavailable
from holdfast.gateway.groups.cluster_group import GroupsOfCluster
from holdfast.groups.api import Generation, MemberId, Membership, NewPartition, SyncLog
from holdfast.groups.messages import Ask, AskKind, asking
from holdfast.groups.messages import encode as encode_message
from holdfast.groups.running import Group
from holdfast.limits import CLUSTER_DRAIN_MS_MAX, CLUSTER_LOOK_MS
from holdfast.logs import log
from holdfast.node import LocalNode
from holdfast.partitions import Placement
from holdfast.transport import Address, Connection, Handler, Link, Links, Transport
from holdfast.version import VERSION

OpenKnowing = Callable[[MemberId, Callable[[], int]], Membership]
"""A membership of a member; the second tells the highest generation that the sync log names."""


class BrokeredIdentity(msgspec.Struct, frozen=True):
    """What a member is before it has a node."""

    name: str
    cluster: str  # the broker's id and the name of the log there
    journal: str  # its URL, without secrets
    key: bytes  # the public one
    address: Address  # where it listens for other members
    partitions: int
    url: str = ""  # where clients reach it; "": as its server says

    @property
    def group(self) -> str:
        """What operators call the group of members: the name of the log."""
        return self.cluster.rpartition("/")[2]


class BrokeredMember:
    """A running member. Keeps the ports `DrainView` and `Drains`."""

    node: LocalNode
    group: Group

    def __init__(
        self, identity: BrokeredIdentity, transport: Transport, keys: dict[str, bytes], home: Path
    ) -> None:
        """`keys` are those that the transport looks at: they follow the members."""
        self.identity = identity
        self.name = name = identity.name
        self.place = ClusterPlace(name, home, identity.partitions)
        self.links = Links(name, transport, {name: identity.address}, self._answering)
        self.place.over(self.links)
        self.roster = CardRoster(name, self.links, keys)
        self.draining = HandingOver(self, self._say)
        self.alarms: list[str] = []
        self.on_closed: list[Callable[[], None]] = []
        self._url = identity.url
        self._generation = Generation(0, "", ())
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def journal_url(self) -> str | None:
        """Where the log is kept."""
        return self.identity.journal

    # --- putting together ---------------------------------------------------------------------

    async def begin(
        self,
        node: LocalNode,
        sync_log: SyncLog,
        open_membership: OpenKnowing,
        *,
        standbys: bool = True,
    ) -> None:
        """Joins the others with a node that has no partition yet."""
        self.node = node
        self._sync_log = sync_log
        self.keeping = Keeping(node.runner, self._is_orphan)
        self.feeding = Feeding(node.runner.standbys, node.upkeep.restore)
        node.runner.doors.prepare = node.upkeep.restore
        node.runtime.partitions.on_opened.append(self._opened)
        node.runtime.on_stopped.append(self._stopped)
        node.gateway.join_cluster(BrokeredDesk(self))
        node.gateway.watch_health(self.problems)
        node.metrics.cluster.numbers = lambda: numbers_of(self)
        self.place.content = node.answer_call
        self.roster.on_joined.append(self.place.joined)
        self.roster.on_left.append(self.place.left)
        self.roster.on_said.append(self._heard)
        if standbys:
            for partition in range(1, self.identity.partitions + 1):
                node.runner.stand_by(partition)
        await self.links.start()
        card = BrokeredCard(str(self.links.address), self.identity.key.hex(), VERSION)
        self.group = Group(
            self.identity.cluster, self.name, sync_log,
            lambda member: SeenMembership(open_membership(member, self._known), self._seen),
            self.keeping, card=encode(card),
            partitions=[
                NewPartition(token_of(each)) for each in range(1, self.identity.partitions + 1)
            ],
        )  # fmt: skip
        own = OwnGroup(self.identity.group, self.group, self.alarms)
        of_programs = node.metrics.groups.numbers
        node.metrics.groups.numbers = lambda: [own.numbers(), *of_programs()]
        node.gateway.serve_groups(GroupsOfCluster(own, node.groups.port))
        self._say()
        loop = asyncio.get_running_loop()
        self._in_group = loop.create_task(self.group.run(), name="group")
        self._in_group.add_done_callback(self._left_group)
        self._tasks = [loop.create_task(self._look(), name="brokered")]

    async def _look(self) -> None:
        """Says what is new, and tries again what could not be said or done."""
        while True:
            await asyncio.sleep(CLUSTER_LOOK_MS / 1_000)
            self.roster.forget_gone()
            self._say()
            self.node.runner.follow_again()

    def _left_group(self, task: "asyncio.Task[None]") -> None:
        """A group that cannot be joined is no group: the process ends, and says why."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.node.runner.fail(error)

    async def placed(self, seconds: float) -> bool:
        """Waits until all partitions have an owner that is heard, for so long; whether they do."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.without_owner():  # noqa: ASYNC110 - a condition of many parts
                    await asyncio.sleep(CLUSTER_LOOK_MS / 10_000)
        return not self.without_owner()

    def without_owner(self) -> list[int]:
        """The partitions that nobody who is heard has open."""
        return [each.partition for each in self.place.placements.all() if not self._is_kept(each)]

    def _is_kept(self, placement: Placement) -> bool:
        partition = placement.partition
        if placement.member == self.name:
            return self.node.runner.epoch(partition) is not None
        said = self.roster.said.get(placement.member)
        return said is not None and partition in said.epochs

    @property
    def is_first(self) -> bool:
        """Whether this member has the partition that decides about permissions."""
        return self.node.runner.epoch(1) is not None

    # --- what changes -------------------------------------------------------------------------

    async def serves_at(self, url: str) -> None:
        """Clients reach this member there."""
        self._url = self._url or url
        self._say()

    def _say(self) -> None:
        problems = tuple(self.own_problems())
        epochs = dict(self.node.runner.epochs)
        self.roster.say(MemberSaid(epochs, self._url, self.draining.is_on, problems))

    def _opened(self, partition: int) -> None:
        """A partition is open here, perhaps again: the others learn its epoch."""
        epoch = self.node.runner.epoch(partition)
        if epoch is not None:
            self.place.placements.learn(Placement(partition, self.name, epoch))
        self._say()

    def _stopped(self, partition: int) -> None:
        self.keeping.stopped(partition)
        self._say()

    def _heard(self, member: str, said: MemberSaid) -> None:
        """What a member has open is its own, unless a newer epoch is known."""
        for partition, epoch in said.epochs.items():
            known = self.place.placements.of(partition)
            if known.epoch == epoch and known.member not in (member, ""):
                self._alarm(
                    f"Partition {partition} has two owners in epoch {epoch}: {known.member!r} and"
                    f" {member!r}; stop one of them, and report this"
                )
            self.place.placements.learn(Placement(partition, member, epoch))

    def _alarm(self, text: str) -> None:
        if text not in self.alarms:
            self.alarms.append(text)
            log.error("one owner expected", what=text)

    def _seen(self, generation: Generation, cards: Mapping[MemberId, bytes]) -> None:
        """The group has a new generation; who leads it lets moved partitions go where they will."""
        former = set(self.roster.cards)
        self.roster.see(cards)
        self._generation = generation
        if former != set(self.roster.cards) and generation.leader == self.group.member:
            pinned = [each.token for each in self.group.partitions().values() if each.pin]
            if pinned:
                asks = [Ask(AskKind.MOVE, token) for token in pinned]
                self._tasks.append(asyncio.get_running_loop().create_task(self._ask_for(asks)))

    def _known(self) -> int:
        """The highest generation that the sync log names."""
        return 0 if self.group.core is None else self.group.core.state.generation

    def _is_orphan(self, partition: int) -> bool:
        """Whether the last owner that is known of a partition is gone."""
        member = self.place.placements.of(partition).member
        return bool(member) and member != self.name and not self.roster.is_heard(member)

    # --- asked by others and by people --------------------------------------------------------

    async def ask(self, asks: Sequence[Ask]) -> None:
        """Asks the group for something, which the owner of the partition does."""
        await self._sync_log.append(encode_message(asking(self.name, tuple(asks))))

    async def _ask_for(self, asks: Sequence[Ask]) -> None:
        try:
            await self.ask(asks)
        except HoldfastError as error:
            log.warning("the group was not asked", why=error.message)

    async def set_draining(self, is_draining: bool) -> None:
        """Gives all partitions away from now on, or keeps them again."""
        await self.draining.set(is_draining)

    async def drain(self, member: str, is_draining: bool) -> None:
        """Has a member give its partitions away, or keep them again."""
        if member == self.name:
            await self.set_draining(is_draining)
            return
        if member not in self.links:
            raise NotFound(f"The cluster has no member {member!r}", member=member)
        link = self.links[member]
        if not link.is_up:
            raise Unavailable(
                f"Member {member!r} is down; the others take over what it owned",
                member=member,
            )
        await link.call(DRAIN, encode_drain(is_draining))

    def owned(self) -> Sequence[int]:
        return self.node.runner.open_partitions()

    def takers(self) -> Mapping[str, int]:
        return {
            name: len(said.epochs)
            for name, said in self.roster.said.items()
            if name in self.roster.cards and not said.is_draining
        }

    # --- how it is ----------------------------------------------------------------------------

    def waiting_commands(self) -> int:
        room = self.place.routed.room
        return 0 if room is None else room.commands

    def own_problems(self) -> list[str]:
        """What only this member knows."""
        return problems_of(self)

    def problems(self) -> list[str]:
        """What somebody should look at, of this member and of the cluster as it sees it."""
        away = [each for each in self.roster.cards if not self.roster.is_heard(each)]
        return [
            *self.own_problems(),
            *(f"Member {each} is away" for each in away),
            *(f"Partition {each} has no owner that is heard" for each in self.without_owner()),
        ]

    def _answering(self, link: Link, connection: Connection) -> Handler:
        rest = self.place.answering(link, connection)
        return BrokeredHandler(self, self.roster, link.peer, rest)

    # --- the end ------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Hands everything over, while requests are still answered; not for ever."""
        await self.set_draining(True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLUSTER_DRAIN_MS_MAX / 1_000):
                while self.owned() and self.takers():  # noqa: ASYNC110
                    await asyncio.sleep(CLUSTER_LOOK_MS / 5_000)

    async def close(self) -> None:
        """Leaves the others and closes the node."""
        self.draining.stop()
        self.group.stop()
        await asyncio.gather(self._in_group, return_exceptions=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.keeping.close()
        await self.feeding.close()
        self.place.routed.close()
        await self.node.close()
        await self.links.close()
        for callback in self.on_closed:
            callback()
