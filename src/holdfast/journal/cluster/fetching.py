"""Fetching from other members what this disk lacks: to catch up while it serves, or for a reader.

Each partition that this disk is a replica of has at most one task, which goes through the chain
from the first range on that is kept here. What owners send meanwhile, and cannot be stored before
the gap is closed, is kept up to a limit; beyond it, it is fetched, too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError, NotFound, ResourceExhausted, Unavailable
from holdfast.journal.api import Entry
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.messages import Fetch, Fetched, Stretch, Survey, Surveyed
from holdfast.journal.cluster.ports import Peers
from holdfast.journal.cluster.positions import Positions
from holdfast.journal.cluster.receiving import Receiving
from holdfast.limits import (
    CLUSTER_FETCH_BYTES,
    CLUSTER_HELD_BYTES,
    CLUSTER_RETRY_MS,
    DISK_FULL_RETRY_MS,
)
from holdfast.logs import log
from holdfast.sequence.api import Chain, Range


class _Lack(NamedTuple):
    """Entries of a range that are not here: first <= number < end."""

    range: Range
    topic: str
    first: int
    end: int
    is_open: bool


class _Held:
    """What owners sent of one partition while it catches up."""

    def __init__(self) -> None:
        self.stretches: list[tuple[str, Stretch]] = []
        self.size_bytes = 0

    def add(self, member: str, stretch: Stretch) -> None:
        self.size_bytes += sum(map(len, stretch.entries))
        if self.size_bytes > CLUSTER_HELD_BYTES:
            self.stretches.clear()  # the rest is of no use without them
        else:
            self.stretches.append((member, stretch))


class Fetching:
    """Brings this disk up to what is acknowledged, and reads what it does not have."""

    def __init__(
        self,
        receiving: Receiving,
        disk: ClusterDisk,
        peers: Peers,
        positions: Positions,
        learn_topics: Callable[[], Awaitable[None]],
    ) -> None:
        self.on_cut: list[Callable[[int], None]] = []  # told when no member has the log any more
        self.cut: set[int] = set()  # partitions that need a snapshot
        self._receiving = receiving
        self._disk = disk
        self._peers = peers
        self._positions = positions
        self._learn_topics = learn_topics
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._nudges: dict[int, asyncio.Future[None]] = {}
        self._sent: dict[tuple[int, int, str], int] = {}  # (partition, epoch, topic) -> numbers
        self._held: dict[int, _Held] = {}
        self._is_closed = False

    # --- catching up --------------------------------------------------------------------------

    def missed(self, member: str, stretch: Stretch) -> None:
        """An owner sent what cannot be stored, because what comes before it is not here."""
        key = (stretch.partition, stretch.epoch, stretch.topic)
        end = stretch.number + len(stretch.entries)
        self._sent[key] = max(end, self._sent.get(key, 0))
        if stretch.entries:
            self._held.setdefault(stretch.partition, _Held()).add(member, stretch)
        self._begin(stretch.partition)

    def catch_up(self, partition: int) -> None:
        """There is news: looks at once whether a partition lacks something."""
        nudge = self._nudges.get(partition)
        if nudge is not None and not nudge.done():
            nudge.set_result(None)
        self._begin(partition)

    def _begin(self, partition: int) -> None:
        if partition not in self._tasks and not self._is_closed and self._lacks(partition):
            task = asyncio.get_running_loop().create_task(
                self._catch_up(partition), name=f"catching up partition {partition}"
            )
            self._tasks[partition] = task
            task.add_done_callback(lambda _: self._tasks.pop(partition, None))

    def is_caught_up(self, partition: int) -> bool:
        """Whether this disk has everything that is acknowledged."""
        return not self._lacks(partition, only_acknowledged=True)

    def begin_again(self, partition: int) -> None:
        """A snapshot has come: the log is needed from there on."""
        self.cut.discard(partition)
        self.catch_up(partition)

    def learned(self, chain: Chain) -> None:
        """A newer chain: what was sent of closed ranges is of no interest any more."""
        partition = chain.partition
        for key in [each for each in self._sent if each[0] == partition and each[1] < chain.epoch]:
            del self._sent[key]
        self.catch_up(partition)

    async def close(self) -> None:
        """Ends what is under way."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _catch_up(self, partition: int) -> None:
        while not self._is_closed:
            lacks = self._lacks(partition)
            if not lacks:
                self._held.pop(partition, None)
                return
            pause_ms = await self._try(partition, lacks[0])
            if partition in self.cut:
                return
            if pause_ms != DISK_FULL_RETRY_MS:
                self._try_held(partition)
            if pause_ms:
                await self._pause(partition, pause_ms)

    async def _try(self, partition: int, lack: _Lack) -> int:
        """Fetches and stores a part of what is lacking; how long to wait before the next part."""
        try:
            if lack.topic not in self._disk.local.topics():
                await self._learn_topics()
                return 0 if lack.topic in self._disk.local.topics() else CLUSTER_RETRY_MS
            if not await self._fill(partition, lack):
                return CLUSTER_RETRY_MS
        except ResourceExhausted:
            return DISK_FULL_RETRY_MS
        except HoldfastError as error:
            log.warning("catching up failed", partition=partition, error=str(error))
            return CLUSTER_RETRY_MS
        now = self._receiving.rules(partition).taken(lack.range.epoch, lack.topic)
        return 0 if now > lack.first else DISK_FULL_RETRY_MS

    def _lacks(self, partition: int, *, only_acknowledged: bool = False) -> list[_Lack]:
        """What this disk does not have, oldest range first."""
        chain = self._positions.chain(partition)
        if chain.last is None or self._receiving.replica not in chain.last.replicas:
            return []
        rules, found = self._receiving.rules(partition), list[_Lack]()
        topics = {*chain.last.starts, *self._disk.local.topics()}
        topics |= {topic for each, _, topic in self._sent if each == partition}
        for at, each in enumerate(chain.ranges):
            is_open = at + 1 == len(chain.ranges)
            for topic in sorted(topics):
                start = each.starts.get(topic, 0)
                if is_open:
                    end = self._positions.acknowledged(partition, each.epoch, topic)
                    if not only_acknowledged:
                        end = max(end, self._sent.get((partition, each.epoch, topic), 0))
                else:
                    end = chain.ranges[at + 1].starts.get(topic, 0) - start
                first = max(
                    rules.taken(each.epoch, topic), self._disk.earliest(topic, partition) - start
                )
                if first < end:
                    found.append(_Lack(each, topic, first, end, is_open))
        return found

    async def _fill(self, partition: int, lack: _Lack) -> bool:
        """Fetches a part of what is lacking; False if nobody could give it."""
        rules = self._receiving.rules(partition)
        if lack.is_open and rules.is_bound(lack.range.epoch):
            # It is about to be closed. The closing member brings what is lacking, unless its own
            # log is cut there: then it waits for a snapshot to be here.
            if await self._is_discarded(partition, lack):
                self._is_cut(partition, lack)
            return False
        if lack.first > rules.taken(lack.range.epoch, lack.topic):
            # It was discarded before it came: the state here stands for it.
            rules.jump(lack.range.epoch, lack.topic, lack.first)
        stretches = await self._ask(partition, lack)
        if not stretches:
            if await self._is_discarded(partition, lack):
                self._is_cut(partition, lack)
            return False
        if lack.is_open:
            self._receiving.append(lack.range.owner, stretches)
            await self._disk.landed()
            await asyncio.sleep(0)  # what landed is told in the next turn
        else:
            await self._receiving.fill(stretches, lack.end)
        return True

    async def _ask(self, partition: int, lack: _Lack) -> list[Stretch]:
        """Entries from a member that has them: the owner first, then the range's replicas."""
        heard = self._peers.heard()
        replicas = [each.member for each in lack.range.replicas if each.member in heard]
        replicas.sort(key=lambda each: each != lack.range.owner)
        message = Fetch(
            partition, lack.range.epoch, lack.topic, lack.first, lack.end, CLUSTER_FETCH_BYTES
        )
        for member in [*replicas, *sorted(heard - {*replicas})]:
            try:
                answer = await self._peers.call(member, message)
            except HoldfastError:
                continue
            if isinstance(answer, Fetched) and answer.stretches:
                return answer.stretches
        return []

    async def _is_discarded(self, partition: int, lack: _Lack) -> bool:
        """Whether a member that is heard has given up what is lacking: its state stands for it."""
        offset = lack.range.starts.get(lack.topic, 0) + lack.first
        for member in sorted(self._peers.heard()):
            disk = self._peers.disk(member)
            if disk is None:
                continue
            try:
                answer = await self._peers.call(member, Survey(disk, partition))
            except HoldfastError:
                continue
            if isinstance(answer, Surveyed) and answer.needed.get(lack.topic, 0) > offset:
                return True
        return False

    def _is_cut(self, partition: int, lack: _Lack) -> None:
        if not self._is_lacking(partition, lack):
            return  # a snapshot came while others were asked
        self.cut.add(partition)
        log.info("the log of a partition begins later on all members", partition=partition)
        for tell in self.on_cut:
            tell(partition)

    def _is_lacking(self, partition: int, lack: _Lack) -> bool:
        return any(
            (each.range.epoch, each.topic, each.first) == (lack.range.epoch, lack.topic, lack.first)
            for each in self._lacks(partition)
        )

    def _try_held(self, partition: int) -> None:
        """What was sent meanwhile may follow now."""
        held = self._held.pop(partition, None)
        if held is not None:
            by_member: dict[str, list[Stretch]] = {}
            for member, stretch in held.stretches:
                by_member.setdefault(member, []).append(stretch)
            for member, stretches in by_member.items():
                self._receiving.append(member, stretches)

    async def _pause(self, partition: int, pause_ms: int) -> None:
        """Waits, unless there is news; no news makes room on a full disk."""
        loop = asyncio.get_running_loop()
        nudge: asyncio.Future[None] = loop.create_future()
        if pause_ms != DISK_FULL_RETRY_MS:
            self._nudges[partition] = nudge
        timer = loop.call_later(pause_ms / 1000, lambda: nudge.done() or nudge.set_result(None))
        try:
            await nudge
        finally:
            timer.cancel()
            self._nudges.pop(partition, None)

    # --- reading ------------------------------------------------------------------------------

    async def read(
        self, topic: str, partition: int, found: Range, offset: int, end: int, bytes_max: int
    ) -> list[Entry]:
        """Acknowledged entries of a range that this disk does not have."""
        start = found.starts.get(topic, 0)
        lack = _Lack(found, topic, offset - start, end - start, is_open=False)
        stretches = await self._ask(partition, lack)
        if not stretches:
            raise _nowhere(topic, partition, offset, await self._is_discarded(partition, lack))
        return _entries(stretches, start, bytes_max)


def _entries(stretches: Sequence[Stretch], start: int, bytes_max: int) -> list[Entry]:
    entries: list[Entry] = []
    left_bytes = bytes_max
    for each in stretches:
        for number, payload in enumerate(each.entries, each.number):
            left_bytes -= len(payload)
            if left_bytes < 0 and entries:
                return entries
            entries.append(Entry(start + number, each.timestamp_ms, payload))
    return entries


def _nowhere(topic: str, partition: int, offset: int, is_discarded: bool) -> HoldfastError:
    kind = NotFound if is_discarded else Unavailable
    return kind(
        f"expected offset {offset} in partition {partition} of topic {topic!r} on a member that is"
        " reached, but none has it"
        + ("; the state of a member stands for it" if is_discarded else "; try again later"),
        topic=topic,
        partition=partition,
        offset=offset,
    )
