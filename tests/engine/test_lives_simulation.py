"""Appends that are refused, unknown or slow, at random, with crashes and moves: nothing is lost.

Clients ask with request ids and ask again until they are answered. Whatever the log does to them,
each request is done once, and its answer is true.
"""

import asyncio
from random import Random
from typing import Any

import pytest

from holdfast.engine.jobs.values import JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.errors import Code, HoldfastError, Moved, Unavailable, Unknown
from holdfast.journal import Append
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.records import Record, RecordKind, ValueType
from holdfast.state.memory import MemoryStore
from holdfast.testing import MemoryNode, run

PARTITIONS = 4
QUIET = 4  # nothing ever happens to the appends of this one
CLIENTS = 6
REQUESTS = 12  # of each client
UNTRUE = (Fate.REFUSED, Fate.KEPT, Fate.LATE, Fate.LOST, Fate.SLOW)


class Weather:
    """Decides by its seed what becomes of appends, when the power goes and what moves."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.share = self.random.choice((0.05, 0.2, 0.5))
        self.is_over = False

    def fate(self, append: Append) -> Fate:
        if append.partition == QUIET or self.is_over or self.random.random() > self.share:
            return Fate.DURABLE
        return self.random.choice(UNTRUE)

    def gap(self) -> int:
        return self.random.choice((0, 0, 0, 1, 7))


class Story:
    """One node, its clients, and what they were told."""

    def __init__(self, seed: int) -> None:
        self.weather = Weather(seed)
        self.random = Random(seed + 1)
        journal = MemoryJournal(fate=self.weather.fate, gap=self.weather.gap)
        self.node = MemoryNode(partitions=PARTITIONS, journal=journal)
        self.told: dict[str, Reply] = {}  # by request id
        self.made: dict[str, tuple[int, str]] = {}  # canceling request -> what it cancels
        self.seen: set[type[Exception]] = set()
        self.crashes = 0
        self.is_up = False

    async def play(self) -> None:
        await self.node.start()
        self.is_up = True
        disturbing = [asyncio.create_task(self._crash()), asyncio.create_task(self._place())]
        await asyncio.gather(*(self._client(number) for number in range(CLIENTS)))
        self.weather.is_over = True
        await asyncio.gather(*disturbing)
        await self.node.node.runner.settled()

    # --- what happens -------------------------------------------------------------------------

    async def _crash(self) -> None:
        while not self.weather.is_over:
            await asyncio.sleep(self.random.uniform(0.002, 0.05))
            self.is_up = False
            if self.random.random() < 0.5:
                self.node.node.runner.write_state()
                self.node.store.flush()
            await self.node.crash()
            self.crashes += 1
            await asyncio.sleep(self.random.uniform(0, 0.01))
            await self.node.restart()
            self.is_up = True

    async def _place(self) -> None:
        """What was moved away comes back, and sometimes a partition is moved in order."""
        while not self.weather.is_over:
            await asyncio.sleep(self.random.uniform(0.001, 0.01))
            if not self.is_up:
                continue
            runner = self.node.node.runner
            for partition in set(range(1, PARTITIONS + 1)) - set(runner.processors):
                try:
                    await runner.open(partition)
                except HoldfastError as error:
                    self.seen.add(type(error))
            if self.random.random() < 0.1:
                partition = self.random.randrange(1, PARTITIONS)
                try:
                    async with asyncio.timeout(1):  # the node may end meanwhile
                        await runner.close_partition(partition)
                except (HoldfastError, TimeoutError) as error:
                    self.seen.add(type(error))

    # --- who asks -----------------------------------------------------------------------------

    async def _client(self, number: int) -> None:
        mine: list[tuple[int, str, int]] = []
        for count in range(REQUESTS):
            await asyncio.sleep(self.random.uniform(0, 0.003))
            request, partition = f"{number}.{count}", self.random.randrange(1, PARTITIONS + 1)
            if mine and self.random.random() < 0.3:
                partition, made, key = mine.pop()
                self.made[request] = (key, made)
                command = Command(
                    ValueType.JOB, JobIntent.CANCEL, key, JobRef(), request_id=request
                )
                await self._ask(partition, command)
            else:
                new = NewJob("mail", request.encode())
                command = Command(ValueType.JOB, JobIntent.CREATE, 0, new, request_id=request)
                mine.append((partition, request, await self._ask(partition, command)))

    async def _ask(self, partition: int, command: Command) -> int:
        """Asks until there is an answer, and once more now and then."""
        assert command.request_id is not None
        while True:
            reply = await self._try(partition, command)
            if reply is None or _is_busy(reply):
                await asyncio.sleep(self.random.uniform(0.0005, 0.005))
                continue
            known = self.told.setdefault(command.request_id, reply)
            assert reply == known, "the same request has two answers"
            if self.random.random() < 0.8:
                return reply.key

    async def _try(self, partition: int, command: Command) -> Reply | None:
        if not self.is_up:
            return None
        try:
            (reply,) = await self.node.node.runner.submit(partition, [command])
        except (Unknown, Moved, Unavailable) as error:
            self.seen.add(type(error))
            if partition == QUIET:
                assert isinstance(error, Unavailable), "its neighbours are no business of its own"
            return None
        return reply


def _is_busy(reply: Reply) -> bool:
    return reply.rejection is not None and reply.rejection.code == Code.UNAVAILABLE


# --- what must hold ---------------------------------------------------------------------------


async def records_of(journal: Any, partition: int) -> list[Record]:
    found: list[Record] = []
    offset, last = 0, -1
    while entries := await journal.read(TOPIC, partition, offset, 2_000):
        for entry in entries:
            assert entry.offset > last
            last = entry.offset
            found.append(DISPATCH.codec.decode(entry.payload))
        offset = last + 1
    return found


async def check(story: Story) -> None:
    runner = story.node.node.runner
    created: dict[str, int] = {}
    canceled: list[int] = []
    for partition in range(1, PARTITIONS + 1):
        records = await records_of(story.node.journal, partition)
        assert [each.position for each in records] == list(range(len(records))), "no gaps, no twins"
        times = [each.timestamp_ms for each in records]
        assert times == sorted(times), "time never goes back"
        for each in records:
            if each.kind is RecordKind.EVENT and each.value_type == ValueType.JOB:
                if each.intent == JobIntent.CREATED:
                    request = each.value.payload.decode()
                    assert request not in created, "a request was done twice"
                    created[request] = each.key
                elif each.intent == JobIntent.CANCELED:
                    canceled.append(each.key)
        if partition not in runner.processors:
            await runner.open(partition)
        await check_state(story, partition)
    for request, reply in story.told.items():
        assert reply.rejection is None, reply.rejection
        if request in story.made:
            assert canceled.count(story.made[request][0]) == 1, "canceled once"
        else:
            assert created[request] == reply.key, "what was acknowledged is there, unchanged"
    assert len(story.told) == CLIENTS * REQUESTS, "every request was answered"
    assert runner.epoch(QUIET) == 1 + story.crashes, "nobody opened it again but the node itself"


async def check_state(story: Story, partition: int) -> None:
    fresh = open_partition(MemoryStore(), partition, PARTITIONS)
    offset = 0
    while entries := await story.node.journal.read(TOPIC, partition, offset, 5_000):
        fresh.replay(entries)
        offset = entries[-1].offset + 1
    assert story.node.dump(partition) == fresh.state.dump(), "state is not what the log says"


def play(seed: int) -> Story:
    async def whole() -> Story:
        story = Story(seed)
        try:
            async with asyncio.timeout(600):  # of virtual time
                await story.play()
            await check(story)
        except BaseException as error:
            error.add_note(f"replay it with seed {seed}")
            raise
        await story.node.close()
        return story

    return run(whole())


def test_requests_survive_whatever_becomes_of_appends() -> None:
    stories = [play(seed) for seed in range(25)]
    seen = set[type[Exception]]().union(*(story.seen for story in stories))
    assert {Unknown, Moved, Unavailable} <= seen, "the weather was too fine"
    assert sum(story.crashes for story in stories) > 10


def test_the_same_seed_is_the_same_story() -> None:
    first, again = play(3), play(3)
    assert (first.told, first.seen, first.crashes) == (again.told, again.seen, again.crashes)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_requests_survive_two_thousand_kinds_of_weather(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        play(seed)
