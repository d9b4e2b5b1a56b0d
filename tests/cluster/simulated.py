"""Whole members of a cluster in one loop: simulated network, disks, etcd and time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from tests.cluster.machines import Machines, MachinesNetwork, whose
from tests.journal.cluster.trio import forget

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import Clock
from holdfast.cluster.joining import CLUSTER_BOUNDS
from holdfast.cluster.member import ClusterMember, Membership
from holdfast.config import Config
from holdfast.engine.batch.selector import Selector
from holdfast.errors import Unknown
from holdfast.gateway.service import Gateway
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import begin_identity
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.sequence.api import ClusterSettings, Registered
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, MemoryKeys
from holdfast.state.memory import MemoryStore
from holdfast.steady_clock import SteadyClock
from holdfast.testing import VirtualClock
from holdfast.testing.disk import DiskOutcome, SimulatedDisk
from holdfast.testing.network import Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import Identity, TcpAddress

NAMES = ("a", "b", "c")
PARTITIONS = 4
FOLDER = "/m"
SETTINGS = ClusterSettings("simulation", PARTITIONS)

T = TypeVar("T")


class SimulatedCluster:
    """Members by name; those that are there run."""

    def __init__(self, clock: VirtualClock, seed: int = 1, *, names: Sequence[str] = NAMES) -> None:
        self.clock = clock
        self.names = list(names)  # that are to be members
        self.network = MachinesNetwork(seed=seed, weather=Weather(0.1, 1.0))
        self.etcd = MemoryCluster(clock)
        self.disks = {name: SimulatedDisk() for name in names}
        self.stores: dict[str, MemoryStore] = {}  # of members that have run before
        self.clocks: dict[str, Clock] = {}  # of members whose clock is another one
        self.members: dict[str, ClusterMember] = {}
        self.transports: dict[str, SimulatedTransport] = {}
        self.blobs = MemoryBlobs()
        self.selector: Selector | None = None  # of items of batch operations
        self.on_started: list[Callable[[str, ClusterMember], None]] = []  # before it joins
        self._starts = 0
        self._runs: dict[str, str] = {}  # member -> what runs on its machine
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Machines)
        self.machines = loop

    def __getitem__(self, name: str) -> ClusterMember:
        return self.members[name]

    def gateway(self, name: str) -> Gateway:
        return self.members[name].node.gateway

    def run_of(self, name: str) -> str:
        """What the machine of a member is called while it is on this time."""
        return self._runs[name]

    async def ask(self, name: str, ask: Callable[[Gateway], Awaitable[T]]) -> T:
        """Asks a member as a client does: what it does about it is done on its machine."""
        if name not in self.members:
            raise Unknown(f"Member {name!r} does not run")
        with self.machines.on(self._runs[name]):
            asked: asyncio.Future[T] = asyncio.ensure_future(ask(self.gateway(name)))
        try:
            return await asked
        except asyncio.CancelledError:
            if asked.cancelled() and not _is_cancelling():
                raise Unknown(f"Member {name!r} is gone") from None
            asked.cancel()
            raise

    async def start(self, name: str) -> ClusterMember:
        """Starts a member on the disk that it has now."""
        self._starts += 1
        run = self._runs[name] = f"{name}/{self._starts}"
        with self.machines.on(run):
            starting = asyncio.ensure_future(self._start(name, self._starts))
        try:
            return await starting
        except BaseException:
            if name not in self.members:
                self.disks[name] = self.disks[name].after_crash(DiskOutcome.KEEP)
                await self.machines.end(run)
            raise

    async def _start(self, name: str, number: int) -> ClusterMember:
        key = sha256(name.encode()).digest()
        clock = SteadyClock(self.clocks.get(name, self.clock))
        coordination = MemoryCoordination(self.etcd, name)
        _run_here(coordination.keys)
        settings = await coordination.settle(SETTINGS)
        await coordination.register(Registered(name, key.hex()))
        identity = await begin_identity(
            self.disks[name], FOLDER, name, coordination, lambda: f"{name}{number}"
        )
        keys = {name: key}
        transport = self.transports[name] = SimulatedTransport(
            self.network, name, Identity(name, settings.id), bounds=CLUSTER_BOUNDS, key=key,
            keys=keys,
        )  # fmt: skip
        address = TcpAddress(name, number)
        membership = Membership(name, whose.get(), settings, identity, address)
        member = ClusterMember(membership, coordination, transport, keys, Path())
        disk = ClusterDisk.open(
            FOLDER, identity, clock=clock, disk=self.disks[name], segment_bytes=SEGMENT_BYTES_MIN,
        )  # fmt: skip
        journal = await member.open_disk(disk, clock)
        self.stores[name] = store = self.stores.get(name, MemoryStore()).crash()
        node = Node(
            journal, store, Config(), clock, Metrics(), self.selector, place=member.place,
            content_store=lambda: self.blobs,
        )  # fmt: skip
        await node.begin()
        for tell in self.on_started:
            tell(name, member)
        await member.begin(node, clock=clock)
        self.members[name] = member
        return member

    async def start_all(self) -> None:
        for name in self.names:
            await self.start(name)
        await self.settled()

    async def kill(
        self, name: str, outcome: DiskOutcome = DiskOutcome.DROP, *, seed: int = 0
    ) -> None:
        """The machine of a member loses its power: nobody is told."""
        member, disk = self.members.pop(name), self.disks[name]
        self.transports[name].crash()
        coordination: Any = member.coordination
        coordination.stop()
        self.disks[name] = disk.after_crash(outcome, seed=seed)
        disk._crashed = True  # whatever ends writes nothing any more
        member.conductor._is_stopped = True
        member.node.runner.forget_timers()
        member.node.runtime.stop()
        await self.machines.end(self._runs[name])
        await forget(member.journal)

    def wipe(self, name: str) -> None:
        """A machine that is off gets an empty disk."""
        self.disks[name] = SimulatedDisk()
        self.stores.pop(name, None)

    async def until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):  # of virtual time
            while not condition():  # noqa: ASYNC110 - a condition with a deadline
                await asyncio.sleep(0.01)

    async def settled(self) -> None:
        """All partitions are open once, on the disks of all members, and known to all."""
        try:
            await self.until(self.is_settled)
        except TimeoutError as error:
            raise AssertionError(self.state()) from error

    def state(self) -> str:
        """How everybody sees it, for a story that goes wrong."""
        lines: list[str] = []
        for name, member in self.members.items():
            conductor, chains = member.conductor, range(1, PARTITIONS + 1)
            lines += [
                f"{name}: owns {conductor.owned()}, hears {sorted(member.peers.heard())},"
                f" does {conductor._doing}, rebalances {conductor._calm.is_rebalancing}",
                *(f"    {each}: {member.journal.chain(each).last}" for each in chains),
                *(f"    {each}" for each in member.problems()),
            ]
        return "\n".join(lines)

    def is_settled(self) -> bool:
        owners, count = self.owners(), len(self.names)
        disks = min(count, SETTINGS.replicas)
        return all(
            member.is_placed()
            and all(len(self.replicas(member, each)) == disks for each in owners)
            and not member.conductor._doing
            and (not member.conductor._calm.is_rebalancing or len(self.members) < count)
            for member in self.members.values()
        )

    def replicas(self, member: ClusterMember, partition: int) -> tuple[Any, ...]:
        last = member.journal.chain(partition).last
        return () if last is None else last.replicas

    def owners(self) -> dict[int, str]:
        """Who has which partition open; an error if two have one in the same epoch."""
        found: dict[int, tuple[int, str]] = {}
        for name, member in self.members.items():
            for partition in member.conductor.owned():
                epoch = member.node.runner.epoch(partition)
                assert epoch is not None
                before = found.get(partition, (0, ""))
                assert before[0] != epoch, f"partition {partition} has two owners in epoch {epoch}"
                found[partition] = max(before, (epoch, name))
        return {partition: owner for partition, (_, owner) in found.items()}

    async def close(self) -> None:
        for member in self.members.values():
            await member.close()


def play(story: Callable[[SimulatedCluster], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Plays a story on virtual time."""
    clock = VirtualClock()

    async def played() -> None:
        cluster = SimulatedCluster(clock, seed)
        await story(cluster)
        await cluster.close()

    run_machines(played(), clock)


def run_machines(coroutine: Coroutine[Any, Any, T], clock: VirtualClock) -> T:
    """Like `run` of holdfast's testing kit, with machines that can be stopped."""
    loop = Machines(clock)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.end_all()
        loop.close()


def _run_here(keys: MemoryKeys) -> None:
    """A member hears what the store tells it on its own machine, not on the writer's."""
    context, lapsed = copy_context(), keys.lapsed

    def heard() -> None:
        asyncio.get_running_loop().call_soon(lapsed, context=context.copy())

    keys.lapsed = heard  # type: ignore[method-assign]


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
