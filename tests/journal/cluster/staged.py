"""A stage for take-overs: disks in memory that obey the rules, and links that may fail."""

import asyncio
from collections.abc import Callable

from holdfast.errors import Forbidden, Unavailable, Unknown
from holdfast.journal.cluster.asking import ReplicaDisks
from holdfast.journal.cluster.messages import (
    Answer,
    Call,
    Copy,
    Fence,
    Fenced,
    Fetch,
    Fetched,
    OwnerHeard,
    Promised,
    Stretch,
    Survey,
    Surveyed,
    TailCopied,
    Told,
)
from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.replica import Bound, Keep, OwnerAlive, ReplicaRules, Unregistered
from holdfast.journal.cluster.settling import Settling
from holdfast.journal.cluster.taking import Taking
from holdfast.sequence.api import Chain, LiveMember, Replica
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination
from holdfast.testing.loop import VirtualClock

TOPIC = "records"
LATENCY_S = 0.001


class StagedDisk:
    """One member's disk: one partition, appends of one entry each."""

    def __init__(self, stage: "Stage", replica: Replica) -> None:
        self.replica = replica
        self.rules = ReplicaRules()
        self.logs: dict[int, list[bytes]] = {}  # by epoch
        self.needed = 0  # the first offset that no snapshot stands for
        self.fences = 0
        self.told_of_cut: dict[str, int] | None = None
        self._stage = stage

    def append(self, epoch: int, number: int, entry: bytes) -> int | None:
        """As an owner's append arrives; what is reported."""
        decided = self.rules.append(epoch, TOPIC, number, 1)
        if not isinstance(decided, Keep):
            return None
        self.logs.setdefault(epoch, []).append(entry)
        return self.rules.stored(epoch, TOPIC, number + 1)

    def cut(self, before: int) -> None:
        """The first entries are in a snapshot only; the partition has one range."""
        self.needed = before

    async def called(self, member: str, message: Call) -> Answer:
        await asyncio.sleep(LATENCY_S)
        disk = self.replica.disk
        assert not hasattr(message, "disk") or message.disk == disk
        if isinstance(message, Fence):
            return self._fence(member, message)
        if isinstance(message, Copy):
            return self._copy(message)
        if isinstance(message, Fetch):
            log = self.logs.get(message.epoch, [])
            is_cut = message.epoch == 1 and message.first < self.needed
            found = range(
                message.first, 0 if is_cut else min(message.end, len(log), message.first + 2)
            )
            return Fetched([Stretch(1, message.epoch, TOPIC, i, 0, [log[i]]) for i in found])
        assert isinstance(message, Survey)
        counts = {epoch: self.rules.counts(epoch) for epoch in self.rules.epochs()}
        return Surveyed(disk, self.rules.promise, counts, {TOPIC: self.needed})

    def _fence(self, member: str, message: Fence) -> Answer:
        self.fences += 1
        self.told_of_cut = message.cut or self.told_of_cut
        decided = self.rules.fence(
            message.epoch,
            message.opens,
            hears_owner=self._stage.hears_owner(self.replica.member),
            is_drain=message.is_drain,
            is_registered=member in self._stage.registered,
        )
        if isinstance(decided, Unregistered):
            raise Forbidden(f"{member} was removed")
        if isinstance(decided, OwnerAlive):
            return OwnerHeard(self.replica.disk)
        if isinstance(decided, Bound):
            return Fenced(self.replica.disk, 1, decided.promise)
        self.rules.promised(message.opens)
        counts = self.rules.counts(message.epoch)
        return Promised(self.replica.disk, counts, self.rules.newest)

    def _copy(self, message: Copy) -> Answer:
        for each in message.stretches:
            decided = self.rules.copy(each.epoch, message.opens, TOPIC, each.number, 1)
            if isinstance(decided, Bound):
                return Fenced(self.replica.disk, 1, decided.promise)
            self.rules.promised(message.opens)
            if isinstance(decided, Keep):
                self.logs.setdefault(each.epoch, []).extend(each.entries)
                self.rules.stored(each.epoch, TOPIC, each.number + 1)
        return TailCopied(self.replica.disk, self.rules.counts(message.stretches[0].epoch))


