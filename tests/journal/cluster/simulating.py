"""Members of a cluster under every fault, in virtual time and by a seed; checkers run all the time.

    python -m tests.journal.cluster.simulating 17          one seed, with what happens
    python -m tests.journal.cluster.simulating 0 2000      many, quietly

Each tick a few things happen: appends, reads and cuts, take-overs and planned moves, and faults.
At the end all faults stop: everything must work again, and nothing may be missing.
"""

import asyncio
import copy
import sys
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.journal.cluster.checking import (
    AppendChecker,
    ChainChecker,
    CutChecker,
    LogChecker,
    Violation,
)
from tests.journal.cluster.simulated_wire import SimulatedPeers, SimulatedWire
from tests.journal.cluster.trio import forget

from holdfast.errors import HoldfastError, NotFound, Unknown
from holdfast.journal import Append, Appended, Refused
from holdfast.journal.cluster.asking import ReplicaDisks
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import begin_identity
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.settling import Settling
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.sequence.api import LiveMember, LogKey, Replica
from holdfast.sequence.cuts import follow, make_cut
from holdfast.sequence.keys import Write, WriteAnswer
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, WriteFate
from holdfast.testing.disk import DiskOutcome as Loss
from holdfast.testing.disk import SimulatedDisk
from holdfast.testing.loop import VirtualClock, run

TICK_S = 1 / 16
TICKS = 100
NAMES = "abcde"
PARTITIONS = (1, 2)
TOPICS = ("records", "t")
SILENT_TICKS = 4


