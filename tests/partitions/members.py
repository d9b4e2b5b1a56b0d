"""Members that share the partitions of a node, over real Unix sockets or the simulated network."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.engine.jobs.values import (
    Activation,
    Completion,
    JobBatchIntent,
    JobIntent,
    NewJob,
)
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import TOPIC
from holdfast.journal.memory import MemoryJournal
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.partitions.api import Partitions, Placement
from holdfast.partitions.placement import Placements
from holdfast.partitions.routed import RoutedPartitions
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY
from holdfast.runtime import Runtime
from holdfast.state.memory import MemoryStore
from holdfast.testing.loop import run
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import (
    Address,
    Connection,
    Handler,
    Identity,
    Link,
    Links,
    TcpAddress,
    Transport,
    UnixAddress,
)
from holdfast.transport.sockets import SocketTransport

NAMES = ("a", "b")
COUNT = 4  # the odd partitions are a's, the even ones b's
HOME = {1: "a", 2: "b", 3: "a", 4: "b"}
IN_FLIGHT_MAX = 100


class Member:
    """One member, with a log and a state of its own; to its node it is the place it has."""

    home = Path()
    far_content = None

    def __init__(
        self,
        name: str,
        transport: Transport,
        addresses: dict[str, Address],
        home: dict[int, str] = HOME,
        wait_ms: int = 0,
    ) -> None:
        self.name = name
        self.wait_ms = wait_ms
        self.own = [each for each in home if home[each] == name]
        self.transport = transport
        self.links = Links(name, transport, addresses, self._serving)
        self.placements = Placements(Placement(each, HOME[each], 1) for each in HOME)
        self.connections: list[Connection] = []
        clock = getattr(asyncio.get_running_loop(), "clock", None) or SystemClock()
        journal = MemoryJournal(clock=clock)
        journal.create_topic(TOPIC, COUNT)
        config = Config(commands_in_flight_max=IN_FLIGHT_MAX)
        self.node = Node(journal, MemoryStore(), config, clock, Metrics(), place=self)
        self.runner = self.node.runner
        self.runtime = self.node.runtime
        self.gateway = self.node.gateway

    def around(self, runtime: Runtime) -> Partitions:
        ways = {link.peer: link for link in self.links}
        self.partitions = RoutedPartitions(
            self.name, runtime.partitions, self.placements, ways, self.wait_ms
        )
        return self.partitions

    def _serving(self, link: Link, connection: Connection) -> Handler:
        self.connections.append(connection)
        return self.partitions.serving(link, connection)

    async def start(self) -> None:
        await self.node.begin()
        await self.links.start()

    async def close(self) -> None:
        await self.links.close()
        await self.node.close()


class Cluster:
    """Members a and b."""

    def __init__(self, way: str, folder: Path, wait_ms: int = 0) -> None:
        self.way = way
        self.wait_ms = wait_ms
        self.folder = folder
        self.network: SimulatedNetwork | None = None
        self.members: dict[str, Member] = {}
        self.addresses: dict[str, Address] = {}

    def play(self, story: "Callable[[Cluster], Coroutine[Any, Any, None]]") -> None:
        """Runs a story with both members up."""

        async def whole() -> None:
            for name in NAMES:
                await self.start(name)
            for member in self.members.values():
                for link in member.links:
                    await link.up()
            try:
                await story(self)
            finally:
                for member in self.members.values():
                    await member.close()

        if self.way == "simulated":
            self.network = SimulatedNetwork(seed=3, weather=Weather(0.1, 5.0))
            self.addresses = {name: TcpAddress(name, 1) for name in NAMES}
            run(whole())
        else:
            self.addresses = {
                name: UnixAddress(str(self.folder / f"{name}.sock")) for name in NAMES
            }
            uvloop.run(whole())

    async def start(self, name: str, home: dict[int, str] = HOME) -> Member:
        identity = Identity(name, "orders")
        transport: Transport
        if self.network is not None:
            transport = SimulatedTransport(self.network, name, identity)
        else:
            transport = SocketTransport(identity)
        self.members[name] = member = Member(name, transport, self.addresses, home, self.wait_ms)
        await member.start()
        return member

    @property
    def a(self) -> Partitions:
        return self.members["a"].partitions

    @property
    def b(self) -> Partitions:
        return self.members["b"].partitions

    def break_connection(self) -> None:
        """The connection ends without a word; the links make another one."""
        connection: Any = self.members["a"].links["b"].connection
        connection._wire.abort()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a condition with a deadline
            await asyncio.sleep(0.001)


def create(type_: str = "mail", payload: bytes = b"{}", **more: Any) -> Command:
    return Command(ValueType.JOB, JobIntent.CREATE, NO_KEY, NewJob(type_, payload, **more))


def activation(type_: str = "mail", jobs_max: int = 10) -> Command:
    value = Activation((type_,), "worker", jobs_max, 60_000)
    return Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, NO_KEY, value)


def complete(key: int, lease: int, result: bytes = b"1") -> Command:
    return Command(ValueType.JOB, JobIntent.COMPLETE, key, Completion(lease, result))


async def key_of_new(partitions: Partitions, partition: int, **more: Any) -> int:
    """The key of a job that is made there."""
    (reply,) = await partitions.submit(partition, [create(**more)])
    assert isinstance(reply, Reply) and reply.rejection is None, reply
    return reply.key
