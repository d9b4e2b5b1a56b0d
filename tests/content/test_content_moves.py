"""The topics of content move with their partition: nothing is lost, and nothing is there twice."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from publishing import discovery, package
from tests.engine.fellows import Fellows

from holdfast.config import Config
from holdfast.content.blobs import NoSharedStore
from holdfast.content.messages import decode_package
from holdfast.content.publisher.retention import EVERYTHING
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.errors import HoldfastError, InvalidState, Moved, Unknown
from holdfast.folders import content_blobs
from holdfast.gateway.content.home import ContentHome
from holdfast.gateway.content.near import NearContent
from holdfast.gateway.content.shapes import TopicQuery
from holdfast.gateway.far import answer_call, far
from holdfast.journal import Append, Refused
from holdfast.journal.memory import MemoryJournal
from holdfast.testing import run

PACKAGES = ContentTopic.PACKAGES.topic


class OwnedJournal(MemoryJournal):
    """Only the owner of the partition writes its topics, as in a cluster.

    `writer` is who appends now: it is told by the member's own log.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.owner = ""
        self.loses = lambda: False  # the answer to an append
        self.slow = ""  # whose appends take long to get there


class MemberLog:
    """The log as one member has it."""

    def __init__(self, journal: OwnedJournal, name: str) -> None:
        self._journal = journal
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append_many(self, appends: list[Append]) -> Any:
        journal = self._journal
        if appends[0].topic.startswith("content"):
            await asyncio.sleep(0.1 if journal.slow == self._name else 0.001)  # to a quorum
            if journal.owner != self._name:
                [each] = appends
                end = journal.bounds(each.topic, 1).next
                return [Refused(1, 0, end, "another member has it")]
            outcomes = await journal.append_many(appends)
            if journal.loses():
                return [Unknown("nobody knows")]
            return outcomes
        return await journal.append_many(appends)

    async def close(self) -> None:
        """It stays open for the others."""


class Farm:
    """Members that ask the one with the topics, until there is an answer."""

    def __init__(self, fellows: Fellows, journal: OwnedJournal) -> None:
        self.fellows = fellows
        self.journal = journal
        self.homes = {
            name: far(ContentHome, lambda body: self._call(body)) for name in fellows.nodes
        }
        self.moves = 0

    async def _call(self, body: bytes) -> bytes:
        """As the way between members does: what reached no log is asked again of the next owner."""
        while True:
            try:
                name = self.journal.owner
                if not name:
                    raise Moved("nobody has it")
                near = NearContent(self.fellows.nodes[name].content)
                return await answer_call({"": (ContentHome, near)}, body)
            except Moved:
                await asyncio.sleep(0.005)

    async def move(self, name: str, *, is_planned: bool) -> None:
        former = self.journal.owner
        if former == name:
            return
        self.moves += 1
        if former and is_planned:
            await self.fellows.nodes[former].runner.close_partition(1)
        self.journal.owner = ""
        await asyncio.sleep(0.01)
        self.journal.owner = name
        await self.fellows.nodes[name].runner.open(1)
        if former and not is_planned:  # it hears of it later
            await asyncio.sleep(0.02)
            runner = self.fellows.nodes[former].runner
            if runner.epoch(1) is not None:
                await runner.close_partition(1)


async def farm(names: str = "ab") -> Farm:
    clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
    journal = OwnedJournal(clock=clock)
    fellows = Fellows(tuple(names), 1, journal=journal, log=MemberLog)
    await fellows.start()
    return Farm(fellows, journal)


async def published(journal: MemoryJournal) -> list[Any]:
    if PACKAGES not in journal.topics():
        return []
    entries = await journal.read(PACKAGES, PARTITION, 0, 2**30)
    return [decode_package(each.payload) for each in entries]


