"""Standbys, reads and content over the journals of three members, with their real rules."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.content.publishing import package
from tests.engine.fellows import Fellows
from tests.journal.cluster import trio as wired

from holdfast.content.messages import decode_package
from holdfast.content.topics import ContentTopic
from holdfast.engine.jobs.queries import FindTask
from holdfast.engine.jobs.values import JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import Moved
from holdfast.node import Node
from holdfast.records import ValueType
from holdfast.testing import VirtualClock, run

NAMES = ("a", "b", "c")


def create(content: str = "1") -> Command:
    new = NewJob("mail", content.encode(), keep_ms=3_600_000)
    return Command(ValueType.JOB, JobIntent.CREATE, 0, new)


class Group:
    """Three nodes over the three journals."""

    def __init__(self, trio: wired.Trio) -> None:
        self.trio = trio
        journal: Any = trio["a"]
        self.fellows = Fellows(NAMES, 2, journal=journal, log=lambda _, name: trio[name])
        self.a, self.b, self.c = (self.fellows.nodes[each] for each in NAMES)

    async def move(self, former: Node, to: str) -> None:
        """In order: the owner lets go, and opens the range of the next one."""
        await former.runner.close_partition(1)
        taken = await self.trio[to].take_over(1, is_drain=True)
        assert not hasattr(taken, "reason"), taken
        await self.fellows.nodes[to].runner.open(1)

    async def stop(self, name: str) -> None:
        """The process of a member ends; its disk stays."""
        node = self.fellows.nodes.pop(name)
        node.runtime.stop()
        node.content_life.abandon()
        node.content.abandon()
        node.runner._task.cancel()  # type: ignore[union-attr]
        await asyncio.gather(node.runner._task, return_exceptions=True)  # type: ignore[arg-type]
        node.runner.forget_timers()
        await self.trio.kill(name)


def play(story: Callable[[Group], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        trio = wired.Trio(clock)
        trio.topics = {TOPIC: (2, None)}
        await trio.start_all()
        group = Group(trio)
        await group.fellows.start()
        async with asyncio.timeout(120):
            await story(group)
        await group.fellows.close()

    run(whole(), clock)


def standing(node: Node) -> Any:
    return node.runner._lives.standing[1]


def test_standbys_have_what_the_owner_has_and_none_is_behind() -> None:
    async def story(group: Group) -> None:
        a, b, c = group.a.runner, group.b.runner, group.c.runner
        await a.open(1)
        for name in "bc":
            await group.fellows.caught_up(name)
        assert b.standbys.lags()[1] == 0, "the entry that begins a range is nobody's to apply"
        for number in range(50):
            await a.submit(1, [create(str(number))])
        for node in (group.b, group.c):
            await asyncio.sleep(1)  # what is acknowledged is told
            assert node.runner.standbys.lags()[1] == 0
            assert standing(node).state.dump() == a.processor(1).state.dump()
            assert standing(node).next_position == a.processor(1).next_position
        assert c.standbys.stopped == {}

    play(story)


def test_when_the_owner_is_lost_a_standby_goes_on_and_the_other_follows_it() -> None:
    async def story(group: Group) -> None:
        a, b, c = group.a.runner, group.b.runner, group.c.runner
        await a.open(1)
        for number in range(20):
            await a.submit(1, [create(str(number))])
        await asyncio.sleep(1)
        known = standing(group.b)
        await group.stop("a")
        await b.open(1)
        assert b.processor(1) is known
        for number in range(20):
            await b.submit(1, [create(str(number))])
        await asyncio.sleep(1)
        assert standing(group.c).state.dump() == b.processor(1).state.dump()
        assert c.standbys.lags()[1] == 0
        assert len(list(b.processor(1).view.jobs.jobs.scan())) == 40, "nothing is lost"

    play(story)


def test_a_former_owner_that_is_cut_off_answers_nothing_as_fresh() -> None:
    async def story(group: Group) -> None:
        await group.a.runner.open(1)
        [made] = await group.a.runner.submit(1, [create()])
        asked = FindTask(made.key)
        assert await group.a.runtime.partitions.ask(1, asked) is not None
        await asyncio.sleep(1)
        group.trio.isolate("a")
        await group.b.runner.open(1)
        cancel = Command(ValueType.JOB, JobIntent.CANCEL, made.key, JobRef())
        await group.b.runner.submit(1, [cancel])
        fresh: Any = await group.b.runtime.partitions.ask(1, asked)
        assert fresh.outcome is not None
        assert group.a.runner.epoch(1) is not None, "it has heard nothing"
        with pytest.raises(Moved):
            await group.a.runtime.partitions.ask(1, asked)
        stale: Any = await group.a.runtime.partitions.ask(1, asked, may_be_stale=True)
        assert stale.outcome is None
        group.trio.heal()
        await asyncio.sleep(1)
        with pytest.raises(Moved):
            await group.a.runner.submit(1, [create()])
        await asyncio.sleep(5)
        assert standing(group.a).state.dump() == group.b.runner.processor(1).state.dump()

    play(story)


def test_content_moves_with_its_partition_and_packages_are_numbered_on() -> None:
    async def story(group: Group) -> None:
        await group.a.runner.open(1)
        await group.a.content_life.settled()
        for number in range(5):
            await group.a.content.publish(package(number))
        await group.move(group.a, "b")
        await group.b.content_life.settled()
        with pytest.raises(Moved):
            await group.a.content.publish(package(5))
        for number in range(3, 10):  # some of them again
            await group.b.content.publish(package(number))
        await group.move(group.b, "c")
        await group.c.content_life.settled()
        await group.c.content.publish(package(10))
        packages: list[Any] = []
        offset, end = 0, 1
        while offset < end:
            read = group.c.content.read
            found = await read(ContentTopic.PACKAGES, 1, offset, bytes_max=2**20, wait_ms=0)
            packages += [decode_package(each.payload) for each in found.entries]
            offset, end = found.next, found.end
        assert [each.number for each in packages] == list(range(1, 12))
        assert [each.package_id for each in packages] == [f"site-{each}" for each in range(11)]

    play(story)


def test_a_member_that_comes_back_to_logs_that_were_cut_says_that_it_lacks_the_state() -> None:
    async def story(group: Group) -> None:
        a, b = group.a.runner, group.b.runner
        await a.open(1)
        await a.submit(1, [create()])
        await asyncio.sleep(1)
        await group.stop("c")
        for number in range(50):
            await a.submit(1, [create(str(number))])
        await asyncio.sleep(1)
        for name, runner in (("a", a), ("b", b)):
            runner.write_state()
            group.trio[name].discard(TOPIC, 1, runner.stored_offsets()[1])
        await group.trio.start("c")
        journal: Any = group.trio["c"]
        fellows = Fellows(("c",), 2, journal=journal, log=lambda _, name: group.trio[name])
        told: list[int] = []
        runner = fellows.nodes["c"].runner
        runner.standbys.on_missing.append(told.append)
        await fellows.start()
        async with asyncio.timeout(60):
            while not told:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert told == [1] and runner.standbys.missing == {1}
        await fellows.close()

    play(story)
