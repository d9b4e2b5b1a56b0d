"""A member of a cluster: everything around its node, put together, started and stopped in order.

Start: etcd, the disk's identity, the key's registration; then the node over its log, without a
partition; then the connections; then its place among the others; at last the conductor, which opens
what is this member's. Stop: it hands everything over while it still serves, then the other way.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.cluster.answering import Carries, MemberHandler
from holdfast.cluster.chores import clearing_of, tending_of
from holdfast.cluster.conductor import Conductor
from holdfast.cluster.cut_log import JournalCutLog, keep_cuts
from holdfast.cluster.desk import ClusterDesk
from holdfast.cluster.errands import ErrandHandler, MemberReport, Messenger
from holdfast.cluster.knowing import KnownChains, knowledge_of
from holdfast.cluster.numbers import (
    cluster_problems,
    numbers_of,
    own_problems,
    without_owner,
)
from holdfast.cluster.peers import Greeting, LinkedPeers
from holdfast.cluster.place import ClusterPlace
from holdfast.cluster.placing import MemberSight, Sight, wanted_set
from holdfast.cluster.roster import Roster
from holdfast.cluster.standings import Standings
from holdfast.cluster.watching import Watching
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import DiskIdentity
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.promises import DiskNotes
from holdfast.journal.local import LocalJournal, RealDisk
from holdfast.limits import (
    CLUSTER_BEHIND_MAX,
    CLUSTER_DRAIN_MS_MAX,
    CLUSTER_LOOK_MS,
)
from holdfast.logs import log
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.sequence.api import (
    Chain,
    ClusterSettings,
    Coordination,
    Cut,
    LiveMember,
    Replica,
)
from holdfast.sequence.keeping import CutKeeper
from holdfast.sequence.knowledge import Knowledge
from holdfast.sequence.publishing import Publisher
from holdfast.sequence.ring import Ring
from holdfast.transport import (
    Address,
    Connection,
    Handler,
    Link,
    Links,
    Transport,
)
from holdfast.version import VERSION


class Membership(msgspec.Struct, frozen=True):
    """What a member is before it has a node."""

    name: str
    nonce: str  # of this start
    settings: ClusterSettings
    disk: DiskIdentity
    address: Address  # where it listens for other members
    url: str = ""  # where clients reach it; "": as its server says


class ClusterMember:
    """A running member. Keeps the ports `View` of the conductor and `Errands` of other members."""

    node: Node
    journal: ClusterJournal
    journal_url: str | None = None  # the members keep the log

    def __init__(
        self,
        membership: Membership,
        coordination: Coordination,
        transport: Transport,
        keys: dict[str, bytes],
        home: Path,
    ) -> None:
        """`keys` are those that the transport looks at: they follow who is registered."""
        self.name = name = membership.name
        self.settings = membership.settings
        self.coordination = coordination
        self._membership = membership
        self._url = membership.url
        self._problems: dict[str, str] = {}  # what was told to us and stays so
        greeting = Greeting(membership.disk.disk, membership.disk.boots, membership.nonce, VERSION)
        self.peers = LinkedPeers(greeting)
        self.place = ClusterPlace(name, home, self.settings.partitions)
        self.links = Links(name, transport, {name: membership.address}, self._answering)
        self.peers.over(self.links)
        self.place.over(self.links)
        self.roster = Roster(name, coordination, self.links, keys, self.peers)
        self.standings = Standings()
        self.messenger = Messenger(name, self.links, self)
        self.carrying: Carries | None = None
        self.remembering: KnownChains | None = None
        self.disk = membership.disk
        coordination.on_rolled_back.append(partial(self._problem, "etcd was rolled back"))

    # --- putting together ---------------------------------------------------------------------

    async def open_journal(self, local: LocalJournal, clock: Clock) -> ClusterJournal:
        """The cluster's journal over the log of this member's folder."""
        notes = DiskNotes(RealDisk(), local.folder)
        return await self.open_disk(ClusterDisk(local, notes, self._membership.disk), clock)

    async def open_disk(self, disk: ClusterDisk, clock: Clock) -> ClusterJournal:
        """The cluster's journal over a disk."""
        self.journal = await ClusterJournal.open(
            self.name, disk, self.coordination, self.peers, clock,
            choose_set=self._choose_set, nonce=self._membership.nonce,
        )  # fmt: skip
        self.journal.is_registered = self.roster.is_registered
        self.journal.taking.on_rolled_back.append(
            lambda _, reason: self._problem("etcd was rolled back", reason)
        )
        self.journal.create_topic(TOPIC, self.settings.partitions)
        return self.journal

    async def begin(self, node: Node, *, standbys: bool = True, clock: Clock | None = None) -> None:
        """Joins the others with a node that has no partition yet."""
        self.node = node
        clock = clock or SystemClock()
        node.runner.standbys.is_hot = standbys
        node.gateway.join_cluster(ClusterDesk(self))
        node.gateway.watch_health(self.problems)
        self.place.content = node.answer_call
        self.conductor = Conductor(
            self.name, self._membership.disk.disk, self.settings.partitions,
            self.settings.replicas, self.journal, node.runner, self,
        )  # fmt: skip
        self._watching = Watching(
            self.coordination,
            {
                "live": lambda _: self.roster.read_live(),
                "registered": lambda _: self.roster.read_registered(),
                "chain": self._read_chain,
                "chains": lambda _: self._read_chains(),
            },
            {"latest": lambda: self.publisher.hint()},
        )
        for partition in range(1, self.settings.partitions + 1):
            self.place.learned(self.journal.chain(partition))
        self.journal.on_chain.append(self._chain_changed)
        self.roster.on_joined += [self.place.joined, self.standings.follow]
        self.roster.on_left.append(self.place.left)
        self.roster.on_change.append(self.conductor.look)
        self.cuts = await CutKeeper.open(JournalCutLog(self.journal.disk.local))
        self.publisher = Publisher(
            self.coordination, clock, self.name, nonce=self._membership.nonce, ring=self._ring,
            marks=self.journal.marks, followers=[self.cuts], fetch_cuts=self.messenger.cuts,
            at=self.cuts.at, is_told=True,
        )  # fmt: skip
        self.peers.on_change.append(self._member_changed)
        self.peers.handle(self.journal)
        await self.links.start()
        await self.coordination.announce(self._live())
        await self.roster.read_registered()
        await self.roster.read_live()
        self._watching.start()
        self.conductor.start()
        self._measure(node.metrics)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self.publisher.run(), name="publisher"),
            loop.create_task(keep_cuts(self.cuts), name="cuts"),
            loop.create_task(self._tell_standings(), name="standings"),
            loop.create_task(tending_of(self).run(), name="tending"),
            loop.create_task(clearing_of(self).run(), name="clearing"),
        ]

    def _measure(self, metrics: Metrics) -> None:
        metrics.order.numbers = self.publisher.numbers
        metrics.cluster.numbers = lambda: numbers_of(self, self._waiting_commands())

    def _waiting_commands(self) -> int:
        room = self.place.routed.room
        return 0 if room is None else room.commands

    async def placed(self, seconds: float) -> bool:
        """Waits until all partitions have an owner that is heard, for so long; whether they do."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_placed():  # noqa: ASYNC110 - a condition of many parts
                    await asyncio.sleep(CLUSTER_LOOK_MS / 10_000)
        return self.is_placed()

    def is_placed(self) -> bool:
        """Whether every partition has an owner that runs, as far as is known here."""
        owned = set(self.conductor.owned())
        mine = {each.partition for each in self.place.placements.all() if each.member == self.name}
        return mine <= owned and not without_owner(self, self.members())

    @property
    def is_first(self) -> bool:
        """Whether this member has the partition that decides about permissions."""
        return self.node.runner.epoch(1) is not None

    # --- what changes -------------------------------------------------------------------------

    async def serves_at(self, url: str) -> None:
        """Clients reach this member there."""
        self._url = self._url or url
        await self._say()

    async def _say(self) -> None:
        """Says anew what this member is; etcd away is no reason to stop."""
        try:
            await self.coordination.announce(self._live())
        except HoldfastError as error:
            log.warning("member not announced", why=error.message)

    def _live(self) -> LiveMember:
        greeting = self.peers.greeting
        return LiveMember(
            self.name, greeting.disk, greeting.nonce, str(self.links.address), self._url, VERSION,
            greeting.is_draining,
        )  # fmt: skip

    def _member_changed(self, member: str) -> None:
        """A member came, went, or says something new: at once, so that nobody waits for it."""
        self.conductor.look()
        self.publisher.hint()  # the ring is another one

    def _chain_changed(self, chain: Chain) -> None:
        self.place.learned(chain)
        if chain.last is not None and chain.last.nonce == self._membership.nonce:
            self.messenger.tell_chain(chain)

    async def _read_chain(self, hint: str) -> None:
        await self.journal.learn(int(hint.partition("/")[2]))

    async def _read_chains(self) -> None:
        for chain in (await self.coordination.chains()).values():
            self.journal.learned(chain)

    async def _tell_standings(self) -> None:
        """Says what this member has all of, whenever that changes."""
        while True:
            lags = self.node.runner.standbys.lags()
            full = {
                each
                for each, lag in lags.items()
                if lag <= CLUSTER_BEHIND_MAX and self.journal.is_caught_up(each)
            }
            self.standings.tell(full, self.links)
            await asyncio.sleep(CLUSTER_LOOK_MS / 1_000)

    def _ring(self) -> Ring:
        """Those that are heard take part; nobody waits for the others."""
        keys = {name: each.key for name, each in self.roster.registered.items()}
        heard = {self.name, *self.peers.greetings}
        return Ring({name: keys[name] for name in keys.keys() & heard}, former=keys)

    def _problem(self, what: str, *details: object) -> None:
        self._problems[what] = f"{what}: {' '.join(map(str, details))}" if details else what

    # --- the conductor's view -----------------------------------------------------------------

    def members(self) -> dict[str, MemberSight]:
        """All registered members, as they are seen from here."""
        found: dict[str, MemberSight] = {}
        for name, registered in self.roster.registered.items():
            said = self.peers.greeting if name == self.name else self.peers.greetings.get(name)
            found[name] = (
                MemberSight(registered.key)
                if said is None
                else MemberSight(registered.key, said.disk, said.nonce, said.is_draining)
            )
        return found

    def live(self) -> dict[str, LiveMember]:
        """Those that run, as etcd says."""
        return self.roster.live

    def can_act(self) -> bool:
        """Whether etcd can be asked, and is believed."""
        return self.coordination.available and not self.coordination.rolled_back

    def has_all(self, partition: int, member: str) -> bool:
        if member == self.name:
            return partition in self.standings.own
        return self.standings.has_all(partition, member)

    def tell(self, chain: Chain) -> None:
        self.place.learned(chain)
        self.messenger.tell_chain(chain)

    def _choose_set(self, partition: int) -> tuple[Replica, ...]:
        sight = Sight(self.name, self.members(), self.settings.replicas, self.settings.partitions)
        return wanted_set(partition, self.journal.chain(partition).last, sight)

    # --- errands ------------------------------------------------------------------------------

    def learned(self, chain: Chain) -> None:
        """Another member has written a chain."""
        self.journal.learned(chain)

    async def set_draining(self, is_draining: bool) -> None:
        """Gives all partitions away from now on, or keeps them again."""
        greeting = msgspec.structs.replace(self.peers.greeting, is_draining=is_draining)
        self.peers.greet_all(greeting)
        self.conductor.look()
        await self._say()

    async def move_away(self, partition: int, to: str) -> None:
        await self.conductor.move(partition, to)

    def report(self) -> MemberReport:
        """How this member is."""
        lags: dict[int, dict[str, int]] = {}
        for (member, partition), lag in self.journal.lags().items():
            lags.setdefault(partition, {})[member] = lag
        return MemberReport(
            self.conductor.owned(), lags, self.node.runner.standbys.lags(), self.own_problems(),
            self.publisher.number,
        )  # fmt: skip

    async def kept_cuts(self, first: int, last: int) -> Sequence[Cut]:
        return await self.cuts.cuts(first, last)

    async def knowledge(self) -> Knowledge:
        """What this member knows of the cluster, beside etcd."""
        return await knowledge_of(self)

    def problems(self) -> list[str]:
        """What somebody should look at, of this member and of the cluster as it sees it."""
        return self.own_problems() + cluster_problems(self)

    def own_problems(self) -> list[str]:
        """What only this member knows."""
        found = list(self._problems.values())
        if self.roster.is_removed:
            found.append(f"Member {self.name!r} was removed from the cluster")
        return list(dict.fromkeys(found + own_problems(self, self.coordination)))

    # --- connections --------------------------------------------------------------------------

    def _answering(self, link: Link, connection: Connection) -> Handler:
        rest = MemberHandler(self, link.peer, self.place.answering(link, connection))
        return self.peers.answering(link, connection, ErrandHandler(self, rest))

    # --- the end ------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Hands everything over, while requests are still answered; not for ever."""
        await self.set_draining(True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLUSTER_DRAIN_MS_MAX / 1_000):
                while self.conductor.owned() and self._has_successor():  # noqa: ASYNC110
                    await asyncio.sleep(CLUSTER_LOOK_MS / 5_000)

    def _has_successor(self) -> bool:
        """Whether somebody else is there who may take what is open here, now or soon."""
        if self.coordination.rolled_back:  # it says so until the members are started again
            return False
        others = [each for name, each in self.members().items() if name != self.name]
        return any(each.is_there and not each.is_draining for each in others)

    async def close(self) -> None:
        """Leaves the others and closes the node."""
        await self.conductor.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watching.stop()
        if self.remembering is not None:
            await self.remembering.close()
        self.place.routed.close()
        if self.carrying is not None:
            await self.carrying.close()
        await self.node.close()
        await self.links.close()
        await self.coordination.close()
