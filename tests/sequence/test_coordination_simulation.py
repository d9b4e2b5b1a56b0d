"""Members on a store that loses, delays and forgets, over many seeds: what never happens."""

import asyncio
import random

import pytest
from tests.sequence.coordination_contract import cut, live, span

from holdfast.errors import Unavailable, Unknown
from holdfast.sequence.api import Beaten, Chain, Coordination, Cut
from holdfast.sequence.keys import Write
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, WriteFate
from holdfast.testing import VirtualClock, run

SECONDS = 20
FATES = (
    *[WriteFate.ANSWERED] * 6, WriteFate.LOST, WriteFate.DROPPED, WriteFate.LATE, WriteFate.UNSENT,
)  # fmt: skip


class World:
    """Three members, and somebody who makes their lives hard."""

    def __init__(self, seed: int, clock: VirtualClock) -> None:
        self.dice = random.Random(seed)
        self.cluster = MemoryCluster(clock)
        self.cluster.fate = self._fate
        self.cluster.pause = self._pause
        self.members = {name: MemoryCoordination(self.cluster, name) for name in "abc"}
        self.done: dict[int, Cut] = {}  # cuts that were answered, or read back
        self.chains: list[Chain] = []  # of partition 1, likewise
        self.trace: list[str] = []
        self._attempts = 0

    def _fate(self, member: str, write: Write) -> WriteFate:
        return self.dice.choice(FATES)

    async def _pause(self, member: str) -> None:
        await asyncio.sleep(self.dice.random() * 0.05)

    async def live(self, name: str) -> None:
        """Publishes cuts and takes the partition, as members do: it reads after any doubt."""
        member = self.members[name]
        while True:
            try:
                await self._one_turn(name, member)
            except Unavailable as error:
                self.trace.append(f"{name}: {error.code}")
            except Unknown:
                self.trace.append(f"{name}: unknown")
            await asyncio.sleep(0.01)

    async def _one_turn(self, name: str, member: Coordination) -> None:
        what = self.dice.random()
        self._attempts += 1
        if what < 0.6:
            latest = await member.latest()
            if latest is not None:
                self.saw_cut(latest)
            mine = cut(1 if latest is None else latest.number + 1, f"{name}{self._attempts}")
            if await member.publish(mine):
                self.saw_cut(mine)
        elif what < 0.9:
            chain = await member.chain(1)
            self.saw_chain(chain)
            taken = (*chain.ranges, span(chain.epoch + 1, f"{name}{self._attempts}"))
            replaced = await member.replace(Chain(1, taken, chain.revision))
            if not isinstance(replaced, Beaten):
                self.saw_chain(replaced)
        else:
            await member.announce(live(name))

    def saw_cut(self, seen: Cut) -> None:
        self.trace.append(f"cut {seen.number} {seen.writer}")
        assert self.done.setdefault(seen.number, seen) == seen, "two cuts of one number"

    def saw_chain(self, chain: Chain) -> None:
        for known in self.chains[-3:]:
            shorter, longer = sorted((known.ranges, chain.ranges), key=len)
            assert longer[: len(shorter)] == shorter, "a chain only grows"
        self.chains.append(chain)
        self.trace.append(f"epoch {chain.epoch}")

    async def trouble(self) -> None:
        while True:
            await asyncio.sleep(self.dice.random())
            what = self.dice.randrange(5)
            if what == 0 and self.cluster.late:
                self.cluster.deliver(self.dice.randrange(len(self.cluster.late)))
            elif what == 1:
                self.cluster.cut_off(*self.dice.sample("abc", self.dice.randint(0, 2)))
            elif what == 2:
                self.cluster.lapse(self.dice.choice("abc"))
            else:
                self.cluster.reconnect()

    async def settle(self) -> None:
        """Peace returns: everything that was on its way arrives, and all see the same."""
        self.cluster.reconnect()
        self.cluster.fate = lambda member, write: WriteFate.ANSWERED
        while self.cluster.late:
            self.cluster.deliver()
        await asyncio.sleep(2)
        a = self.members["a"]
        latest = await a.latest()
        assert latest is not None
        for each in await a.cuts(1, latest.number):
            self.saw_cut(each)
        assert sorted(self.done)[-1] == latest.number
        for member in self.members.values():
            assert await member.latest() == latest
            assert await member.chain(1) == await a.chain(1)
            assert member.rolled_back == ""
            await member.live()  # a member with two places notices
        await asyncio.sleep(2)
        places = [each.member for each in (await a.live()).values()]
        assert len(places) == len(set(places))


def simulate(seed: int) -> list[str]:
    clock = VirtualClock(start_ms=0)

    async def story() -> list[str]:
        world = World(seed, clock)
        tasks = [asyncio.create_task(world.live(name)) for name in world.members]
        tasks.append(asyncio.create_task(world.trouble()))
        await asyncio.wait(tasks, timeout=SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await world.settle()
        return world.trace

    return run(story(), clock)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(1_000), marks=pytest.mark.soak)])
def test_no_two_cuts_of_one_number_and_no_chain_that_forgets(seeds: range) -> None:
    for seed in seeds:
        trace = simulate(seed)
        assert sum(line.startswith("cut") for line in trace) > 20, f"seed {seed}"


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(7) == simulate(7)
    assert simulate(7) != simulate(8)
