"""Three members in one loop: journals over simulated disks, a wire between them, one store.

    async def story(trio: Trio) -> None:
        a = await trio.start("a")
        ...
    play(story)

Members are killed with or without their power, come back, lose or roll back their disks; the wire
delays, fills up and is cut. Time is virtual, and every message goes through its bytes.
"""

import asyncio
import contextlib
import copy
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.errors import Unavailable, Unknown
from holdfast.journal import Append, Appended, Journal, Outcome, Refused, Retention, Taken
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import begin_identity
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.messages import Answer, Call, Told
from holdfast.journal.local import RealDisk
from holdfast.limits import MEMBER_BYTES_MAX, SEGMENT_BYTES_MIN
from holdfast.sequence.api import Coordination, Replica
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination
from holdfast.sequence.opening import open_coordination
from holdfast.testing import VirtualClock, run
from holdfast.testing.disk import DiskOutcome as Loss
from holdfast.testing.disk import SimulatedDisk

NAMES = ("a", "b", "c")
_told, _call, _answer = (msgspec.msgpack.Decoder(each) for each in (Told, Call, Answer))


class Wire:
    """One connection between each two members, in order both ways."""

    def __init__(self) -> None:
        self.delay_ms = 0.1
        self.room_bytes = MEMBER_BYTES_MAX
        self.cut: set[frozenset[str]] = set()
        self.silent: set[tuple[str, str]] = set()  # (from, to) of what is not delivered
        self.members: dict[str, ClusterJournal] = {}
        self.peers: dict[str, WirePeers] = {}
        self.told: list[tuple[str, str, Any]] = []  # everything that was sent
        self.calls = 0
        self._queues: dict[tuple[str, str], deque[tuple[int, Callable[[], None]]]] = {}

    def is_up(self, one: str, other: str) -> bool:
        both = one in self.members and other in self.members
        return both and frozenset((one, other)) not in self.cut

    def waiting_bytes(self, sender: str, target: str) -> int:
        return sum(size for size, _ in self._queues.get((sender, target), ()))

    def send(self, sender: str, target: str, size_bytes: int, deliver: Callable[[], None]) -> None:
        queue = self._queues.setdefault((sender, target), deque())
        queue.append((size_bytes, deliver))
        asyncio.get_running_loop().call_later(self.delay_ms / 1000, self._deliver, queue)

    def hold(self, sender: str, target: str) -> None:
        """Nothing that one sends is read by the other, which takes it for a while."""
        self.silent.add((sender, target))

    def drop(self, one: str, other: str) -> None:
        """The connection ends: what is under way is lost."""
        for pair in ((one, other), (other, one)):
            queue = self._queues.pop(pair, None)
            if queue is not None:
                queue.clear()
            self.silent.discard(pair)
            if pair[0] in self.members:
                self.peers[pair[0]].lost(pair[1])
                self.members[pair[0]].lost(pair[1])

    def _deliver(self, queue: "deque[tuple[int, Callable[[], None]]]") -> None:
        pair = next((pair for pair, each in self._queues.items() if each is queue), None)
        if queue and pair not in self.silent:
            queue.popleft()[1]()

    def go_on(self, sender: str, target: str) -> None:
        """What was held is read now."""
        self.silent.discard((sender, target))
        queue = self._queues.get((sender, target), deque())
        for _ in range(len(queue)):
            asyncio.get_running_loop().call_soon(self._deliver, queue)


