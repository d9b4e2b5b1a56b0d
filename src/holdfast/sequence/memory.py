"""Coordination in memory, for simulations: a store that misbehaves in every way that etcd may.

Several members of one event loop share a `MemoryCluster`. Nothing here is random and nothing looks
at a clock of its own: the simulation decides what becomes of each write, who reaches the store,
which leases run out and when, and when the store is restored from an older copy.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Unavailable, Unknown
from holdfast.limits import COORDINATION_LEASE_MS
from holdfast.sequence.keys import Holds, KeySpan, Reading, Row, Write, WriteAnswer
from holdfast.sequence.stored import StoredCoordination


class WriteFate(Enum):
    """What becomes of a write."""

    ANSWERED = "done, and answered"
    LOST = "done, but the answer is lost: Unknown"
    DROPPED = "not done, but nobody can tell: Unknown"
    LATE = "Unknown, and done later, when `deliver` is called, if its guards hold then"
    UNSENT = "certainly not done: Unavailable"


class Moment(NamedTuple):
    """A copy of the store, as a backup has it."""

    revision: int
    rows: dict[str, Row]
    owners: dict[str, "MemoryKeys"]


def _answer(member: str, write: Write) -> WriteFate:
    return WriteFate.ANSWERED


def _once(member: str, key: str) -> int:
    return 1


async def _turn(member: str) -> None:
    await asyncio.sleep(0)


class MemoryCluster:
    """The store that members share, with the handles of its faults."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.fate: Callable[[str, Write], WriteFate] = _answer  # of each write, by member
        self.fate_unreached = WriteFate.UNSENT  # of writes by members that do not reach the store
        self.pause: Callable[[str], Awaitable[None]] = _turn  # before each call, and each answer
        self.hinted: Callable[[str, str], int] = _once  # how often a member is told of a key
        self.late: deque[tuple[MemoryKeys, Write]] = deque()
        self.stores: list[MemoryKeys] = []
        self.starts = 0  # of coordinations
        self.revision = 1
        self.rows: dict[str, Row] = {}
        self._owners: dict[str, MemoryKeys] = {}  # of keys that are leased
        self._unreached: set[str] = set()
        self._clock = clock

    # --- handles ---

    def cut_off(self, *members: str) -> None:
        """These members do not reach the store any more; without names nobody does."""
        self.lapse_overdue()
        for store in self.stores:
            if (not members or store.member in members) and store.cut_at is None:
                store.cut_at = self.now()
        self._unreached |= set(members) or {"*"}

    def reconnect(self, *members: str) -> None:
        """These members reach it again; without names all do."""
        self.lapse_overdue()
        self._unreached = self._unreached - set(members) if members else set()
        for store in [each for each in self.stores if self.reaches(each.member)]:
            if store.is_running:
                store.cut_at = None
                store.hint("")
                if store.has_lapsed:
                    asyncio.get_running_loop().call_soon(store.lapsed)

    def lapse(self, member: str) -> None:
        """The leases of a member run out now."""
        for store in [each for each in self.stores if each.member == member]:
            self._lapse(store)

    def lapse_overdue(self) -> None:
        """Leases run out of those who have been silent for so long, by the clock."""
        now = self.now()
        for store in list(self.stores):
            if store.cut_at is not None and now - store.cut_at >= COORDINATION_LEASE_MS / 1_000:
                self._lapse(store)

    def deliver(self, which: int = 0) -> WriteAnswer:
        """A late write arrives."""
        store, write = self.late[which]
        del self.late[which]
        return self.apply(store, write)

    def save(self) -> Moment:
        """A copy of the store, as a backup takes it."""
        return Moment(self.revision, dict(self.rows), dict(self._owners))

    def restore(self, moment: Moment) -> None:
        """The store is as it was then, its revision too."""
        self.revision, self.rows = moment.revision, dict(moment.rows)
        self._owners = dict(moment.owners)
        for store in {*self._owners.values()}.difference(self.stores):
            self._expire(store)  # it has left since
        for store in self.stores:
            store.hint("")

    # --- what stores do ---

    def reaches(self, member: str) -> bool:
        """Whether a member's calls arrive."""
        return not self._unreached & {"*", member}

    def apply(self, store: "MemoryKeys", write: Write) -> WriteAnswer:
        """Does a write if its guards hold."""
        self.lapse_overdue()
        if store not in self.stores and any(put.is_leased for put in write.puts):
            return WriteAnswer(False, self.revision)  # there is no such lease any more
        for guard in write.guards:
            row = self.rows.get(guard.key)
            if isinstance(guard, Holds):
                if row is None or row.value != guard.value:
                    return WriteAnswer(False, self.revision)
            elif (0 if row is None else row.revision) != guard.revision:
                return WriteAnswer(False, self.revision)
        self.revision += 1
        for span in write.deletes:
            for row in self.find(span):
                self._drop(row.key)
        for put in write.puts:
            self.rows[put.key] = Row(put.key, put.value, self.revision)
            self._owners.pop(put.key, None)
            if put.is_leased:
                self._owners[put.key] = store
                store.has_lapsed = False
            self._tell(put.key)
        return WriteAnswer(True, self.revision)

    def find(self, span: KeySpan) -> list[Row]:
        """The rows of a span, in the order of keys."""
        if span.end is None:
            return [self.rows[span.first]] if span.first in self.rows else []
        keys = sorted(key for key in self.rows if span.first <= key < span.end)
        return [self.rows[key] for key in (keys[-1:] if span.is_last_only else keys)]

    def leave(self, store: "MemoryKeys") -> None:
        """A member gives up its lease."""
        self._expire(store)
        self.stores.remove(store)

    def _lapse(self, store: "MemoryKeys") -> None:
        was_leased = self._expire(store)
        store.has_lapsed = store.has_lapsed or was_leased
        if not store.is_running:
            self.stores.remove(store)
        elif was_leased and self.reaches(store.member):
            asyncio.get_running_loop().call_soon(store.lapsed)

    def _expire(self, store: "MemoryKeys") -> bool:
        keys = sorted(key for key, owner in self._owners.items() if owner is store)
        if keys:
            self.revision += 1
        for key in keys:
            self._drop(key)
        return bool(keys)

    def _drop(self, key: str) -> None:
        del self.rows[key]
        self._owners.pop(key, None)
        self._tell(key)

    def _tell(self, key: str) -> None:
        for store in self.stores:
            if self.reaches(store.member):
                for _ in range(self.hinted(store.member, key)):
                    store.hint(key)

    def now(self) -> float:
        """Seconds by the simulation's clock; it stands still without one."""
        return 0.0 if self._clock is None else self._clock.monotonic()