class JumpingClock:
    """A member's clock: its hands jump, its seconds pass as everybody's do."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ahead_ms

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def busy(self) -> float:
        return self._clock.busy()


class SimulatedMember:
    """A machine: its disk stays, its processes come and go."""

    def __init__(self, name: str, clock: VirtualClock) -> None:
        self.name = name
        self.clock = JumpingClock(clock)
        self.disk = SimulatedDisk()
        self.older = SimulatedDisk()  # as it was before the last start
        self.id = ""
        self.nonce = ""
        self.journal: ClusterJournal | None = None
        self.coordination: MemoryCoordination | None = None
        self.peers: SimulatedPeers | None = None
        self.tasks: dict[Any, asyncio.Task[Any]] = {}
        self.read: dict[LogKey, int] = {}  # how far a log was read by this start
        self.snapshot: dict[LogKey, int] = {}  # and where its state was saved last


class Simulation:
    """One run."""

    def __init__(self, seed: int, clock: VirtualClock, *, ticks: int = TICKS) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.clock = clock
        self.ticks = ticks
        self.story: list[str] = []
        self.wire = SimulatedWire(random)
        self.store = MemoryCluster(clock)
        self.members = {name: SimulatedMember(name, clock) for name in NAMES}
        self.registered = list(NAMES[: random.choice((3, 3, 4, 5))])
        self.starts = self.appends = self.taken = self.moved = self.discarded = self.loaded = 0
        self.lost_disks = self.left = 0
        self.is_over = False
        self.logs, self.sent = LogChecker(), AppendChecker()
        self.chains, self.cuts = ChainChecker(), CutChecker()
        self.wire.on_stretch = self.sent.sent
        self.failure: BaseException | None = None
        self.calm = random.choice((0.02, 0.1, 0.3))  # how much goes wrong in this run
        self.store.apply = self._applied(self.store.apply)
        self._observer = MemoryCoordination(self.store, "observer")

    def _applied(
        self, apply: Callable[[Any, Write], WriteAnswer]
    ) -> Callable[[Any, Write], WriteAnswer]:
        def applied(keys: Any, write: Write) -> WriteAnswer:
            written = apply(keys, write)
            self.chains.look(self.store.rows)
            return written

        return applied

    def say(self, what: str) -> None:
        self.story.append(f"{self.clock.monotonic():8.3f} {what}")

    @property
    def keys(self) -> list[LogKey]:
        return [LogKey(topic, partition) for topic in TOPICS for partition in PARTITIONS]

    def live(self) -> list[SimulatedMember]:
        return [each for each in self.members.values() if each.journal is not None]

    def is_needed(self, member: SimulatedMember) -> bool:
        """Whether it is chosen, or a range names its disk."""
        named = (
            replica
            for chain in self.chains.chains.values()
            for each in chain.ranges
            for replica in each.replicas
        )
        return member.name in self.registered or Replica(member.name, member.id) in named

    # --- members ---

    async def start(self, name: str) -> None:
        member = self.members[name]
        member.coordination = coordination = MemoryCoordination(self.store, name)
        self.starts += 1
        start = self.starts
        older = copy.deepcopy(member.disk)
        try:
            identity = await begin_identity(
                member.disk, "/m", name, coordination, lambda: f"{name}{start}"
            )
        except HoldfastError as error:
            self.say(f"{name} cannot start: {error}")
            return
        member.id, member.nonce = identity.disk, f"{name}-{start}"
        if name not in self.wire.members:
            disk = ClusterDisk.open(
                "/m", identity, clock=member.clock, disk=member.disk,
                segment_bytes=SEGMENT_BYTES_MIN,
            )  # fmt: skip
            member.peers = SimulatedPeers(self.wire, name)
            try:
                journal = await ClusterJournal.open(
                    name, disk, coordination, member.peers, member.clock,
                    choose_set=self.choose_set, nonce=member.nonce,
                )  # fmt: skip
            except HoldfastError as error:
                self.say(f"{name} cannot open: {error}")
                return
            journal._receiving.is_registered = lambda each: each in self.registered
            journal.on_cut.append(
                lambda partition: self.run_task(
                    member, ("load", partition), self.load(member, partition)
                )
            )
            for topic in TOPICS:
                journal.create_topic(topic, len(PARTITIONS))
            member.journal, member.read, member.older = journal, dict(member.snapshot), older
            self.wire.connect(name, journal, member.peers)
            self.say(f"{name} starts with disk {member.id}")

    def choose_set(self, partition: int) -> tuple[Replica, ...]:
        """Three of the registered members, other ones for each partition."""
        names = self.registered
        first = partition % len(names)
        chosen = [names[(first + each) % len(names)] for each in range(min(3, len(names)))]
        return tuple(Replica(name, self.members[name].id) for name in sorted(chosen))

    async def kill(self, name: str, loss: Loss) -> None:
        member = self.members[name]
        journal, coordination = member.journal, member.coordination
        assert journal is not None and coordination is not None
        self.say(f"{name} loses its power: {loss.value}")
        member.journal = None
        self.wire.disconnect(name)
        coordination.stop()
        member.disk = member.disk.after_crash(loss, seed=self.random.randrange(1 << 30))
        for task in member.tasks.values():
            task.cancel()
        await asyncio.gather(*member.tasks.values(), return_exceptions=True)
        member.tasks.clear()
        await forget(journal)

    def run_task(self, member: SimulatedMember, key: Any, work: Coroutine[Any, Any, Any]) -> None:
        """Something that a member does beside the others, once at a time."""
        if key in member.tasks:
            work.close()
            return
        task = member.tasks[key] = asyncio.ensure_future(work)

        def ended(done: asyncio.Task[Any]) -> None:
            if member.tasks.get(key) is done:
                del member.tasks[key]
            error = None if done.cancelled() else done.exception()
            if error is not None and not isinstance(error, HoldfastError):
                self.failure = self.failure or error

        task.add_done_callback(ended)

    # --- what happens in a tick ---

    async def tick(self) -> None:
        await asyncio.sleep(TICK_S)
        for member in self.live():
            for partition in PARTITIONS:
                self.conduct(member, partition)
                self.append(member, partition)
            self.run_task(member, "read", self.read(member))
            if self.random.random() < self.calm / 4:
                self.discard(member, self.random.choice(self.keys))
            if self.random.random() < 0.2:
                partition = self.random.choice(PARTITIONS)
                self.run_task(member, ("leave", partition), self.leave(member, partition))
        self.publish()
        self.wire.break_silent(self.clock.monotonic() - SILENT_TICKS * TICK_S)
        if self.failure is not None:
            raise self.failure

    def conduct(self, member: SimulatedMember, partition: int) -> None:
        """What a member's conductor decides, with some bad ideas."""
        journal, dice = member.journal, self.random.random()
        assert journal is not None and member.peers is not None
        if self.random.random() < 0.2:  # a hint comes from the store, late
            self.run_task(member, ("learn", partition), journal.learn(partition))
        last = journal.chain(partition).last
        key = ("own", partition)
        owned = journal._sending.owned.get(partition)
        if owned is not None and not owned.rules.is_fenced:
            if dice < self.calm / 10:
                self.run_task(member, key, self.hand_over(member, partition))
            elif dice < self.calm / 2:
                self.run_task(member, ("settle", partition), self.settle(member, partition))
            return
        is_own = last is not None and last.owner == member.name
        is_removed = last is not None and last.owner not in self.registered
        is_orphan = last is None or (not is_own and last.owner not in member.peers.heard())
        is_wanted = any(each.member == member.name for each in self.choose_set(partition))
        if (is_own and dice < 0.5) or (is_orphan and is_wanted and dice < 0.3):
            self.run_task(member, key, self.take(member, partition))
        elif is_wanted and is_removed and dice < 0.3:
            self.run_task(member, key, self.take(member, partition, is_drain=False))
        elif dice > 1 - self.calm / 50:
            self.run_task(member, key, self.take(member, partition, is_drain=True))
        if dice < self.calm / 4:  # and twice at once
            self.run_task(member, ("again", partition), self.take(member, partition))

    async def take(
        self, member: SimulatedMember, partition: int, *, is_drain: bool | None = None
    ) -> None:
        journal = member.journal
        assert journal is not None
        taken = await (
            journal.take("records", partition)
            if is_drain is None
            else journal.take_over(partition, is_drain=is_drain)
        )
        if not isinstance(taken, Refused):
            self.taken += 1
        self.say(f"{member.name} takes {partition}: {taken}")

    async def hand_over(self, member: SimulatedMember, partition: int) -> None:
        journal, targets = member.journal, self.choose_set(partition)
        assert journal is not None
        to = self.members[self.random.choice(targets).member]
        live = LiveMember(to.name, to.id, to.nonce, "", "", "")
        outcome = await journal.hand_over(partition, live)
        if not isinstance(outcome, Refused):
            self.moved += 1
        self.say(f"{member.name} hands {partition} to {to.name}: {type(outcome).__name__}")

    async def settle(self, member: SimulatedMember, partition: int) -> None:
        journal, peers, coordination = member.journal, member.peers, member.coordination
        assert journal is not None and peers is not None and coordination is not None
        settling = Settling(ReplicaDisks(journal, peers), coordination, journal.learned)
        await settling.resettle(partition)
        await settling.prune(partition)

    def append(self, member: SimulatedMember, partition: int) -> None:
        journal = member.journal
        assert journal is not None
        is_owned = partition in journal._sending.owned
        if not is_owned or self.is_over or self.random.random() < 0.3:
            return
        for _ in range(self.random.randint(1, 3)):
            topic = self.random.choice(TOPICS)
            entries = list[bytes]()
            for _ in range(self.random.randint(1, 3)):
                self.appends += 1
                entries.append(b"%d" % self.appends)
            key = LogKey(topic, partition)
            (outcome,) = journal._sending.append([Append(topic, partition, entries)])
            if isinstance(outcome, asyncio.Future):
                outcome.add_done_callback(
                    lambda done, key=key, entries=entries: self.appended(key, entries, done)
                )
            elif isinstance(outcome, Refused):
                self.logs.append_refused(entries)

    def appended(self, key: LogKey, entries: list[bytes], done: "asyncio.Future[Any]") -> None:
        if done.cancelled() or isinstance(done.exception(), Unknown):
            return
        try:
            outcome = done.result()
            if isinstance(outcome, Appended):
                self.logs.append_acknowledged(key, outcome.first, entries)
            else:
                self.logs.append_refused(entries)
        except BaseException as error:
            self.failure = self.failure or error

    async def read(self, member: SimulatedMember) -> None:
        journal = member.journal
        assert journal is not None
        for key in self.keys:
            offset = member.read.get(key, 0)
            if offset < journal.bounds(*key).earliest:
                work = self.load(member, key.partition)
                self.run_task(member, ("load", key.partition), work)
                continue
            entries = await journal.read(*key, offset)
            self.logs.read(key, entries, member.name)
            if entries:
                member.read[key] = entries[-1].offset + 1

    def discard(self, member: SimulatedMember, key: LogKey) -> None:
        """A member has a snapshot of what it has read, and gives up the log behind it."""
        journal = member.journal
        assert journal is not None
        before = member.read.get(key, 0) - self.random.randrange(10)
        bounds = journal.bounds(*key)
        if bounds.earliest < before <= bounds.next:
            member.snapshot[key] = max(before, member.snapshot.get(key, 0))
            journal.discard(*key, before)
            self.discarded += 1

    async def leave(self, member: SimulatedMember, partition: int) -> None:
        """A member may be no replica of a partition any more, and gives up what it has of it."""
        journal = member.journal
        assert journal is not None

        async def remove_state() -> None:
            await asyncio.sleep(self.random.choice((0, TICK_S)))
            for topic in TOPICS:
                member.snapshot.pop(LogKey(topic, partition), None)
                member.read.pop(LogKey(topic, partition), None)

        leaving = journal.leaving
        if leaving.has_entries(partition) and await leaving.leave(partition, remove_state):
            self.left += 1
            self.say(f"{member.name} has left {partition}")

    async def load(self, member: SimulatedMember, partition: int) -> None:
        """The log begins later on all others: a snapshot of another member stands for the rest."""
        journal = member.journal
        donors = [each for each in self.live() if each is not member and each.read]
        if journal is None or not donors:
            return
        donor = self.random.choice(donors)
        keys = [LogKey(topic, partition) for topic in TOPICS]
        behind = {key.topic: max(donor.read.get(key, 0), member.read.get(key, 0)) for key in keys}
        await journal.begin_at(partition, behind)
        for topic, offset in behind.items():
            key = LogKey(topic, partition)
            member.read[key] = member.snapshot[key] = offset
        self.loaded += 1
        self.say(f"{member.name} loads {behind} of {partition} from {donor.name}")

    def publish(self) -> None:
        live = self.live()
        if live:
            member = self.random.choice(live)
            self.run_task(member, "publish", self._publish(member))

    async def _publish(self, member: SimulatedMember) -> None:
        journal, coordination = member.journal, member.coordination
        assert journal is not None and coordination is not None
        latest = await self._observer.latest()
        number = latest.number if latest is not None else 0
        await self.follow_cuts(number)
        before = self.cuts.positions
        cut = make_cut(before, journal.marks(), member.name, f"{member.nonce}-{number}", 0)
        if cut.grown and before.number == number:
            await coordination.publish(cut)

    async def follow_cuts(self, number: int) -> None:
        if number > self.cuts.positions.number:
            for cut in await self._observer.cuts(self.cuts.positions.number + 1, number):
                if cut.number == self.cuts.positions.number + 1:
                    self.cuts.published(follow(self.cuts.positions, cut))

    # --- the end ---

    async def recover(self) -> None:
        """All faults stop: everything works again within a time."""
        self.say("all faults stop")
        self.calm = 0.0
        self.wire.loss = self.wire.doubling = 0.0
        self.store.fate = lambda member, write: WriteFate.ANSWERED
        self.store.reconnect()
        while self.store.late:
            self.store.deliver()
        for member in self.members.values():
            if member.journal is None and self.is_needed(member):
                await self.start(member.name)
        for pair in self.wire.pairs():
            self.wire.reconnect(*pair)
        before = {key: len(self.logs.entries.get(key, {})) for key in self.keys}
        for _ in range(600):
            await self.tick()
            grown = all(len(self.logs.entries.get(key, {})) > before[key] for key in self.keys)
            self.is_over = self.is_over or grown  # no more appends
            if self.is_over and self.is_settled():
                break
        else:
            raise Violation(f"it does not recover: {self.described()}")
        await self.check_all()

    def is_settled(self) -> bool:
        """Whether all members know of all that is acknowledged, and have it."""
        for each in self.live():
            assert each.journal is not None
            if each.journal._sending.waiting():
                return False
            marks = each.journal.marks()
            for key in self.keys:
                following = max(self.logs.entries.get(key, {0: b""})) + 1
                if marks.get(key, 0) < following or not each.journal.is_caught_up(key.partition):
                    return False
        return all(self.is_known(partition) for partition in PARTITIONS)

    def is_known(self, partition: int) -> bool:
        """Whether the replicas of the newest range know of it: one may have been named just now."""
        journals = [each.journal for each in self.live() if each.journal is not None]
        ranges = [found for each in journals if (found := each.chain(partition).last) is not None]
        newest = max(ranges, key=lambda each: each.epoch)
        named = [each for each in journals if each.replica in newest.replicas]
        return all(each.chain(partition).last == newest for each in named)

    def described(self) -> str:
        lines = [f"{key}: {len(self.logs.entries.get(key, {}))}" for key in self.keys]
        for each in self.live():
            assert each.journal is not None
            lines += [
                f"{each.name} {each.id} {sorted(map(str, each.tasks))} {partition}: "
                f"{each.journal.chain(partition).last} owned "
                f"{partition in each.journal._sending.owned} caught up "
                f"{each.journal.is_caught_up(partition)}"
                for partition in PARTITIONS
            ]
            lines.append(
                f"marks {dict(each.journal.marks())}, waiting {each.journal._sending.waiting()}"
            )
        return "\n".join(lines)

    async def check_all(self) -> None:
        """Every member reads every log from its beginning."""
        for member in self.live():
            journal = member.journal
            assert journal is not None
            for key in self.keys:
                while not await self.reads_all(member.name, journal, key):
                    pass
            self.cuts.all_named(journal.marks())

    async def reads_all(self, name: str, journal: ClusterJournal, key: LogKey) -> bool:
        """Reads a log from its beginning; False if the member gave the log up meanwhile."""
        earliest = max(journal.bounds(*key).earliest, self.earliest(key))
        offset, read = earliest, dict[int, bytes]()
        try:
            while entries := await journal.read(*key, offset):
                self.logs.read(key, entries, name)
                read.update((each.offset, each.payload) for each in entries)
                offset = entries[-1].offset + 1
        except NotFound:
            if journal.bounds(*key).earliest <= offset:
                raise
            return False
        self.logs.all_read(key, read, earliest, name)
        return True

    def earliest(self, key: LogKey) -> int:
        """Where the log begins that some replica has; what is before it is in snapshots."""
        journals = [each.journal for each in self.live() if each.journal is not None]
        last = journals[0].chain(key.partition).last
        assert last is not None
        named = [each for each in journals if each.replica in last.replicas]
        return min(each.bounds(*key).earliest for each in named)

    async def run(self) -> None:
        faults = Faults(self)
        for name in self.registered:  # all disks are known before the first range is opened
            await self.start(name)
        for _ in range(self.ticks):
            await faults.happen()
            await self.tick()
        await self.recover()
        for member in self.live():
            await self.kill(member.name, Loss.KEEP)


