"""What goes wrong in a simulated cluster of whole members, by the dice of a run."""

import asyncio
import contextlib
from collections.abc import Callable
from contextvars import copy_context
from random import Random

from tests.cluster.simulated import PARTITIONS, SimulatedCluster
from tests.cluster.simulated_load import BACK_S
from tests.journal.cluster.simulating import JumpingClock

from holdfast.errors import Code, HoldfastError
from holdfast.sequence.memory import MemoryCoordination, WriteFate
from holdfast.testing.disk import DiskOutcome, SimulatedDisk
from holdfast.testing.network import Weather

CALM = Weather(0.1, 1.0)
ETCD_MS = (0.5, 4.0)  # of half a call; it is slower than members are among each other
SPARES = "de"
TICK_S = 1 / 16
STRANDED_S = 2.0  # others have taken over within it
ORPHANED_S = 1.5  # a member is back and has taken over within it
ARRIVED_S = 0.003  # what was sent in calm weather has arrived


class PoweredDisk(SimulatedDisk):
    """Tells at once when the power goes in the middle of an operation."""

    on_power_lost: Callable[[], None] | None = None

    def _operate(self) -> bool:
        was_on = not self._crashed
        lost = super()._operate()
        if lost and was_on and self.on_power_lost is not None:
            self.on_power_lost()
        return lost


