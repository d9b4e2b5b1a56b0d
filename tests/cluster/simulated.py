"""Three whole members of a cluster in one loop: simulated network, disks, etcd and time."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.blobs.memory import MemoryBlobs
from holdfast.cluster.joining import CLUSTER_BOUNDS
from holdfast.cluster.member import ClusterMember, Membership
from holdfast.config import Config
from holdfast.gateway.service import Gateway
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import begin_identity
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.sequence.api import ClusterSettings, Registered
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination
from holdfast.state.memory import MemoryStore
from holdfast.testing import VirtualClock, run
from holdfast.testing.disk import Outcome, SimulatedDisk
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import Identity, TcpAddress

NAMES = ("a", "b", "c")
PARTITIONS = 4
FOLDER = "/m"
SETTINGS = ClusterSettings("simulation", PARTITIONS)

_whose: ContextVar[str] = ContextVar("whose", default="")


class SimulatedCluster:
    """Members by name; those that are there run."""

    def __init__(self, clock: VirtualClock, seed: int = 1) -> None:
        self.clock = clock
        self.network = SimulatedNetwork(seed=seed, weather=Weather(0.1, 1.0))
        self.etcd = MemoryCluster(clock)
        self.disks = {name: SimulatedDisk() for name in NAMES}
        self.members: dict[str, ClusterMember] = {}
        self.transports: dict[str, SimulatedTransport] = {}
        self.blobs = MemoryBlobs()
        self._starts = 0
        self._tasks: dict[str, set[asyncio.Task[Any]]] = {}
        asyncio.get_running_loop().set_task_factory(self._make_task)  # pyright: ignore

    def __getitem__(self, name: str) -> ClusterMember:
        return self.members[name]

    def gateway(self, name: str) -> Gateway:
        return self.members[name].node.gateway

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, context: Any = None
    ) -> "asyncio.Task[Any]":
        """Whatever a member begins belongs to it, and ends with it."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context)
        tasks = self._tasks.setdefault(_whose.get(), set())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def start(self, name: str) -> ClusterMember:
        """Starts a member on the disk that it has now."""
        token = _whose.set(name)
        try:
            return await self._start(name)
        finally:
            _whose.reset(token)

    async def _start(self, name: str) -> ClusterMember:
        self._starts += 1
        number, key = self._starts, sha256(name.encode()).digest()
        coordination = MemoryCoordination(self.etcd, name)
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
        membership = Membership(name, f"{name}/{number}", settings, identity, address)
        member = ClusterMember(membership, coordination, transport, keys, Path())
        disk = ClusterDisk.open(
            FOLDER, identity, clock=self.clock, disk=self.disks[name],
            segment_bytes=SEGMENT_BYTES_MIN,
        )  # fmt: skip
        journal = await member.open_disk(disk, self.clock)
        node = Node(
            journal, MemoryStore(), Config(), self.clock, Metrics(), place=member.place,
            content_store=lambda: self.blobs,
        )  # fmt: skip
        await node.begin()
        await member.begin(node, clock=self.clock)
        self.members[name] = member
        return member

    async def start_all(self) -> None:
        for name in NAMES:
            await self.start(name)
        await self.settled()

    async def kill(self, name: str) -> None:
        """The machine of a member loses its power: nobody is told."""
        member = self.members.pop(name)
        self.transports[name].crash()
        member.conductor._is_stopped = True
        member.node.runner.forget_timers()
        member.node.runtime.stop()
        coordination: Any = member.coordination
        coordination.stop()
        tasks = self._tasks.pop(name, set())
        for task in list(tasks):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        self.disks[name] = self.disks[name].after_crash(Outcome.DROP)

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
        owners = self.owners()
        return all(
            member.is_placed()
            and all(len(self.replicas(member, each)) == len(NAMES) for each in owners)
            and not member.conductor._doing
            and (not member.conductor._calm.is_rebalancing or len(self.members) < len(NAMES))
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

    run(played(), clock)
