"""Random walks over three members: whatever happens, what was acknowledged is in all logs.

A failure prints its seed; `walk(seed)` plays it again.
"""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest
from tests.journal.cluster.trio import NAMES, Trio, play, until

from holdfast.errors import HoldfastError
from holdfast.journal import Append, Appended, Refused
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.testing.disk import DiskOutcome as Loss

PARTITIONS = (1, 2)


class Walk:
    """What was acknowledged and what readers saw, and what may happen next."""

    def __init__(self, trio: Trio, seed: int) -> None:
        self.trio = trio
        self.random = Random(seed)
        self.acknowledged: dict[int, dict[int, bytes]] = {each: {} for each in PARTITIONS}
        self.seen: dict[int, dict[int, bytes]] = {each: {} for each in PARTITIONS}
        self.numbers = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def up(self) -> list[str]:
        return sorted(self.trio.wire.members)

    # --- steps --------------------------------------------------------------------------------

    async def append(self) -> None:
        name, partition = self.random.choice(self.up()), self.random.choice(PARTITIONS)
        entries: list[bytes] = []
        for _ in range(self.random.choice((1, 1, 3))):
            self.numbers += 1
            entries.append(b"%d " % self.numbers + bytes(self.random.choice((0, 0, 3_000))))
        self.begin(self._append(self.trio[name], partition, entries))

    async def _append(self, journal: ClusterJournal, partition: int, entries: list[bytes]) -> None:
        try:
            (outcome,) = await journal.append_many([Append("t", partition, entries)])
            if isinstance(outcome, asyncio.Future):
                outcome = await outcome
        except HoldfastError:
            return
        if isinstance(outcome, Appended):
            for offset, payload in enumerate(entries, outcome.first):
                self.note(self.acknowledged, partition, offset, payload)

    async def take(self) -> None:
        name, partition = self.random.choice(self.up()), self.random.choice(PARTITIONS)
        is_drain = self.random.random() < 0.3
        self.begin(self._take(self.trio[name], partition, is_drain))

    async def _take(self, journal: ClusterJournal, partition: int, is_drain: bool) -> None:
        try:
            if is_drain:
                await journal.take_over(partition, is_drain=True)
            else:
                await journal.take("t", partition)
        except HoldfastError:
            pass

    async def read(self) -> None:
        name, partition = self.random.choice(self.up()), self.random.choice(PARTITIONS)
        self.begin(self._read(self.trio[name], partition))

    async def _read(self, journal: ClusterJournal, partition: int) -> None:
        try:
            offset = journal.bounds("t", partition).earliest
            while entries := await journal.read("t", partition, offset, 5_000):
                for each in entries:
                    self.note(self.seen, partition, each.offset, each.payload)
                offset = entries[-1].offset + 1
        except HoldfastError:
            pass

    async def kill(self) -> None:
        if len(self.up()) == 3:
            name = self.random.choice(self.up())
            await self.trio.kill(name, self.random.choice(list(Loss)), seed=self.numbers)
            if self.random.random() < 0.1:
                await self.restart()

    async def restart(self) -> None:
        for name in NAMES:
            if name not in self.trio.wire.members:
                self.trio.disks[name].capacity_bytes = 1 << 40
                await self.trio.start(name)

    async def cut(self) -> None:
        one, other = self.random.sample(NAMES, 2)
        self.trio.cut(one, other)

    async def heal(self) -> None:
        self.trio.heal()
        for name in list(self.trio.wire.silent):
            self.trio.wire.go_on(*name)

    async def hold(self) -> None:
        one, other = self.random.sample(self.up(), 2) if len(self.up()) > 1 else ("", "")
        if one:
            self.trio.wire.room_bytes = self.random.choice((500, 5_000, 1 << 25))
            self.trio.wire.hold(one, other)

    async def fill(self) -> None:
        disk = self.trio.disks[self.random.choice(self.up())]
        used = disk.capacity_bytes - disk.free_bytes("")
        disk.capacity_bytes = used if disk.capacity_bytes > 1 << 39 else 1 << 40

    async def discard(self) -> None:
        name, partition = self.random.choice(self.up()), self.random.choice(PARTITIONS)
        bounds = self.trio[name].bounds("t", partition)
        before = self.random.randint(bounds.earliest, bounds.next)
        self.trio[name].discard("t", partition, before)

    async def wait(self) -> None:
        await asyncio.sleep(self.random.choice((0, 0.0001, 0.001, 0.1, 1)))

    # --- checks -------------------------------------------------------------------------------

    def note(
        self, where: dict[int, dict[int, bytes]], partition: int, offset: int, payload: bytes
    ) -> None:
        assert where[partition].setdefault(offset, payload) == payload, "one entry at an offset"

    async def check(self) -> None:
        """All reach each other again and have room: everybody has everything."""
        for disk in self.trio.disks.values():
            disk.capacity_bytes = 1 << 40
        await self.restart()
        await self.heal()
        self.trio.wire.room_bytes = 1 << 25
        if self.tasks:
            await asyncio.wait(list(self.tasks), timeout=30)
        for partition in PARTITIONS:
            following = await self._append_last(partition)
            for journal in self.trio.wire.members.values():
                await self._check_log(journal, partition, following)

    async def _append_last(self, partition: int) -> int:
        owner = self.trio["a"]
        taken: object = None
        for _ in range(20):
            taken = await owner.take_over(partition, is_drain=True)
            if not isinstance(taken, Refused):
                return 1 + await asyncio.wait_for(owner.append("t", partition, [b"last"]), 60)
            await asyncio.sleep(0.5)
            for journal in self.trio.wire.members.values():
                if partition in journal._fetching.cut:
                    await self._give_snapshot(journal, partition)
        raise AssertionError(taken)

    async def _give_snapshot(self, journal: ClusterJournal, partition: int) -> None:
        """Others have cut their logs: a snapshot stands for what is gone."""
        others = [each.bounds("t", partition) for each in self.trio.wire.members.values()]
        await journal.begin_at(partition, {"t": max(each.earliest for each in others)})

    async def _check_log(self, journal: ClusterJournal, partition: int, following: int) -> None:
        def is_there() -> bool:
            bounds = journal.bounds("t", partition)
            return journal.is_caught_up(partition) and bounds.next == following

        await until(lambda: is_there() or partition in journal._fetching.cut)
        if not is_there():
            await self._give_snapshot(journal, partition)
            await until(is_there)
        earliest = journal.bounds("t", partition).earliest
        found: dict[int, bytes] = {}
        offset = earliest
        while entries := await journal.read("t", partition, offset, 5_000):
            found |= {each.offset: each.payload for each in entries}
            offset = entries[-1].offset + 1
        for known in (self.acknowledged, self.seen):
            for offset, payload in known[partition].items():
                assert offset < earliest or found[offset] == payload, "acknowledged, and not there"
        payloads = [payload.split()[0] for payload in found.values()]
        assert len(set(payloads)) == len(payloads), "nothing twice"


