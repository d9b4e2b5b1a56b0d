"""Publishers in a storm: the loops themselves, over a store that misbehaves by a seed."""

import random

import pytest
from tests.sequence.test_publisher import Trio, play

from holdfast.sequence.api import Cut
from holdfast.sequence.keys import Write
from holdfast.sequence.memory import WriteFate

_BAD = [WriteFate.LOST, WriteFate.DROPPED, WriteFate.LATE, WriteFate.UNSENT]


class Storm:
    """Things go wrong for a while; then the sun shines, and everybody must agree."""

    def __init__(self, trio: Trio, seed: int) -> None:
        self._trio = trio
        self._dice = random.Random(seed)
        self._known: dict[int, Cut] = {}  # every cut that anybody was ever told of

    async def blow(self, steps: int) -> None:
        trio, dice = self._trio, self._dice
        trio.store.fate = self._fate
        trio.store.hinted = lambda member, key: dice.choice([0, 1, 1, 2])
        trio.start("a", "b", "c")
        for _ in range(steps):
            await trio.pass_ticks(dice.randrange(1, 8))
            await dice.choice([self._cut_off, self._reconnect, self._restart, self._deliver])()
            self._compare()

    def _fate(self, member: str, write: Write) -> WriteFate:
        return self._dice.choice(_BAD) if self._dice.random() < 0.2 else WriteFate.ANSWERED

    async def _cut_off(self) -> None:
        self._trio.store.cut_off(*self._dice.choice(["a", "b", "c", ""]))

    async def _reconnect(self) -> None:
        self._trio.store.reconnect()

    async def _restart(self) -> None:
        """With the cuts that it kept, or with nothing."""
        member = self._dice.choice("abc")
        kept = self._trio.members[member].at
        await self._trio.stop(member)
        self._trio.start(member, at=kept if self._dice.random() < 0.7 else None)

    async def _deliver(self) -> None:
        while self._trio.store.late:
            self._trio.store.deliver(self._dice.randrange(len(self._trio.store.late)))

    def _compare(self) -> None:
        for told in self._trio.told.values():
            for number, cut in told.cuts.items():
                assert self._known.setdefault(number, cut) == cut, f"two cuts numbered {number}"

    async def pass_away(self) -> None:
        trio = self._trio
        trio.store.fate = lambda member, write: WriteFate.ANSWERED
        trio.store.hinted = lambda member, key: 1
        trio.store.reconnect()
        await self._deliver()
        await trio.pass_ticks(80)
        self._compare()
        before = trio.numbers()["a"]
        await trio.pass_ticks(32)
        numbers = set(trio.numbers().values())
        assert len(numbers) == 1
        assert max(numbers) >= before + 31
        assert len({member.writer for member in trio.members.values()}) == 1
        assert len({str(member.at) for member in trio.members.values()}) == 1


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_store_does_all_members_follow_the_same_cuts(seed: int) -> None:
    async def story(trio: Trio) -> None:
        storm = Storm(trio, seed)
        await storm.blow(60)
        await storm.pass_away()
        assert trio.numbers()["a"] > 60

    play(story)