@pytest.mark.parametrize("seed", range(5))
def test_publishers_and_subscribers_go_on_while_the_partition_moves(seed: int) -> None:
    async def story() -> None:
        there = await farm()
        random = Random(seed)
        there.journal.loses = lambda: random.random() < 0.02
        await there.move("a", is_planned=True)
        read: dict[str, list[int]] = {"a": [], "b": []}

        async def publish(name: str) -> None:
            for number in range(60):
                while True:
                    try:
                        await there.homes[name].publish(package(number, name))
                        break
                    except Unknown:  # it is sent again, with the same id
                        await asyncio.sleep(0.001)
                await asyncio.sleep(random.uniform(0, 0.01))

        async def subscribe(name: str) -> None:
            offset = 0
            while len(read[name]) < 120:
                query = TopicQuery("packages", offset, 1, 2**20, 30_000)
                found = await there.homes[name].read(query)
                read[name] += [each.offset for each in found.entries]
                offset = found.next
                await there.homes[name].announce(discovery(name, offset - 1, len(read[name])))

        async def move() -> None:
            while True:
                await asyncio.sleep(random.uniform(0, 0.1))
                to = random.choice("ab")
                await there.move(to, is_planned=random.random() < 0.5)

        moving = asyncio.ensure_future(move())
        async with asyncio.timeout(60):
            await asyncio.gather(*(publish(each) for each in "ab"), *map(subscribe, "ab"))
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        assert there.moves >= 3
        on_log = await published(there.journal)
        for name in "ab":
            own = [each for each in on_log if each.publisher == name]
            assert [each.package_id for each in own] == [f"{name}-{each}" for each in range(60)]
            assert [each.number for each in own] == list(range(1, 61)), "numbered without a gap"
            assert read[name] == list(range(120)), "each is read once, in order"
        await there.move("a" if there.journal.owner == "b" else "b", is_planned=True)
        farms = await there.homes["a"].publishers()
        numbers = {each.publisher: each.last_number for each in farms}
        assert (numbers["a"], numbers["b"]) == (60, 60), "what was known is read back"
        await there.fellows.close()

    run(story())


def test_a_reader_that_waits_is_told_at_once_and_a_former_owner_says_nothing() -> None:
    async def story() -> None:
        there = await farm()
        await there.move("a", is_planned=True)
        service = there.fellows.nodes["a"].content
        await there.homes["a"].publish(package(1))
        waiting = asyncio.ensure_future(
            service.read(ContentTopic.PACKAGES, 1, 1, bytes_max=1_000, wait_ms=30_000)
        )
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        before = loop.time()
        await there.move("b", is_planned=True)
        with pytest.raises(Moved):
            await waiting
        assert loop.time() - before < 1, "it does not wait for nothing"
        for asked in (
            service.publish(package(2)), service.publishers(), service.snapshots(),
            service.farm("site"), service.announce(discovery("one")), service.needs(),
        ):  # fmt: skip
            with pytest.raises(Moved):
                await asked
        assert len(await published(there.journal)) == 1
        assert there.fellows.nodes["a"].content.is_ready
        assert there.fellows.nodes["a"].content.warnings() == []
        await there.fellows.close()

    run(story())


def test_a_partition_that_comes_back_at_once_is_served_from_what_others_wrote() -> None:
    async def story() -> None:
        there = await farm()
        for number, name in enumerate("abababab"):
            await there.move(name, is_planned=number % 2 == 0)
            await there.homes["a"].publish(package(number))
        on_log = await published(there.journal)
        assert [each.number for each in on_log] == list(range(1, 9))
        await there.fellows.close()

    run(story())


def test_an_append_that_was_made_before_others_wrote_is_refused() -> None:
    """The partition goes away and comes back while the append is on its way."""

    async def story() -> None:
        there = await farm()
        await there.move("a", is_planned=True)
        await there.homes["a"].publish(package(1))
        a, b = (there.fellows.nodes[each] for each in "ab")
        there.journal.slow = "a"
        late = asyncio.ensure_future(a.content.publish(package(2)))
        await asyncio.sleep(0.01)
        there.journal.owner = "b"
        await b.runner.open(1)
        await b.content_life.settled()
        await b.content.publish(package(3))
        there.journal.owner = "a"  # which has not noticed
        with pytest.raises(Moved):
            await late
        assert [each.number for each in await published(there.journal)] == [1, 2]
        await a.content.publish(package(2))
        assert [each.number for each in await published(there.journal)] == [1, 2, 3]
        await there.fellows.close()

    run(story())


def test_what_others_need_of_the_topics_is_asked_of_the_member_that_has_them() -> None:
    async def story() -> None:
        there = await farm()
        await there.move("a", is_planned=True)
        life = there.fellows.nodes["b"].content_life
        assert (await life.needs(there.homes["b"])).recovery == {}, "they are not used yet"
        await there.homes["a"].publish(package(1))
        found = await life.needs(there.homes["b"])
        assert found == await there.fellows.nodes["a"].content.needs() and found.recovery

        class Away:
            async def needs(self) -> Any:
                raise HoldfastError("not reached")

        away: Any = Away()
        assert await life.needs(away) == EVERYTHING
        await there.fellows.close()

    run(story())


def test_large_files_need_a_store_that_all_members_reach(tmp_path: Path) -> None:
    journal = MemoryJournal()
    with pytest.raises(NoSharedStore, match="content_store") as refused:
        content_blobs(Config(), journal, tmp_path)
    assert isinstance(refused.value, InvalidState)
    assert content_blobs(Config(content_store=str(tmp_path)), journal, tmp_path / "beside")