STEPS = {
    Walk.append: 60, Walk.take: 6, Walk.read: 6, Walk.kill: 2, Walk.restart: 5, Walk.cut: 2,
    Walk.heal: 5, Walk.hold: 2, Walk.fill: 2, Walk.discard: 1, Walk.wait: 30,
}  # fmt: skip


def walk(seed: int, steps: int = 150) -> int:
    acknowledged = 0

    async def story(trio: Trio) -> None:
        nonlocal acknowledged
        walked = Walk(trio, seed)
        await trio.start_all()
        for partition in PARTITIONS:
            await trio["a"].take("t", partition)
        kinds, weights = list(STEPS), list(STEPS.values())
        for kind in walked.random.choices(kinds, weights, k=steps):
            await kind(walked)
        await walked.check()
        acknowledged = sum(map(len, walked.acknowledged.values()))

    play(story)
    return acknowledged


@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in range(0, 30, 10)])
def test_what_was_acknowledged_is_in_all_logs(seeds: range) -> None:
    acknowledged = 0
    for seed in seeds:
        try:
            acknowledged += walk(seed)
        except BaseException:
            print(f"seed {seed}")
            raise
    assert acknowledged > 100


@pytest.mark.soak
def test_what_was_acknowledged_is_in_all_logs_of_many_walks() -> None:
    for seed in range(1_000, 3_000):
        try:
            walk(seed, 400)
        except BaseException:
            print(f"seed {seed}")
            raise
