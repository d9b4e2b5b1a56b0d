"""Two members in one process, each with a log and a state on the disk: what is asked of a partition
is asked of it here, or by way of the other member."""

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.engine.jobs.values import (
    Activation,
    Completion,
    JobBatchIntent,
    JobIntent,
    NewJob,
)
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.journal.local import LocalJournal
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.partitions import Partitions, Placement
from holdfast.partitions.placement import Placements
from holdfast.partitions.routed import RoutedPartitions
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY
from holdfast.runtime import Runtime
from holdfast.state.rocks import RocksStore
from holdfast.transport import Connection, Handler, Identity, Link, Links, UnixAddress
from holdfast.transport.sockets import SocketTransport

OWNERS = ("a", "b")  # of partitions 1 and 2
PAYLOAD = b'{"customer":4711,"order":"2026-000815","total":129.9}'
LEASE_MS = 600_000
CLIENTS = 4  # that each have one request under way
_GC_THRESHOLD = (50_000, 20, 50)  # as a node sets it


class _Member:
    """One member; to its node it is the place that it has."""

    far_content = None

    def __init__(self, number: int, folder: Path) -> None:
        self.home = folder
        self.own = [number]
        self._name = OWNERS[number - 1]
        transport = SocketTransport(Identity(self._name, "bench"))
        addresses = {name: UnixAddress(str(folder / f"{name}.sock")) for name in OWNERS}
        self.links = Links(self._name, transport, addresses, self._serving)
        journal = LocalJournal.open(folder / f"journal-{self._name}")
        journal.create_topic(TOPIC, len(OWNERS))
        store = RocksStore(folder / f"state-{self._name}")
        self.node = Node(journal, store, Config(), SystemClock(), Metrics(), place=self)

    def around(self, runtime: Runtime) -> Partitions:
        placements = Placements(
            Placement(number, name, 1) for number, name in enumerate(OWNERS, start=1)
        )
        ways = {link.peer: link for link in self.links}
        self.partitions = RoutedPartitions(self._name, runtime.partitions, placements, ways)
        return self.partitions

    def _serving(self, link: Link, connection: Connection) -> Handler:
        return self.partitions.serving(link, connection)

    async def start(self) -> None:
        await self.node.begin()
        await self.links.start()

    async def close(self) -> None:
        await self.links.close()
        await self.node.close()


class TwoMembers:
    """Partition 2 from its owner, and from the other member."""

    def __init__(self, loop: asyncio.Runner, folder: Path) -> None:
        self._loop = loop
        self._folder = folder
        self._members: list[_Member] = []
        self._threshold = gc.get_threshold()
        gc.set_threshold(*_GC_THRESHOLD)
        loop.run(self._start())

    async def _start(self) -> None:
        for number in range(1, len(OWNERS) + 1):
            self._members.append(_Member(number, self._folder))
            await self._members[-1].start()
        for member in self._members:
            await asyncio.gather(*(link.up() for link in member.links))

    def close(self) -> None:
        for member in self._members:
            self._loop.run(member.close())
        gc.set_threshold(*self._threshold)

    def lone(self, commands: int, window: int, *, remote: bool) -> float:
        """Microseconds of processor time for each of many lone commands, so many under way."""

        async def work(partitions: Partitions) -> None:
            async def caller(number: int) -> None:
                for _ in range(number, commands, window):
                    await partitions.submit(2, [_create()])

            await asyncio.gather(*(caller(number) for number in range(window)))

        spent = self._loop.run(self._costing(remote, work)) / commands
        self._loop.run(self._finish(commands))
        return spent

    def tasks(self, count: int, batch: int, *, remote: bool) -> float:
        """Microseconds of processor time for each task: submitted, leased and completed."""

        rounds = max(1, count // (batch * CLIENTS))

        async def work(partitions: Partitions) -> None:
            async def client() -> None:
                for _ in range(rounds):
                    await partitions.submit(2, [_create() for _ in range(batch)])
                    (leased,) = await partitions.activate(2, _activation(batch))
                    await partitions.submit(2, _completions(leased.value))

            await asyncio.gather(*(client() for _ in range(CLIENTS)))

        return self._loop.run(self._costing(remote, work)) / (rounds * batch * CLIENTS)

    async def _costing(self, remote: bool, work: Callable[[Partitions], object]) -> float:
        partitions = self._members[0 if remote else 1].partitions
        begun = time.process_time()
        await work(partitions)  # pyright: ignore[reportGeneralTypeIssues]
        return (time.process_time() - begun) * 1e6

    async def _finish(self, count: int) -> None:
        """Completes what waits, so that the next round finds what this one found."""
        partitions = self._members[1].partitions
        for begin in range(0, count, 1_000):
            (leased,) = await partitions.activate(2, _activation(min(1_000, count - begin)))
            await partitions.submit(2, _completions(leased.value))


def _create() -> Command:
    return Command(ValueType.JOB, JobIntent.CREATE, NO_KEY, NewJob("mail", PAYLOAD))


def _activation(jobs: int) -> Command:
    value = Activation(("mail",), "worker", jobs, LEASE_MS)
    return Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, NO_KEY, value)


def _completions(jobs: Sequence[object]) -> list[Command]:
    return [
        Command(ValueType.JOB, JobIntent.COMPLETE, job.key, Completion(job.lease))  # pyright: ignore
        for job in jobs
    ]
