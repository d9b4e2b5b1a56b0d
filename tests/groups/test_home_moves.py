"""The home of groups moves with partition 1: nobody loses a partition, and none has two owners."""

import asyncio
from random import Random
from typing import Any

import pytest
from tests.engine.fellows import Fellows
from tests.groups.members import Work

from holdfast.client.group_home import NodeMembership, NodeSyncLog
from holdfast.errors import Moved, Unavailable, Unknown
from holdfast.gateway.far import far
from holdfast.gateway.groups.home import PREFIX, GroupsPort
from holdfast.gateway.groups.service import GroupGateway
from holdfast.groups.api import NewPartition
from holdfast.groups.running import Group
from holdfast.journal.memory import MemoryJournal
from holdfast.testing import run

TOKENS = [f"p{number}" for number in range(6)]


class OwnedLog:
    """The log as one node has it: only the owner of partition 1 appends to a group's topic."""

    def __init__(self, journal: MemoryJournal, name: str) -> None:
        self._journal: Any = journal
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, topic: str, partition: int, entries: list[bytes]) -> int:
        await asyncio.sleep(0.001)
        if self._journal.owner != self._name:
            raise Moved("another member has it", partition=1)
        first = await self._journal.append(topic, partition, entries)
        if self._journal.loses():
            raise Unknown("nobody knows")
        return first

    async def close(self) -> None:
        """It stays open for the others."""


class Anybody:
    """Nobody has to say who they are."""

    async def check(self, required: object) -> None: ...


class Nodes:
    """Nodes, of which one has partition 1, and the way to that one."""

    def __init__(self, fellows: Fellows, journal: Any) -> None:
        self.fellows = fellows
        self.journal = journal
        self.moves = 0
        self.groups = GroupGateway(Anybody())  # type: ignore[arg-type]
        self.groups.serve(far(GroupsPort, self._call, PREFIX))

    async def _call(self, body: bytes) -> bytes:
        while True:
            try:
                if not self.journal.owner:
                    raise Moved("nobody has it")
                return await self.fellows.nodes[self.journal.owner].answer_call(body)
            except Moved:
                await asyncio.sleep(0.005)

    async def move(self, name: str, pause: float) -> None:
        former, self.journal.owner = self.journal.owner, ""
        if former:
            await self.fellows.nodes[former].runner.close_partition(1)
        await asyncio.sleep(pause)
        self.journal.owner = name
        await self.fellows.nodes[name].runner.open(1)
        self.moves += 1


async def nodes() -> Nodes:
    clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
    journal: Any = MemoryJournal(clock=clock)
    journal.owner, journal.loses = "", lambda: False
    fellows = Fellows(("a", "b"), 1, journal=journal, log=OwnedLog)
    await fellows.start()
    return Nodes(fellows, journal)


@pytest.mark.parametrize("seed", range(3))
def test_members_keep_their_partitions_while_the_home_moves(seed: int) -> None:
    async def story() -> None:
        there = await nodes()
        random = Random(seed)
        there.journal.loses = lambda: random.random() < 0.05
        await there.move("a", 0)
        ran: list[tuple[str, str, int, object]] = []
        groups: list[Group] = []
        works: list[Work] = []
        now = asyncio.get_running_loop().time
        for name in ("x", "y", "z"):
            log = NodeSyncLog(there, "numbers")  # type: ignore[arg-type]
            await log.look()
            works.append(Work(name, ran))
            groups.append(
                Group(
                    "numbers", name, log,
                    lambda member: NodeMembership(
                        there, "numbers", member, 10_000, now,  # type: ignore[arg-type]
                    ),
                    works[-1], partitions=[NewPartition(each) for each in TOKENS],
                )
            )  # fmt: skip
        tasks = [asyncio.ensure_future(each.run()) for each in groups]
        await asyncio.sleep(5)
        assert [len(each.running) for each in works] == [2, 2, 2]
        before, members = len(ran), [each.member for each in groups]
        for to in "babab":
            await there.move(to, random.uniform(0, 2))
            await asyncio.sleep(random.uniform(0.1, 6))
        await asyncio.sleep(15)
        assert len(ran) == before, "nothing was started anew"
        assert [each.member for each in groups] == members
        offsets = {token: each.offset for token, each in groups[0].partitions().items()}
        assert min(offsets.values()) > 15, "commits went on"  # type: ignore[type-var]
        assert not any(each.alarms for each in groups)
        for each in groups:
            each.stop()
        await asyncio.gather(*tasks)
        await there.fellows.close()

    run(story())


def test_a_home_that_is_away_for_longer_than_a_session_stops_all_work_until_it_is_back() -> None:
    async def story() -> None:
        there = await nodes()
        await there.move("a", 0)
        work = Work("x", [])
        log = NodeSyncLog(there, "numbers")  # type: ignore[arg-type]
        await log.look()
        now = asyncio.get_running_loop().time
        group = Group(
            "numbers", "x", log,
            lambda member: NodeMembership(there, "numbers", member, 3_000, now),  # type: ignore
            work, partitions=[NewPartition(each) for each in TOKENS],
        )  # fmt: skip
        task = asyncio.ensure_future(group.run())
        await asyncio.sleep(2)
        assert sorted(work.running) == TOKENS
        moving = asyncio.ensure_future(there.move("b", 30))
        await asyncio.sleep(5)
        assert not work.running, "somebody else may have them by now"
        await moving
        await asyncio.sleep(20)
        assert sorted(work.running) == TOKENS
        group.stop()
        await task
        await there.fellows.close()

    run(story())


class Line:
    """A program's own way to the nodes, which may be cut."""

    def __init__(self, there: Nodes) -> None:
        self._there = there
        self.is_cut = False
        self.groups = GroupGateway(Anybody())  # type: ignore[arg-type]
        self.groups.serve(far(GroupsPort, self._call, PREFIX))

    async def _call(self, body: bytes) -> bytes:
        if self.is_cut:
            raise Unavailable("the line is cut")
        return await self._there._call(body)


def test_a_program_comes_back_whose_place_in_the_log_was_discarded_meanwhile() -> None:
    async def story() -> None:
        there = await nodes()
        await there.move("a", 0)
        now = asyncio.get_running_loop().time
        works: dict[str, Work] = {}
        lines: dict[str, Line] = {}

        async def join(name: str) -> "tuple[Group, asyncio.Future[None]]":
            lines[name], works[name] = Line(there), Work(name, [])
            log = NodeSyncLog(lines[name], "numbers")  # type: ignore[arg-type]
            await log.look()
            group = Group(
                "numbers", name, log,
                lambda member: NodeMembership(lines[name], "numbers", member, 3_000, now),  # type: ignore
                works[name], partitions=[NewPartition(each) for each in TOKENS],
            )  # fmt: skip
            return group, asyncio.ensure_future(group.run())

        joined = [await join("x"), await join("y")]
        await asyncio.sleep(5)
        assert len(works["x"].running) == 3
        earliest = there.journal.bounds("group-numbers", 1).earliest
        lines["x"].is_cut = True
        for _ in range(3):
            other, task = await join("z")
            await asyncio.sleep(6)
            other.stop()
            await task
            await asyncio.sleep(2)
        assert there.journal.bounds("group-numbers", 1).earliest > earliest
        assert not works["x"].running
        await there.move("b", 0.1)  # the new home has nothing in its memory
        lines["x"].is_cut = False
        await asyncio.sleep(20)
        assert len(works["x"].running) == len(works["y"].running) == 3
        for group, task in joined:
            group.stop()
            await task
        await there.fellows.close()

    run(story())