class MemoryKeys:
    """The shared store as one member sees it. Its lease holds for as long as it reaches it."""

    def __init__(self, cluster: MemoryCluster, member: str) -> None:
        self.member = member
        self.on_lapsed: Callable[[], None] = lambda: None
        self.available = True
        self.is_running = True
        self.has_lapsed = False
        self.cut_at: float | None = None  # since when it does not renew its lease
        self._cluster = cluster
        self._listeners: list[asyncio.Queue[str]] = []
        cluster.stores.append(self)

    async def read(self, *spans: KeySpan) -> Reading:
        await self._cluster.pause(self.member)
        self._check_reached()
        self._cluster.lapse_overdue()
        rows = [self._cluster.find(span) for span in spans]
        reading = Reading(self._cluster.revision, rows)
        await self._cluster.pause(self.member)
        self._check_reached()
        return reading

    async def write(self, write: Write) -> WriteAnswer:
        """Writes as the fate of this write is."""
        cluster = self._cluster
        await cluster.pause(self.member)
        fate = cluster.fate(self.member, write)
        if not self.is_running or not cluster.reaches(self.member):
            fate = cluster.fate_unreached
        if fate is WriteFate.UNSENT:
            self.available = False
            raise Unavailable("The store of the cluster is not reached")
        if fate is WriteFate.LATE:
            cluster.late.append((self, write))
        written = (
            cluster.apply(self, write) if fate in (WriteFate.ANSWERED, WriteFate.LOST) else None
        )
        await cluster.pause(self.member)
        if written is None or fate is WriteFate.LOST or not cluster.reaches(self.member):
            self.available = False
            raise Unknown("The store of the cluster did not answer: it may have been written")
        self.available = True
        return written

    async def compact(self, revision: int) -> None:
        """There is no history here."""

    async def hints(self, *spans: KeySpan) -> AsyncIterator[str]:
        """Tells of all keys, whichever are asked for."""
        heard: asyncio.Queue[str] = asyncio.Queue()
        heard.put_nowait("")
        self._listeners.append(heard)
        try:
            while True:
                yield await heard.get()
        finally:
            self._listeners.remove(heard)

    @property
    def is_leased(self) -> bool:
        return self.is_running and self._cluster.reaches(self.member)

    def hint(self, key: str) -> None:
        for heard in self._listeners:
            heard.put_nowait(key)

    def lapsed(self) -> None:
        if self.is_running:
            self.on_lapsed()

    def stop(self) -> None:
        """As after kill -9: nothing is said any more, and the lease runs out when it is time."""
        self.is_running = False
        if self.cut_at is None:
            self.cut_at = self._cluster.now()

    async def close(self) -> None:
        if self.is_running:
            self.is_running = False
            self._cluster.leave(self)

    def _check_reached(self) -> None:
        self.available = self.is_running and self._cluster.reaches(self.member)
        if not self.available:
            raise Unavailable("The store of the cluster is not reached")


class MemoryCoordination(StoredCoordination):
    """A member's coordination over a shared `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster, member: str, nonce: str = "") -> None:
        self.keys = MemoryKeys(cluster, member)
        cluster.starts += 1
        super().__init__(self.keys, nonce or f"{member}-{cluster.starts}")

    def stop(self) -> None:
        """The member's process is killed: its lease runs out after a while, or by `lapse`."""
        self._live = None
        self.keys.stop()
