"""The journal's promise, checked on every backend."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench.peers.etcd import EtcdServer
from tests.etcd_server import etcd_server
from tests.journal.cluster.trio import settled_journal
from tests.kafka_server import open_kafka_journal

from holdfast.errors import InvalidArgument, NotFound, Unavailable
from holdfast.journal import Append, Appended, Bounds, Entry, Journal, Retention, Start
from holdfast.journal.local import LocalJournal
from holdfast.journal.memory import MemoryJournal
from holdfast.limits import ENTRY_BYTES_MAX, KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import SimulatedDisk

Story = Callable[[Journal], Awaitable[None]]
Play = Callable[[Story], None]


class Hands:
    """A clock whose hands the test turns."""

    def __init__(self) -> None:
        self.time_ms = 1_000

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic(self) -> float:
        return self.time_ms / 1000

    def busy(self) -> float:
        return self.monotonic()


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture(scope="module")
def shared_etcd() -> Iterator[EtcdServer]:
    """A real etcd; each test has a name of its own in it."""
    with etcd_server() as server:
        yield server


IN_KAFKA = "Kafka"
WITH_ETCD = "three members with etcd"
BACKENDS = [
    "memory",
    "local",
    "local on a simulated disk",
    "three members",
    # A story of three members with etcd is in the normal suite: tests/journal/cluster.
    pytest.param(IN_KAFKA, marks=pytest.mark.xdist_group("kafka")),
    pytest.param(WITH_ETCD, marks=[pytest.mark.soak, pytest.mark.xdist_group("etcd")]),
]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def play(backend: str, tmp_path: Path, clock: Hands, request: pytest.FixtureRequest) -> Play:
    """Plays a story on a fresh journal with a topic `t` of three partitions."""
    url, folder = "", None
    if backend == WITH_ETCD:
        url = f"{request.getfixturevalue('shared_etcd').url}/{tmp_path.name[:60]}"
        folder = tmp_path
    elif backend == IN_KAFKA:
        url = request.getfixturevalue("kafka_url")

    def fresh() -> Journal:
        if backend == "memory":
            return MemoryJournal(clock=clock)
        if backend == IN_KAFKA:
            return open_kafka_journal(url, clock)
        disk = None if backend == "local" else SimulatedDisk()
        return LocalJournal.open(tmp_path, clock=clock, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Journal]:
        if backend in ("three members", WITH_ETCD):
            members = settled_journal(clock, is_taken=True, folder=folder, etcd_url=url)
            async with members as journal:
                yield journal
            return
        journal = fresh()
        yield journal
        await journal.close()

    async def run(story: Story) -> None:
        async with opened() as journal:
            journal.create_topic("t", 3)
            await story(journal)

    return lambda story: asyncio.run(run(story))


def payloads(entries: list[Entry]) -> list[bytes]:
    return [entry.payload for entry in entries]


async def read_all(journal: Journal, partition: int = 1, bytes_max: int = 1000) -> list[bytes]:
    found: list[bytes] = []
    offset = journal.bounds("t", partition).earliest
    while entries := await journal.read("t", partition, offset, bytes_max):
        assert [entry.offset for entry in entries] == list(range(offset, offset + len(entries)))
        offset += len(entries)
        found += payloads(entries)
    return found


def test_entries_are_read_back_as_they_were_appended(play: Play, clock: Hands) -> None:
    async def story(journal: Journal) -> None:
        assert await journal.append("t", 1, [b"a", b"", b"c"]) == 0
        clock.time_ms += 5
        assert await journal.append("t", 1, [b"d"]) == 3
        assert await journal.read("t", 1, 0) == [
            Entry(0, 1_000, b"a"),
            Entry(1, 1_000, b""),
            Entry(2, 1_000, b"c"),
            Entry(3, 1_005, b"d"),
        ]
        assert payloads(await journal.read("t", 1, 2)) == [b"c", b"d"]
        assert await journal.read("t", 1, 4) == []

    play(story)


def test_a_topic_takes_at_least_the_space_of_its_entries(play: Play) -> None:
    async def story(journal: Journal) -> None:
        before = journal.bytes_used("t")
        await journal.append("t", 1, [bytes(1000)] * 10)
        assert journal.bytes_used("t") >= before + 10_000

    play(story)


def test_partitions_have_offsets_of_their_own(play: Play) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [b"a", b"b"])
        assert await journal.append("t", 2, [b"c"]) == 0
        assert journal.bounds("t", 1) == Bounds(0, 2)
        assert journal.bounds("t", 2) == Bounds(0, 1)
        assert journal.bounds("t", 3) == Bounds(0, 0)

    play(story)


def test_many_appends_at_once_return_their_first_offsets(play: Play) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("u", 1)
        appends = [
            Append("t", 1, [b"a", b"b"]),
            Append("u", 1, [b"x"]),
            Append("t", 1, [b"c"]),
            Append("t", 3, [b"d"]),
        ]
        outcomes = [
            await each if isinstance(each, asyncio.Future) else each
            for each in await journal.append_many(appends)
        ]
        assert outcomes == [
            Appended(0, 2),
            Appended(0, 1),
            Appended(2, 3),
            Appended(0, 1),
        ]
        assert await read_all(journal) == [b"a", b"b", b"c"]
        assert payloads(await journal.read("u", 1, 0)) == [b"x"]

    play(story)


def test_appends_of_one_turn_keep_the_order_in_which_they_were_made(play: Play) -> None:
    async def story(journal: Journal) -> None:
        offsets = await asyncio.gather(
            *(journal.append("t", 1 + number % 2, [b"%d" % number]) for number in range(100))
        )
        assert offsets == [number // 2 for number in range(100)]
        assert await read_all(journal, 1) == [b"%d" % number for number in range(0, 100, 2)]

    play(story)


def test_a_read_hands_out_about_as_many_bytes_as_asked_and_one_entry_at_least(play: Play) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [bytes(100)] * 50)
        await journal.append("t", 1, [bytes(100)] * 50)
        assert len(await journal.read("t", 1, 0, bytes_max=1000)) == 10
        assert len(await journal.read("t", 1, 45, bytes_max=1000)) == 10
        assert len(await journal.read("t", 1, 7, bytes_max=1)) == 1
        assert len(await read_all(journal, bytes_max=330)) == 100

    play(story)


def test_much_more_than_a_segment_is_read_back(play: Play) -> None:
    async def story(journal: Journal) -> None:
        expected: dict[int, list[bytes]] = {1: [], 2: [], 3: []}
        for number in range(120):
            for partition in (1, 2, 3) if number % 10 == 0 else (1, 2):
                entries = [b"%d/%d/" % (partition, number) * 50, b"x" * (number * 7 % 900)]
                await journal.append("t", partition, entries)
                expected[partition] += entries
        for partition in (1, 2, 3):
            assert await read_all(journal, partition, bytes_max=5 * KIB) == expected[partition]

    play(story)


def test_an_entry_of_the_largest_size_is_kept_and_a_larger_one_refused(play: Play) -> None:
    async def story(journal: Journal) -> None:
        largest = bytes(ENTRY_BYTES_MAX - 1) + b"!"
        await journal.append("t", 1, [largest, b"after"])
        assert payloads(await journal.read("t", 1, 0, bytes_max=1)) == [largest]
        assert payloads(await journal.read("t", 1, 1)) == [b"after"]
        with pytest.raises(InvalidArgument):
            await journal.append("t", 1, [largest + b"!"])
        assert journal.bounds("t", 1).next == 2

    play(story)


@pytest.mark.parametrize(
    ("append", "error"),
    [
        (Append("t", 1, []), InvalidArgument),
        (Append("t", 1, ["text"]), InvalidArgument),  # pyright: ignore[reportArgumentType]
        (Append("t", 0, [b"a"]), NotFound),
        (Append("t", 4, [b"a"]), NotFound),
        (Append("unknown", 1, [b"a"]), NotFound),
    ],
)
def test_a_wrong_append_is_refused_and_nothing_is_written(
    play: Play, append: Append, error: type[Exception]
) -> None:
    async def story(journal: Journal) -> None:
        with pytest.raises(error):
            await journal.append(append.topic, append.partition, append.entries)
        with pytest.raises(error):
            await journal.append_many([Append("t", 2, [b"good"]), append])
        assert [journal.bounds("t", partition).next for partition in (1, 2, 3)] == [0, 0, 0]

    play(story)


@pytest.mark.parametrize(("topic", "partitions"), [("", 1), ("a/b", 1), (".a", 1), ("a", 0),
                                                   ("a", 4_096), ("x" * 201, 1)])  # fmt: skip
def test_a_topic_that_cannot_be_kept_is_refused(play: Play, topic: str, partitions: int) -> None:
    async def story(journal: Journal) -> None:
        with pytest.raises(InvalidArgument):
            journal.create_topic(topic, partitions)
        assert journal.topics() == {"t": 3}

    play(story)


def test_creating_a_topic_again_needs_the_same_partitions(play: Play) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("t", 3)
        with pytest.raises(InvalidArgument):
            journal.create_topic("t", 4)
        assert journal.topics() == {"t": 3}

    play(story)


def test_reading_outside_of_the_bounds_says_what_they_are(play: Play) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [b"a"] * 10)
        journal.discard("t", 1, 4)
        for offset in (3, 11, -1):
            with pytest.raises(NotFound) as caught:
                await journal.read("t", 1, offset)
            assert caught.value.fields["earliest"] == 4
            assert caught.value.fields["next"] == 10
            with pytest.raises(NotFound):
                journal.stream("t", 1, offset)

    play(story)


def test_discarding_only_moves_up_and_not_beyond_the_end(play: Play) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [b"%d" % number for number in range(10)])
        journal.discard("t", 1, 4)
        journal.discard("t", 1, 2)
        assert journal.bounds("t", 1) == Bounds(4, 10)
        assert await read_all(journal) == [b"%d" % number for number in range(4, 10)]
        with pytest.raises(NotFound):
            journal.discard("t", 1, 11)
        journal.discard("t", 1, 10)
        assert journal.bounds("t", 1) == Bounds(10, 10)
        assert await journal.append("t", 1, [b"next"]) == 10

    play(story)


def test_an_offset_is_found_by_its_time(play: Play, clock: Hands) -> None:
    async def story(journal: Journal) -> None:
        assert journal.offset_at("t", 1, 0) == 0
        for number in range(200):
            clock.time_ms = 1_000 + 10 * number
            await journal.append("t", 1 + number % 2, [bytes(700), bytes(700)])
        assert journal.offset_at("t", 1, 0) == 0
        assert journal.offset_at("t", 1, 1_000) == 0
        assert journal.offset_at("t", 1, 1_001) == 2
        assert journal.offset_at("t", 2, 1_001) == 0
        assert journal.offset_at("t", 1, 2_000) == 100
        assert journal.offset_at("t", 1, 2_010) == 102
        assert journal.offset_at("t", 1, 9_999) == 200
        journal.discard("t", 1, 101)
        assert journal.offset_at("t", 1, 1_500) == 101

    play(story)


def test_time_never_goes_back_in_the_log(play: Play, clock: Hands) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [b"a"])
        clock.time_ms -= 500
        await journal.append("t", 1, [b"b"])
        assert [entry.timestamp_ms for entry in await journal.read("t", 1, 0)] == [1_000, 1_000]

    play(story)


def test_a_stream_gives_what_is_there_and_then_what_comes(play: Play) -> None:
    async def story(journal: Journal) -> None:
        await journal.append("t", 1, [b"a", b"b"])
        earliest = journal.stream("t", 1, Start.EARLIEST)
        following = journal.stream("t", 1, Start.NEXT)
        known = journal.stream("t", 1, 1)
        assert payloads(await anext(earliest)) == [b"a", b"b"]
        assert payloads(await anext(known)) == [b"b"]
        waiting = asyncio.gather(anext(earliest), anext(following), anext(known))
        await asyncio.sleep(0)
        await journal.append("t", 2, [b"of another partition"])
        await journal.append("t", 1, [b"c"])
        assert [payloads(each) for each in await asyncio.wait_for(waiting, 5)] == [[b"c"]] * 3

    play(story)


def test_a_stream_that_was_overtaken_by_discarding_is_told(play: Play) -> None:
    async def story(journal: Journal) -> None:
        stream = journal.stream("t", 1, Start.EARLIEST)
        await journal.append("t", 1, [b"a"] * 5)
        journal.discard("t", 1, 3)
        with pytest.raises(NotFound):
            await anext(stream)

    play(story)


def test_retention_by_age_drops_the_old_and_keeps_the_young(play: Play, clock: Hands) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("t", 3, Retention(age_ms=1_000))
        for number in range(100):
            clock.time_ms = 1_000 + 50 * number
            await journal.append("t", 1, [bytes(4 * KIB)])
        journal.enforce_retention(clock.time_ms)
        kept_from = journal.offset_at("t", 1, clock.time_ms - 1_000)
        bounds = journal.bounds("t", 1)
        assert kept_from - 32 < bounds.earliest <= kept_from  # 32: up to two segments stay
        assert len(await read_all(journal)) == 100 - bounds.earliest
        journal.enforce_retention(clock.time_ms + 60_000)
        assert journal.bounds("t", 1) == Bounds(100, 100)
        assert await journal.append("t", 1, [b"next"]) == 100

    play(story)


def test_retention_by_bytes_drops_the_oldest(play: Play) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("t", 3, Retention(bytes=100 * KIB))
        for _ in range(100):
            await journal.append("t", 1, [bytes(4 * KIB)])
            await journal.append("t", 2, [b"small"])
        journal.enforce_retention(0)
        kept = 100 - journal.bounds("t", 1).earliest
        assert 24 <= kept <= 24 + 32
        assert len(await read_all(journal, 1)) == kept

    play(story)


@pytest.mark.parametrize("retention", [Retention(bytes=KIB), Retention(age_ms=10)])
def test_retention_leaves_what_somebody_needs(
    play: Play, clock: Hands, retention: Retention
) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("t", 3, retention)
        for _ in range(100):
            await journal.append("t", 1, [bytes(4 * KIB)])
            await journal.append("t", 2, [b"small"])
        clock.time_ms += 1_000
        journal.enforce_retention(needed={"t": {1: 0}})
        assert journal.bounds("t", 1) == Bounds(0, 100), "all of it is needed"
        journal.enforce_retention(needed={"t": {1: 60, 2: 99}})
        assert 60 - 32 < journal.bounds("t", 1).earliest <= 60  # 32: up to two segments stay
        journal.enforce_retention(needed={"other": {1: 0}})
        assert journal.bounds("t", 1).earliest > 60, "nobody needs it any more"

    play(story)


def test_a_topic_without_retention_keeps_everything(play: Play) -> None:
    async def story(journal: Journal) -> None:
        for _ in range(50):
            await journal.append("t", 1, [bytes(4 * KIB)])
        journal.enforce_retention(1 << 40)
        assert journal.bounds("t", 1) == Bounds(0, 50)

    play(story)


def test_a_closed_journal_finishes_what_waits_and_refuses_the_rest(play: Play) -> None:
    async def story(journal: Journal) -> None:
        stream = asyncio.ensure_future(anext(journal.stream("t", 2, Start.NEXT)))
        waiting = asyncio.ensure_future(journal.append("t", 1, [b"a"]))
        await asyncio.sleep(0)
        await journal.close()
        assert await waiting == 0
        with pytest.raises(Unavailable):
            await stream
        with pytest.raises(Unavailable):
            await journal.append("t", 1, [b"b"])
        with pytest.raises(Unavailable):
            await journal.read("t", 1, 0)
        with pytest.raises(Unavailable):
            journal.create_topic("u", 1)
        await journal.close()

    play(story)


def test_an_append_that_is_cancelled_harms_nobody_else(play: Play) -> None:
    async def story(journal: Journal) -> None:
        cancelled = asyncio.ensure_future(journal.append("t", 1, [b"a"]))
        other = asyncio.ensure_future(journal.append("t", 2, [b"b"]))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await other == 0
        assert journal.bounds("t", 1).next in (0, 1)
        assert payloads(await journal.read("t", 2, 0)) == [b"b"]

    play(story)