class Faults:
    """`happen` is called once a tick; `stop` makes everything work again."""

    def __init__(
        self, cluster: SimulatedCluster, dice: Random, say: Callable[[str], None], rate: float
    ) -> None:
        self.cluster = cluster
        self.dice = dice
        self.say = say
        self.rate = rate  # of each kind, per tick
        self.removed: set[str] = set()
        self.counts: dict[str, int] = {}
        self.lost_disks = 0
        self.without_power: set[str] = set()  # in the middle of a write
        self.insist: Callable[[str, float], None] = lambda name, after: None  # at a member
        self._ticks = 0
        self._story_at = dice.randint(5, 60)  # once a run: the tick from which on it may begin
        self._quiet_until = 0.0  # nothing else happens during it
        self._outside = copy_context()  # of no machine
        self._dying: dict[str, str] = {}  # owners that die when they append -> who hears of it
        self._hurrying: set[str] = set()  # of those, who come back at once, without their writes
        self._heal_at: dict[str, float] = {}
        self._slow: dict[str, float] = {}  # member -> until when it reaches etcd slowly
        cluster.etcd.pause = self._reach_etcd
        self._asking: set[asyncio.Task[None]] = set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _does(self, what: str, share: float = 1.0) -> bool:
        if self.dice.random() >= self.rate * share or self._now() < self._quiet_until:
            return False
        self.counts[what] = self.counts.get(what, 0) + 1
        return True

    def _for(self, what: str, *seconds: float) -> None:
        self._heal_at[what] = self._now() + self.dice.choice(seconds)

    def _is_over(self, what: str) -> bool:
        if self._heal_at.get(what, float("inf")) > self._now():
            return False
        del self._heal_at[what]
        return True

    async def happen(self) -> None:
        self._ticks += 1
        if self._ticks >= self._story_at and self.cluster.owners():
            self._play_story()
        await self._machines()
        self._network()
        self._etcd()
        self._orders()

    # --- machines -----------------------------------------------------------------------------

    async def _machines(self) -> None:
        cluster = self.cluster
        for name in [*cluster.names]:
            if name not in cluster.members:
                if self.dice.random() < (0.9 if name in self._hurrying else 0.1):
                    self._hurrying.discard(name)
                    await self.start(name)
            elif name in self.without_power:
                await self._lose_power(name)
            elif self._does("power loss"):
                await self._lose_power(name)
                # Of a minority: a member that is removed takes its disk with it.
                if not self.lost_disks and not self.removed and self.dice.random() < 0.3:
                    self._lose_disk(name)
            elif self._does("power loss in a write"):
                self._break(name)
            elif self._does("pause"):
                self.say(f"{name} is paused")
                cluster.machines.pause(cluster.run_of(name))
                self._for(f"pause {name}", 0.1, 0.4, 1.5)
                if self.dice.random() < 0.5:  # as after a suspend: connections are made anew
                    self._slow[name] = self._heal_at[f"pause {name}"] + 1.0
            elif self._does("clock jump"):
                clock = cluster.clocks[name]
                assert isinstance(clock, JumpingClock)
                clock.ahead_ms = self.dice.choice((-60_000, -50, 0, 50, 3_600_000))
                self.say(f"{name} has a clock that is {clock.ahead_ms} ms ahead")
            if self._is_over(f"pause {name}") and name in cluster.members:
                cluster.machines.resume(cluster.run_of(name))

    async def start(self, name: str) -> None:
        self.say(f"{name} starts")
        cluster = self.cluster
        clock = cluster.clocks[name]
        assert isinstance(clock, JumpingClock)
        clock.ahead_ms = self.dice.choice((-50, 0, 50))  # it is set when the machine is turned on
        disk = PoweredDisk()
        disk._folders = cluster.disks[name]._folders
        cluster.disks[name] = disk
        try:
            async with asyncio.timeout(10):
                await cluster.start(name)
        except (HoldfastError, TimeoutError) as error:
            self.say(f"{name} cannot start: {error!r}")

    async def _lose_power(self, name: str) -> None:
        outcome = self.dice.choice(list(DiskOutcome))
        if name in self._hurrying:
            outcome = DiskOutcome.DROP
        self.say(f"{name} loses its power: {outcome.value}")
        self.without_power.discard(name)
        await self.cluster.kill(name, outcome, seed=self.dice.randrange(1 << 30))

    def _break(self, name: str) -> None:
        disk = self.cluster.disks[name]
        assert isinstance(disk, PoweredDisk)
        disk.crash_at = disk.operations + self.dice.randint(1, 6)

        def off() -> None:
            self.say(f"{name} loses its power at operation {disk.operations} of its disk")
            self.cluster.transports[name].crash()
            self.cluster.machines.pause(self.cluster.run_of(name))
            self.without_power.add(name)

        disk.on_power_lost = off

    def _lose_disk(self, name: str) -> None:
        self.lost_disks += 1
        self.counts["disk loss"] = 1
        self.say(f"{name} loses its disk")
        self.cluster.wipe(name)

    # --- the network --------------------------------------------------------------------------

    def _network(self) -> None:
        network, names = self.cluster.network, sorted(self.cluster.members)
        if self._does("weather"):
            loss, doubling = self.dice.choice((0.0, 0.02)), self.dice.choice((0.0, 0.05))
            network.weather = Weather(0.1, self.dice.choice((1.0, 20.0, 100.0)), loss, doubling)
            self.say(f"{network.weather}")
            self._for("weather", 0.3, 1.0)
        elif self._is_over("weather"):
            network.weather = CALM
        if len(names) > 1 and self._does("one-way cut"):
            sender, target = self.dice.sample(names, 2)
            self.say(f"{target} does not hear {sender}")
            network.cut(sender, target)
            self._for("cut", 0.2, 0.8, 2.0)
        elif len(names) > 1 and self._does("split", 0.5):
            side = self.dice.sample(names, self.dice.randint(1, len(names) - 1))
            self.say(f"{side} are alone")
            network.split(side)
            self._for("cut", 0.2, 0.8, 2.0)
        elif self._is_over("cut"):
            network.heal()
        if names and self._does("reset"):
            name = self.dice.choice(names)
            self.say(f"connections of {name} break")
            self.cluster.transports[name].reset_all()
            if self.dice.random() < 0.5:
                self._overtake(name)

    def _overtake(self, name: str) -> None:
        """Others take over from a member, which reaches them again before it hears of that.

        A moment later it is back: nothing that it has sent was lost, so its replicas lack nothing.
        """
        self.say(f"{name} is alone for a moment")
        self.cluster.network.split([name])
        self._for("cut", TICK_S)
        self._slow[name] = self._now() + 1.5
        self.insist(name, BACK_S)

    def _strand(self, name: str) -> None:
        """A member is alone for so long that others take over, while clients go on asking it."""
        self.say(f"{name} is alone, and asked by clients")
        self._quiet_until = self._now() + STRANDED_S
        self.cluster.network.split([name])
        self._for("cut", STRANDED_S)
        self.insist(name, 0.0)

    # --- stories that chance alone would tell too seldom ----------------------------------------

    def _play_story(self) -> None:
        """An owner is alone or dies, while all others are on and reach each other."""
        cluster = self.cluster
        if self.without_power or cluster.members.keys() != set(cluster.names):
            return
        self._story_at = 1 << 30
        self._calm_down()
        owner = self.dice.choice(sorted(set(cluster.owners().values())))
        if self.dice.random() < 0.5:
            self._strand(owner)
        else:
            others = [each for each in sorted(cluster.members) if each != owner]
            self._orphan(owner, *self.dice.sample(others, 2))

    def _orphan(self, owner: str, replica: str, other: str) -> None:
        """An owner is to die when it appends: before its own disk has it, and heard by one.

        That one is alone then, while the owner comes back and closes the range with the other.
        """
        self.say(f"{owner} is to die when it appends, heard by {replica} alone")
        self._quiet_until = self._now() + ORPHANED_S
        self.cluster.network.cut(owner, other)
        self._for("cut", ORPHANED_S)
        self._dying[owner] = replica
        self.insist(owner, 0.0)

    def _calm_down(self) -> None:
        """Everything that is on reaches everything else."""
        cluster = self.cluster
        cluster.network.heal()
        cluster.network.weather = CALM
        cluster.etcd.reconnect()
        for name in sorted(cluster.members):
            cluster.machines.resume(cluster.run_of(name))
        self._slow.clear()
        self._heal_at.clear()

    def sending(self, name: str) -> None:
        """A member sends an append to its replicas; its own disk is next."""
        replica, disk = self._dying.pop(name, None), self.cluster.disks[name]
        if replica is None or name not in self.cluster.members:
            return
        self._break(name)
        disk.crash_at = disk.operations + 1
        self._hurrying.add(name)
        loop = asyncio.get_running_loop()
        loop.call_later(ARRIVED_S, self._isolate, replica, context=self._outside)

    def _isolate(self, replica: str) -> None:
        """The disk that has the entries takes no part in closing their range."""
        if self.rate:
            self.say(f"{replica} is alone with what it heard last")
            self.cluster.network.heal()
            self.cluster.network.split([replica])
            self._for("cut", ORPHANED_S)

    # --- etcd ---------------------------------------------------------------------------------

    def _etcd(self) -> None:
        etcd = self.cluster.etcd
        fates = [each for each in WriteFate if each is not WriteFate.ANSWERED]

        def fate(member: str, write: object) -> WriteFate:
            is_bad = self.dice.random() < self.rate
            return self.dice.choice(fates) if is_bad else WriteFate.ANSWERED

        etcd.fate = fate
        etcd.hinted = lambda member, key: self.dice.choice((0, 1, 2)) if self.rate > 0.02 else 1
        if etcd.late and self.dice.random() < 0.3:
            etcd.deliver(self.dice.randrange(len(etcd.late)))
        if self._does("etcd away"):
            names = self.dice.choice(([], sorted(self.cluster.members)[:1]))
            self.say(f"etcd is away for {names or 'all'}")
            etcd.fate_unreached = self.dice.choice((WriteFate.UNSENT, WriteFate.DROPPED))
            etcd.cut_off(*names)
            self._for("etcd", 0.1, 0.5, 2.0, 8.0)
        elif self._is_over("etcd"):
            etcd.reconnect()
        if self.cluster.members and self._does("etcd slow"):
            name = self.dice.choice(sorted(self.cluster.members))
            self.say(f"etcd is slow for {name}")
            self._slow[name] = self._now() + self.dice.choice((0.3, 1.0, 3.0))

    async def _reach_etcd(self, member: str) -> None:
        """The way of a call to etcd, or of its answer."""
        if self._slow.get(member, 0.0) > self._now():
            await asyncio.sleep(self.dice.choice((0.05, 0.3, 1.0)))
        else:
            await asyncio.sleep(self.dice.uniform(*ETCD_MS) / 1_000)

    # --- what operators do --------------------------------------------------------------------

    def _orders(self) -> None:
        cluster, names = self.cluster, sorted(self.cluster.members)
        if not names:
            return
        name = self.dice.choice(names)
        if self._does("drain"):
            is_draining = self.dice.random() < 0.6
            self.say(f"{name} is drained: {is_draining}")
            self._ask(lambda: cluster[name].set_draining(is_draining), name)
        if self._does("move"):
            partition, to = self.dice.randint(1, PARTITIONS), self.dice.choice(names)
            self.say(f"{partition} is moved to {to}")
            self._ask(lambda: cluster.gateway(name).cluster.move(str(partition), to), name)
        if self._does("join", 0.3):
            spare = [each for each in SPARES if each not in {*cluster.names, *self.removed}]
            if spare:
                self.join(spare[0])
        if len(names) > 3 and len(names) == len(cluster.names) and self._does("remove", 0.5):
            gone = self.dice.choice([each for each in names if each != name])
            self._ask(lambda: self._remove(name, gone), name)

    def join(self, name: str) -> None:
        self.say(f"{name} is to join")
        cluster = self.cluster
        cluster.disks[name] = SimulatedDisk()
        cluster.clocks[name] = JumpingClock(cluster.clock)
        cluster.names.append(name)

    async def _remove(self, by: str, name: str) -> None:
        cluster = self.cluster
        if len(cluster.names) - len(self.removed) <= 3 or self.lost_disks:
            return
        self.removed.add(name)
        try:
            await cluster.gateway(by).cluster.remove(name)
        except HoldfastError as error:
            if error.code is not Code.UNKNOWN:
                self.removed.discard(name)
                return
        self.say(f"{name} is removed")

    def _ask(self, ask: Callable[[], object], name: str) -> None:
        async def asked() -> None:
            with contextlib.suppress(HoldfastError, KeyError, TimeoutError):
                async with asyncio.timeout(10):
                    await ask()  # type: ignore[misc]

        with self.cluster.machines.on(self.cluster.run_of(name)):
            task = asyncio.ensure_future(asked())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    # --- the end ------------------------------------------------------------------------------

    async def stop(self) -> None:
        """All faults stop: machines are on and reach each other, and nobody is drained."""
        self.say("all faults stop")
        cluster, etcd = self.cluster, self.cluster.etcd
        self.rate = 0.0
        self._dying.clear()
        self._slow.clear()
        cluster.network.weather = CALM
        cluster.network.heal()
        etcd.fate = lambda member, write: WriteFate.ANSWERED
        etcd.hinted = lambda member, key: 1
        etcd.reconnect()
        while etcd.late:
            etcd.deliver()
        for name in sorted(cluster.members):
            cluster.disks[name].crash_at = None
            clock = cluster.clocks[name]
            assert isinstance(clock, JumpingClock)
            clock.ahead_ms = 0
            if name in self.without_power:
                await self._lose_power(name)
            else:
                cluster.machines.resume(cluster.run_of(name))
        await self._let_go()
        for name in cluster.names:
            if name not in cluster.members:
                await self.start(name)
        for name in cluster.names:
            await cluster[name].set_draining(False)

    async def _let_go(self) -> None:
        """Members that etcd has as removed go; the one that asked may be gone before the answer."""
        observer = MemoryCoordination(self.cluster.etcd, "observer")
        registered = await observer.registered()
        await observer.close()
        for name in sorted(self.removed.difference(registered)):
            if name in self.cluster.names:
                self.cluster.names.remove(name)
            if name in self.cluster.members:
                await self._lose_power(name)