class Faults:
    """What goes wrong, by the dice of the run."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self._until = 0.0  # the store is away

    async def happen(self) -> None:
        simulation, dice = self.simulation, self.random.random
        calm = simulation.calm
        simulation.wire.loss = 0.02 if dice() < calm else 0.0
        simulation.wire.doubling = 0.05 if dice() < calm else 0.0
        await self._machines(calm)
        self._network(calm)
        self._store(calm)
        await self._membership(calm)
        for member in simulation.live():
            if dice() < calm / 10:
                member.clock.ahead_ms = self.random.choice((-60_000, -50, 0, 50, 3_600_000))

    async def _machines(self, calm: float) -> None:
        simulation = self.simulation
        for member in list(simulation.members.values()):
            dice = self.random.random()
            if member.journal is not None and dice < calm / 8:
                await simulation.kill(member.name, self.random.choice(list(Loss)))
                if dice < calm / 80 and not simulation.lost_disks:
                    self._lose_disk(member)
            elif member.journal is None and dice < 0.2 and simulation.is_needed(member):
                await simulation.start(member.name)

    def _lose_disk(self, member: SimulatedMember) -> None:
        """It is empty, or is put back to how it was before the last start."""
        self.simulation.lost_disks += 1
        is_older = self.random.random() < 0.5
        self.simulation.say(f"{member.name} {'gets an older' if is_older else 'loses its'} disk")
        member.disk = copy.deepcopy(member.older) if is_older else SimulatedDisk()
        member.snapshot = {}

    def _network(self, calm: float) -> None:
        wire, now = self.simulation.wire, self.simulation.clock.monotonic()
        for one, other in wire.pairs():
            dice = self.random.random()
            if dice < calm / 10:
                wire.cut(one, other)
            elif dice < calm / 5:
                wire.hold(*self.random.sample((one, other), 2), now)
            elif dice < calm / 4:
                wire.reconnect(one, other)
            elif dice > 0.7:
                wire.join(one, other)
                wire.go_on(one, other)
                wire.go_on(other, one)
        for name in sorted(wire.members):
            if self.random.random() < calm / 20:  # a pause: it hears and says nothing
                for other in sorted(wire.members):
                    if other != name:
                        wire.hold(name, other, now)
                        wire.hold(other, name, now)

    def _store(self, calm: float) -> None:
        store, now = self.simulation.store, self.simulation.clock.monotonic()
        fates = [each for each in WriteFate if each is not WriteFate.ANSWERED]

        def fate(member: str, write: object) -> WriteFate:
            return self.random.choice(fates) if self.random.random() < calm else WriteFate.ANSWERED

        store.fate = fate
        if store.late and self.random.random() < 0.5:
            store.deliver(self.random.randrange(len(store.late)))
        if now >= self._until:
            store.reconnect()
            if self.random.random() < calm / 10:
                store.cut_off()
                self._until = now + self.random.choice((0.1, 0.5, 2.0))
                self.simulation.say("the store is away")

    async def _membership(self, calm: float) -> None:
        """One joins, or one is no longer chosen; it stays up while ranges name its disk."""
        simulation = self.simulation
        if self.random.random() < calm / 20:
            spare = [each for each in NAMES if each not in simulation.registered]
            if spare and self.random.random() < 0.5:
                await simulation.start(spare[0])
                if simulation.members[spare[0]].journal is not None:
                    simulation.registered.append(spare[0])
                    simulation.say(f"{spare[0]} joins")
            elif len(simulation.registered) > 3:
                name = self.random.choice(simulation.registered)
                simulation.registered.remove(name)
                simulation.say(f"{name} is removed")


def simulate(seed: int, *, ticks: int = TICKS) -> Simulation:
    """Runs a seed; a violation names it."""
    clock = VirtualClock()
    simulation = Simulation(seed, clock, ticks=ticks)
    try:
        run(simulation.run(), clock)
    except BaseException as error:
        story = "\n".join(simulation.story[-60:])
        error.add_note(f"{story}\nreplay with: python -m tests.journal.cluster.simulating {seed}")
        raise
    return simulation


def main(first: int, end: int) -> None:
    for seed in range(first, end):
        found = simulate(seed)
        if end == first + 1:
            print("\n".join(found.story))
        print(
            f"seed {seed}: {found.appends} entries, {found.logs.acknowledged} acknowledged, "
            f"{found.taken} take-overs, {found.moved} moves, {found.cuts.positions.number} cuts, "
            f"{found.discarded} discards, {found.loaded} snapshots loaded, "
            f"{found.wire.sent} messages, trace {found.wire.crc:08x}",
            flush=True,
        )


if __name__ == "__main__":
    first = int(sys.argv[1])
    main(first, int(sys.argv[2]) if len(sys.argv) > 2 else first + 1)