class WirePeers:
    """The port `Peers` of one member."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire = wire
        self._name = name
        self._calls: dict[str, set[asyncio.Future[Any]]] = {}

    def heard(self) -> set[str]:
        return {each for each in self._wire.members if self._wire.is_up(self._name, each)}

    def nonce(self, member: str) -> str | None:
        return None

    def disk(self, member: str) -> str | None:
        return self._wire.members[member].replica.disk if member in self.heard() else None

    def tell(self, members: Sequence[str], message: Told) -> list[str]:
        data, left_out = msgspec.msgpack.encode(message), list[str]()
        for member in members:
            full = self._wire.waiting_bytes(self._name, member) > self._wire.room_bytes
            if full or not self._wire.is_up(self._name, member):
                left_out.append(member)
                continue
            self._wire.told.append((self._name, member, message))
            self._wire.send(
                self._name, member, len(data),
                lambda member=member: self._arrived(member, data),
            )  # fmt: skip
        return left_out

    def _arrived(self, member: str, data: bytes) -> None:
        journal = self._wire.members.get(member)
        if journal is not None:
            journal.told(self._name, _told.decode(data))

    async def call(self, member: str, message: Call) -> Answer:
        if not self._wire.is_up(self._name, member):
            raise Unavailable(f"{member} is not reached")
        self._wire.calls += 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._calls.setdefault(member, set())
        waiting.add(answer)
        answer.add_done_callback(waiting.discard)
        data = msgspec.msgpack.encode(message)
        self._wire.send(self._name, member, len(data), lambda: self._called(member, data, answer))
        return await answer

    def _called(self, member: str, data: bytes, answer: "asyncio.Future[Answer]") -> None:
        journal = self._wire.members.get(member)
        if journal is None:
            return

        async def work() -> None:
            try:
                found: Any = msgspec.msgpack.encode(
                    await journal.called(self._name, _call.decode(data))
                )
            except Exception as error:
                found = error
            size = len(found) if isinstance(found, bytes) else 100
            self._wire.send(member, self._name, size, lambda: _set(answer, found))

        asyncio.ensure_future(work())  # noqa: RUF006

    def lost(self, member: str) -> None:
        for answer in list(self._calls.pop(member, ())):
            _set(answer, Unknown(f"the connection to {member} has ended"))


def _set(answer: "asyncio.Future[Answer]", found: "bytes | Exception") -> None:
    if not answer.done():
        if isinstance(found, bytes):
            answer.set_result(_answer.decode(found))
        else:
            answer.set_exception(found)


class Trio:
    """Three members, their disks and what is between them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.wire = Wire()
        self.store = MemoryCluster(clock)
        self.etcd_url = ""  # of a real etcd, in the place of the store
        self.disks: dict[str, Any] = {name: SimulatedDisk() for name in NAMES}
        self.folders = dict.fromkeys(NAMES, "/m")
        self.ids: dict[str, str] = {}  # disks of the members, as they were last
        self.starts = 0
        self._opened: list[Coordination] = []
        self.topics: dict[str, tuple[int, Retention | None]] = {"t": (3, None)}
        self.segment_bytes = SEGMENT_BYTES_MIN

    def __getitem__(self, name: str) -> ClusterJournal:
        return self.wire.members[name]

    async def start_all(self) -> list[ClusterJournal]:
        for name in NAMES:  # the set of all is known before the first range is opened
            self.ids[name] = (await self._identity(name)).disk
        return [await self.start(name) for name in NAMES]

    async def start(self, name: str) -> ClusterJournal:
        """Starts a member on the disk that it has now."""
        identity = await self._identity(name)
        self.ids[name] = identity.disk
        self.starts += 1
        disk = ClusterDisk.open(
            self.folders[name], identity, clock=self.clock, disk=self.disks[name],
            segment_bytes=self.segment_bytes,
        )  # fmt: skip
        peers = self.wire.peers[name] = WirePeers(self.wire, name)
        journal = await ClusterJournal.open(
            name, disk, self._coordination(name), peers, self.clock,
            choose_set=self.choose_set, nonce=f"{name}-{self.starts}",
        )  # fmt: skip
        for topic, (partitions, retention) in self.topics.items():
            journal.create_topic(topic, partitions, retention)
        self.wire.members[name] = journal
        for other in NAMES:
            if other != name and self.wire.is_up(name, other):
                journal.reached(other)
                self[other].reached(name)
        return journal

    def use_folder(self, folder: Path) -> None:
        """Real disks, in the place of the simulated ones."""
        self.disks = {name: RealDisk() for name in NAMES}
        self.folders = {name: str(folder / name) for name in NAMES}

    def choose_set(self, partition: int) -> tuple[Replica, ...]:
        return tuple(Replica(name, self.ids[name]) for name in NAMES)

    async def _identity(self, name: str) -> Any:
        return await begin_identity(
            self.disks[name], self.folders[name], name, self._coordination(name),
            lambda: f"{name}{len(self.ids)}{self.starts}",
        )  # fmt: skip

    def _coordination(self, name: str) -> Coordination:
        if self.etcd_url:
            self._opened.append(open_coordination(self.etcd_url, f"{name}-{len(self._opened)}"))
            return self._opened[-1]
        return MemoryCoordination(self.store, name)

    # --- what happens to members --------------------------------------------------------------

    async def kill(self, name: str, loss: Loss = Loss.DROP, *, seed: int = 0) -> None:
        """The machine of a member loses its power."""
        journal = self.wire.members.pop(name)
        for other in NAMES:
            if other != name:
                self.wire.drop(name, other)
        await forget(journal)
        if isinstance(self.disks[name], SimulatedDisk):
            self.disks[name] = self.disks[name].after_crash(loss, seed=seed)
        else:  # the process is killed, and the system drops its lock
            journal.disk.local._lock.release()

    def cut(self, one: str, other: str) -> None:
        """Two members do not reach each other any more."""
        self.wire.cut.add(frozenset((one, other)))
        self.wire.drop(one, other)

    def isolate(self, name: str) -> None:
        for other in NAMES:
            if other != name:
                self.cut(name, other)

    def heal(self) -> None:
        """All reach each other again."""
        pairs, self.wire.cut = self.wire.cut, set()
        for one, other in map(sorted, pairs):
            if self.wire.is_up(one, other):
                self[one].reached(other)
                self[other].reached(one)

    def wipe(self, name: str) -> None:
        """The disk of a member that is down is replaced by an empty one."""
        self.disks[name] = SimulatedDisk()

    def copy_disk(self, name: str) -> SimulatedDisk:
        """A copy of a disk at rest, to be put back later."""
        return copy.deepcopy(self.disks[name])

    async def close(self) -> None:
        for each in [*self.wire.members.values(), *self._opened]:
            await each.close()


