"""Members in virtual time over a simulated network and one log that knows epochs.

Partitions move between members, drained or taken over; members crash at any point, also in the
middle of a move, and come back with what their store had; appends are refused or of unknown
outcome; connections break. Everything follows from a seed.
"""

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from holdfast.config import Config
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.kernel.recovery import recover_one
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.errors import Code, HoldfastError
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.journal import Append
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.partitions import Partitions, Placement
from holdfast.partitions.placement import Placements
from holdfast.partitions.routed import RoutedPartitions
from holdfast.records import Record, RecordKind, ValueType
from holdfast.runtime import Runtime
from holdfast.state.memory import MemoryStore
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import Connection, Handler, Identity, Link, Links, TcpAddress

NAMES = ("a", "b", "c")
PARTITIONS = 12
TASKS = 60
STORY_SECONDS = 60.0
QUIET_SECONDS = 600.0
# What is said when it is not known, or certain not to have happened: it is asked again.
PASSING = frozenset(
    {Code.UNAVAILABLE, Code.UNKNOWN, Code.MOVED, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED}
)


class SharedLog:
    """A log that outlives the members that write it."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def close(self) -> None:
        """It stays open for the others."""


class SimulatedMember:
    """One member; to its node it is the place it has."""

    home = Path()
    far_content = None

    def __init__(self, cluster: "SimulatedCluster", name: str, store: MemoryStore) -> None:
        self.name = name
        self.store = store
        self.own: list[int] = []  # partitions are opened one by one
        self.is_up = True
        self.placements = Placements(cluster.placements.values())
        identity = Identity(name, "simulation")
        transport = SimulatedTransport(cluster.network, name, identity)
        addresses = {each: TcpAddress(each, 1) for each in NAMES}
        self.links = Links(name, transport, addresses, self._serving)
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        log: Any = SharedLog(cluster.journal)
        self.node = Node(log, store, Config(), clock, Metrics(), place=self)
        self.runner, self.gateway = self.node.runner, self.node.gateway
        # Few rows and smaller slices, so that moves and crashes meet writes that are under way.
        self.runner.behind.rows_max, self.runner.behind.slice_rows = 40, 3

    def around(self, runtime: Runtime) -> Partitions:
        ways = {link.peer: link for link in self.links}
        self.partitions = RoutedPartitions(self.name, runtime.partitions, self.placements, ways)
        for link in self.links:
            link.on_up(lambda: runtime.post.reached(range(1, PARTITIONS + 1)))
        return self.partitions

    def _serving(self, link: Link, connection: Connection) -> Handler:
        return self.partitions.serving(link, connection)

    async def start(self) -> None:
        await self.node.begin()
        await self.links.start()

    async def crash(self, network: SimulatedNetwork) -> None:
        """The process ends: nobody is told, and what was not flushed is gone."""
        self.is_up = False
        network.detach(self.name)
        self.node.runtime.stop()
        runner = self.runner
        assert runner._task is not None
        for task in (
            runner._task,
            *runner._outcomes.opening.values(),
            *self.links._dialing.values(),
        ):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        runner.forget_timers()
        for link in self.links:
            if link.connection is not None:
                link.connection.close()


class SimulatedCluster:
    """All members, the log they share, and the code that decides where partitions live."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.network = SimulatedNetwork(seed=seed, weather=Weather(0.1, 20.0))
        self.journal = MemoryJournal(
            clock=asyncio.get_running_loop().clock,  # type: ignore[attr-defined]
            fate=self._fate,
        )
        self.journal.create_topic(TOPIC, PARTITIONS)
        self.is_rough = True
        self.placements = {
            each: Placement(each, NAMES[each % len(NAMES)], 1) for each in range(1, PARTITIONS + 1)
        }
        self.members: dict[str, SimulatedMember] = {}
        self.moves: Counter[str] = Counter()
        self._moving: set[int] = set()

    def _fate(self, append: Append) -> Fate:
        if not self.is_rough or self.random.random() > 0.02:
            return Fate.SLOW if self.random.random() < 0.2 else Fate.DURABLE
        return self.random.choice([Fate.KEPT, Fate.LATE, Fate.LOST])

    async def start(self) -> None:
        for name in NAMES:
            await self.begin(name, MemoryStore())

    async def begin(self, name: str, store: MemoryStore) -> None:
        """A member starts, and takes the partitions that are placed with it in a new epoch."""
        self.members[name] = member = SimulatedMember(self, name, store)
        await member.start()
        for partition, placement in list(self.placements.items()):
            if placement.member == name and partition not in self._moving:
                await self.move(partition, name)

    # --- what happens to them -----------------------------------------------------------------

    async def move(self, partition: int, target: str, *, drains: bool = False) -> None:
        """Another owner, in the next epoch; with the former one's help, or without."""
        if partition in self._moving:
            return
        self._moving.add(partition)
        try:
            await self._move(partition, target, drains)
        finally:
            self._moving.discard(partition)

    async def _move(self, partition: int, target: str, drains: bool) -> None:
        former = self.members.get(self.placements[partition].member)
        if drains and former is not None and former.is_up:
            with contextlib.suppress(HoldfastError, TimeoutError):
                async with asyncio.timeout(5):
                    await former.runner.close_partition(partition)
        # An owner that doubts what its log has opens it again in a newer epoch by itself.
        taken = self.journal._topics[TOPIC].partitions[partition - 1].epoch
        epoch = max(self.placements[partition].epoch, taken) + 1
        placement = self.placements[partition] = Placement(partition, target, epoch)
        self.moves["drained" if drains else "taken"] += 1
        loop = asyncio.get_running_loop()
        for member in self.members.values():
            delay = self.random.uniform(0, 0.5)  # nobody hears of it at the same time
            loop.call_later(delay, member.placements.learn, placement)
        there = self.members[target]
        if not there.is_up:
            return
        there.placements.learn(placement)
        with contextlib.suppress(HoldfastError):
            if there.runner.epoch(partition) is not None:
                await there.runner.close_partition(partition)
            await there.runner.open(partition, epoch)

    async def crash_and_return(self, name: str) -> None:
        member = self.members[name]
        if not member.is_up or sum(each.is_up for each in self.members.values()) < 2:
            return
        self.moves["crashed"] += 1
        await member.crash(self.network)
        await asyncio.sleep(self.random.uniform(0.1, 8))
        survivors = [each for each, other in self.members.items() if other.is_up]
        if self.random.random() < 0.5:  # others take its partitions while it is away
            for partition, placement in list(self.placements.items()):
                if placement.member == name and survivors:
                    await self.move(partition, self.random.choice(survivors))
        await self.begin(name, member.store.crash())

    async def trouble(self) -> None:
        """Moves, crashes and broken connections, until the story has gone on long enough."""
        loop = asyncio.get_running_loop()
        end = loop.time() + STORY_SECONDS
        crashing: set[asyncio.Task[None]] = set()
        while loop.time() < end:
            await asyncio.sleep(self.random.expovariate(1 / 1.5))
            what, partition = self.random.random(), self.random.randint(1, PARTITIONS)
            up = [name for name, member in self.members.items() if member.is_up]
            if what < 0.6 and up:
                drains = self.random.random() < 0.5
                task = loop.create_task(self.move(partition, self.random.choice(up), drains=drains))
            elif what < 0.75:
                task = loop.create_task(self.crash_and_return(self.random.choice(NAMES)))
            else:
                self.moves["reset"] += 1
                self._break_connection()
                continue
            crashing.add(task)
        await asyncio.gather(*crashing)
        self.is_rough = False

    async def settle(self) -> None:
        """The trouble is over: whatever has no owner gets one."""
        for partition, placement in list(self.placements.items()):
            if self.members[placement.member].runner.epoch(partition) is None:
                await self.move(partition, placement.member)

    def _break_connection(self) -> None:
        for member in self.random.sample(list(self.members.values()), len(NAMES)):
            for link in member.links:
                if member.is_up and link.connection is not None:
                    connection: Any = link.connection
                    connection._wire.abort()
                    return

    # --- who works with them ------------------------------------------------------------------

    def any_gateway(self) -> Any:
        up = [member for member in self.members.values() if member.is_up]
        return self.random.choice(up).gateway

    async def persistently(self, ask: Any) -> Any:
        """An answer, asked for again while it is not known, each time of any member."""
        while True:
            try:
                async with asyncio.timeout(15):
                    return await ask(self.any_gateway())
            except TimeoutError:
                pass
            except HoldfastError as error:
                if error.code not in PASSING:
                    raise
            await asyncio.sleep(self.random.uniform(0.05, 0.5))

    async def submit(self, number: int) -> str:
        task = NewTask("work", msgspec.Raw(b"%d" % number), key=f"task-{number}")
        [receipt] = await self.persistently(lambda gateway: gateway.tasks.submit([task]))
        return receipt.task_key

    async def work(self, done: set[str], count: int) -> None:
        """A worker: what it reported, and was told is done, is done."""
        request = ActivationRequest(["work"], "worker", 5, 20_000, 2_000)
        while len(done) < count:
            jobs = await self.persistently(lambda gateway: gateway.jobs.activate(request))
            for job in jobs:
                completion = JobCompletion(job.job_key, job.lease, msgspec.Raw(bytes(job.payload)))
                [answer] = await self.persistently(
                    lambda gateway, completion=completion: gateway.jobs.complete([completion])
                )
                if answer.code is None:
                    done.add(job.job_key)
                elif (await self.outcome(job.job_key)).state == "COMPLETED":
                    done.add(job.job_key)  # an attempt that nobody was told of

    async def outcome(self, key: str) -> Any:
        return await self.persistently(lambda gateway: gateway.tasks.get(key))

    # --- what must hold -----------------------------------------------------------------------

    async def records(self, partition: int) -> list[Record]:
        found: list[Record] = []
        bounds = self.journal.bounds(TOPIC, partition)
        offset = bounds.earliest
        while offset < bounds.next:
            entries = await self.journal.read(TOPIC, partition, offset)
            if not entries:
                break
            found += DISPATCH.codec.decode_many([entry.payload for entry in entries])
            offset = entries[-1].offset + 1
        return found

    async def check(self, keys: dict[int, str], done: set[str]) -> None:
        """Acknowledged is present and happened once; what is replayed is what is live."""
        created: Counter[str] = Counter()
        completed: Counter[int] = Counter()
        for partition in range(1, PARTITIONS + 1):
            records = await self.records(partition)
            positions = [each.position for each in records]
            assert positions == list(range(len(positions))), f"gaps or doubles on {partition}"
            for record in records:
                if record.kind is not RecordKind.EVENT or record.value_type != ValueType.JOB:
                    continue
                if record.intent == JobIntent.CREATED:
                    created[record.value.idempotency_key] += 1
                elif record.intent == JobIntent.COMPLETED:
                    completed[record.key] += 1
        assert created == Counter(f"task-{number}" for number in keys), "each task is made once"
        assert max(completed.values(), default=0) <= 1, "nothing is done twice"
        assert {int(key) for key in done} <= set(completed), "what was told is done is done"
        assert set(keys.values()) == {str(key) for key in completed}, "and all of it is"
        await self._check_states()

    async def _check_states(self) -> None:
        for partition, placement in self.placements.items():
            runner = self.members[placement.member].runner
            live = runner.processor(partition)
            store = MemoryStore()
            replayed = open_partition(store, partition, PARTITIONS)
            async for _ in recover_one(replayed, SharedLog(self.journal), store):  # type: ignore[arg-type]
                pass
            assert replayed.state.dump() == live.state.dump(), f"partition {partition} differs"


async def story(seed: int) -> Counter[str]:
    """All of it with one seed; how much happened."""
    cluster = SimulatedCluster(seed)
    await cluster.start()
    loop, done = asyncio.get_running_loop(), set[str]()
    keys: dict[int, str] = {}

    async def client(numbers: range) -> None:
        for number in numbers:
            keys[number] = await cluster.submit(number)
            await asyncio.sleep(cluster.random.uniform(0, 1.5))

    clients = [loop.create_task(client(range(each, TASKS, 3))) for each in range(3)]
    workers = [loop.create_task(cluster.work(done, TASKS)) for _ in range(3)]
    await cluster.trouble()
    await cluster.settle()
    async with asyncio.timeout(QUIET_SECONDS):
        await asyncio.gather(*clients)
        await asyncio.gather(*workers)
        for key in keys.values():
            assert (await cluster.outcome(key)).state == "COMPLETED", key
    await cluster.settle()
    await cluster.check(keys, done)
    for member in cluster.members.values():
        await member.crash(cluster.network)
    return cluster.moves