class StagedPeers:
    """The other members as one of them reaches them."""

    def __init__(self, stage: "Stage", member: str) -> None:
        self._stage = stage
        self._member = member

    def heard(self) -> set[str]:
        return {each for each in self._stage.disks if self._stage.is_up(self._member, each)}

    def nonce(self, member: str) -> str | None:
        return None

    def disk(self, member: str) -> str | None:
        up = self._stage.is_up(self._member, member)
        return self._stage.disks[member].replica.disk if up else None

    def tell(self, members: object, message: Told) -> list[str]:
        return []

    async def call(self, member: str, message: Call) -> Answer:
        if not self._stage.is_up(self._member, member):
            raise Unavailable(f"{member} is down")
        answer = await self._stage.disks[member].called(self._member, message)
        if self._stage.loses_answer(member, message):
            raise Unknown(f"the answer of {member} was lost")
        return answer


class Stage:
    """Members a, b, c and d around one partition."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.store = MemoryCluster(clock)
        self.registered = set("abcd")
        self.down: set[str] = set()
        self.heard_by: set[str] = set()  # members that hear the owner
        self.loses_answer: Callable[[str, Call], bool] = lambda member, message: False
        self.disks = {name: StagedDisk(self, Replica(name, f"disk of {name}")) for name in "abcd"}
        self.chains: list[Chain] = []  # as members learned of them
        self.alarms: list[str] = []
        self.set_of_next = self.replicas("abc")
        self.coordinations: dict[str, MemoryCoordination] = {}

    def replicas(self, names: str) -> tuple[Replica, ...]:
        return tuple(self.disks[name].replica for name in names)

    def is_up(self, member: str, other: str) -> bool:
        return not {member, other} & self.down

    def hears_owner(self, member: str) -> bool:
        return member in self.heard_by

    def taking(self, member: str, start: int = 1) -> Taking:
        """A start of a member."""
        coordination = MemoryCoordination(self.store, member)
        self.coordinations[member] = coordination
        disks = ReplicaDisks(self.disks[member], StagedPeers(self, member))
        taking = Taking(
            disks,
            coordination,
            self.clock,
            nonce=f"{member}-{start}",
            choose_set=lambda partition: self.set_of_next,
            learned=self.chains.append,
        )
        taking.on_rolled_back.append(lambda partition, reason: self.alarms.append(reason))
        return taking

    def settling(self, member: str) -> Settling:
        disks = ReplicaDisks(self.disks[member], StagedPeers(self, member))
        return Settling(disks, MemoryCoordination(self.store, member), self.chains.append)

    def live(self, member: str, start: int = 1) -> LiveMember:
        disk = self.disks[member].replica.disk
        return LiveMember(member, disk, f"{member}-{start}", "", "", "")

    async def chain(self) -> Chain:
        return await MemoryCoordination(self.store, "reader").chain(1)

    def appended(self, chain: Chain, entries: str, on: str) -> OwnerRange:
        """The owner of the open range has appended letters, and these members have them."""
        assert chain.last is not None
        ours = OwnerRange(chain.last)
        ours.append(TOPIC, len(entries))
        for name in on:
            for number, entry in enumerate(entries):
                count = self.disks[name].append(chain.epoch, number, entry.encode())
                if count is not None:
                    ours.reported(self.disks[name].replica, TOPIC, count)
        return ours

    def log(self, chain: Chain, name: str) -> str:
        """What a disk has of the closed ranges."""
        found = ""
        for each, following in zip(chain.ranges, chain.ranges[1:], strict=False):
            count = following.starts.get(TOPIC, 0) - each.starts.get(TOPIC, 0)
            found += b"".join(self.disks[name].logs.get(each.epoch, [])[:count]).decode()
        return found