async def forget(journal: ClusterJournal) -> None:
    """Ends a journal as a killed process does: nothing is written any more."""
    journal._is_closed = journal._is_over = True
    journal._sending.close()
    journal.positions.wake_all()
    for partition in list(journal._sending.owned):
        journal._sending.end(partition)
    tasks = [*journal._tasks, journal._fetching.close(), journal._confirming.close()]
    for task in journal._tasks:
        task.cancel()
    await asyncio.gather(*tasks, journal._topics.close(), return_exceptions=True)


def play(story: Callable[[Trio], Awaitable[None]]) -> None:
    """Plays a story on virtual time."""
    clock = VirtualClock()

    async def played() -> None:
        trio = Trio(clock)
        await story(trio)
        await trio.close()

    run(played(), clock)


class SettledJournal:
    """A member's journal for stories that know of one journal: what is slow is waited for.

    An append without an epoch takes the partition first, if nobody has it.
    """

    def __init__(self, journal: ClusterJournal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        await self._take([Append(topic, partition, entries)])
        return await self._journal.append(topic, partition, entries)

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        await self._take(appends)
        outcomes = await self._journal.append_many(appends)
        return [await each if isinstance(each, asyncio.Future) else each for each in outcomes]

    async def _take(self, appends: Sequence[Append]) -> None:
        for topic, partition, _, epoch, _ in appends:
            known = 1 <= partition <= self._journal.topics().get(topic, 0)
            if epoch is None and known and not self._journal.chain(partition).ranges:
                await self._journal.take(topic, partition)


@contextlib.asynccontextmanager
async def settled_journal(
    clock: Clock, *, is_taken: bool = False, folder: Path | None = None, etcd_url: str = ""
) -> AsyncIterator[Any]:
    """The journal of one of three members, for the contract; on real disks in a folder."""
    trio = Trio(clock)
    trio.etcd_url = etcd_url
    if folder is not None:
        trio.use_folder(folder)
    journals = await trio.start_all()
    for partition in (1, 2, 3) if is_taken else ():
        await take(journals[0], partition)
    try:
        yield SettledJournal(journals[0])
    finally:
        await trio.close()


async def take(journal: Journal, partition: int = 1, topic: str = "t") -> Taken:
    found = await journal.take(topic, partition)
    assert isinstance(found, Taken), found
    return found


async def append(
    journal: Journal, *entries: bytes, partition: int = 1, topic: str = "t"
) -> Appended:
    """Appends and waits for the quorum."""
    outcome = await settled(journal, Append(topic, partition, list(entries)))
    assert isinstance(outcome, Appended), outcome
    return outcome


async def settled(journal: Journal, one: Append) -> Appended | Refused:
    (outcome,) = await journal.append_many([one])
    if isinstance(outcome, asyncio.Future):
        outcome = await outcome
    assert not isinstance(outcome, Unknown)
    return outcome


async def everything(journal: Journal, partition: int = 1, topic: str = "t") -> list[bytes]:
    """All that a member can read."""
    found: list[bytes] = []
    offset = journal.bounds(topic, partition).earliest
    while entries := await journal.read(topic, partition, offset, 1000):
        found += [each.payload for each in entries]
        offset = entries[-1].offset + 1
    return found


async def until(reached: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something, in steps of a millisecond."""
    for _ in range(int(seconds * 1000)):
        if reached():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to be")
