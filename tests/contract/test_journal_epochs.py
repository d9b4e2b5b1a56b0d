"""Who may write a partition: epochs, expected offsets and the three outcomes, on every backend."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.journal.cluster.trio import settled_journal
from tests.kafka_server import open_kafka_journal

from holdfast.clock import SystemClock
from holdfast.errors import InvalidArgument, Unknown
from holdfast.journal import Append, Appended, Entry, Journal, Outcome, Refused, Start, Taken
from holdfast.journal.local import JournalReader, LocalJournal
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import SimulatedDisk

Story = Callable[[Journal], Awaitable[None]]
Play = Callable[[Story], None]

BACKENDS = {
    "memory": lambda _: MemoryJournal(),
    "memory with gaps": lambda _: MemoryJournal(gap=_gaps()),
    "local": lambda path: LocalJournal.open(path, segment_bytes=SEGMENT_BYTES_MIN),
    "simulated disk": lambda _: LocalJournal.open(
        "/journal", disk=SimulatedDisk(), segment_bytes=SEGMENT_BYTES_MIN
    ),
}


def _gaps() -> Callable[[], int]:
    """0, 1, 2, 0, 1, 2, ..."""
    count = 0

    def gap() -> int:
        nonlocal count
        count += 1
        return count % 3

    return gap


IN_KAFKA = pytest.param("Kafka", marks=pytest.mark.xdist_group("kafka"))


@pytest.fixture(params=[*BACKENDS, "three members", IN_KAFKA])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Plays a story on a fresh journal with a topic `t` of three partitions."""
    if request.param == "three members":
        return lambda story: asyncio.run(_of_three_members(story))
    return _play_on_one(request, tmp_path)


@pytest.fixture(params=[*BACKENDS, IN_KAFKA])
def play_chosen(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """As `play`, where the writer may choose an epoch; in a cluster the chain of ranges does."""
    return _play_on_one(request, tmp_path)


def _play_on_one(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    if request.param == "Kafka":
        url = request.getfixturevalue("kafka_url")
        return lambda story: asyncio.run(_of_one(lambda _: open_kafka_journal(url), story, url))
    return lambda story: asyncio.run(_of_one(BACKENDS[request.param], story, tmp_path))


async def _of_one(fresh: Callable[[Any], Journal], story: Story, place: object) -> None:
    journal = fresh(place)
    journal.create_topic("t", 3)
    await story(journal)
    await journal.close()


async def _of_three_members(story: Story) -> None:
    async with settled_journal(SystemClock()) as journal:
        journal.create_topic("t", 3)
        await story(journal)


async def taken(journal: Journal, partition: int = 1, epoch: int | None = None) -> Taken:
    found = await journal.take("t", partition, epoch)
    assert isinstance(found, Taken)
    return found


async def outcomes_of(journal: Journal, appends: Sequence[Append]) -> list[Outcome]:
    """What became of each, those that take longer too."""
    return [
        await each if isinstance(each, asyncio.Future) else each
        for each in await journal.append_many(appends)
    ]


async def appended(journal: Journal, append: Append) -> Appended:
    (outcome,) = await journal.append_many([append])
    assert isinstance(outcome, Appended), outcome
    return outcome


async def everything(journal: Journal, partition: int) -> list[bytes]:
    found: list[Entry] = []
    offset = journal.bounds("t", partition).earliest
    while entries := await journal.read("t", partition, offset, 100):
        found += entries
        offset = entries[-1].offset + 1
    offsets = [entry.offset for entry in found]
    assert offsets == sorted(set(offsets))
    assert not found or offsets[-1] < journal.bounds("t", partition).next
    return [entry.payload for entry in found]


def test_the_taker_of_a_partition_appends_where_the_last_append_ended(play: Play) -> None:
    async def story(journal: Journal) -> None:
        epoch, following = await taken(journal)
        assert epoch == 1
        for number in range(20):
            outcome = await appended(journal, Append("t", 1, [b"%d" % number, b"x"], 1, following))
            assert following <= outcome.first < outcome.next
            following = outcome.next
        assert following == journal.bounds("t", 1).next
        assert (await everything(journal, 1))[::2] == [b"%d" % number for number in range(20)]

    play(story)


def test_a_newer_epoch_has_the_last_word(play: Play) -> None:
    async def story(journal: Journal) -> None:
        old = await taken(journal)
        first = await appended(journal, Append("t", 1, [b"old"], old.epoch, old.next))
        new = await taken(journal)
        assert new.epoch == old.epoch + 1
        assert new.next >= first.next, "a backend may write down who has the partition"
        before = journal.bounds("t", 1)
        (late,) = await journal.append_many([Append("t", 1, [b"late"], old.epoch, first.next)])
        assert isinstance(late, Refused)
        assert (late.partition, late.epoch, late.next) == (1, new.epoch, new.next)
        assert f"epoch {new.epoch}" in late.reason
        assert journal.bounds("t", 1) == before, "nothing was written"
        await appended(journal, Append("t", 1, [b"new"], new.epoch, new.next))
        assert await everything(journal, 1) == [b"old", b"new"]

    play(story)


def test_an_append_in_an_epoch_that_nobody_took_begins_it(play_chosen: Play) -> None:
    async def story(journal: Journal) -> None:
        end = await appended(journal, Append("t", 1, [b"a"], 7, 0 if _plain(journal) else None))
        (older,) = await journal.append_many([Append("t", 1, [b"b"], 6)])
        assert isinstance(older, Refused)
        assert (older.epoch, older.next) == (7, end.next)
        assert (await taken(journal)).epoch == 8

    play_chosen(story)


def _plain(journal: Journal) -> bool:
    return not (isinstance(journal, MemoryJournal) and journal._gap is not None)


@pytest.mark.parametrize("step", [-1, 1])
def test_an_append_that_expects_another_end_is_refused(play: Play, step: int) -> None:
    async def story(journal: Journal) -> None:
        epoch, following = await taken(journal)
        end = (await appended(journal, Append("t", 1, [b"a"], epoch, following))).next
        (outcome,) = await journal.append_many([Append("t", 1, [b"b"], epoch, end + step)])
        assert isinstance(outcome, Refused)
        assert (outcome.epoch, outcome.next) == (epoch, end)
        assert f"ends at {end}" in outcome.reason
        assert await everything(journal, 1) == [b"a"]

    play(story)


def test_a_refusal_does_not_touch_the_others_of_the_same_commit(play: Play) -> None:
    async def story(journal: Journal) -> None:
        journal.create_topic("u", 1)
        ends = {each: await taken(journal, each) for each in (1, 2, 3)}
        await taken(journal, 2)
        appends = [
            Append("t", each, [b"%d" % each, bytes(each)], ends[each].epoch, ends[each].next)
            for each in (1, 2, 3)
        ]
        one, two, three, other = await outcomes_of(journal, [*appends, Append("u", 1, [b"u"])])
        assert isinstance(two, Refused)
        assert isinstance(one, Appended)
        assert isinstance(three, Appended)
        assert isinstance(other, Appended)
        assert [await everything(journal, each) for each in (1, 2, 3)] == [
            [b"1", bytes(1)], [], [b"3", bytes(3)],
        ]  # fmt: skip

    play(story)


def test_appends_behind_a_refused_one_of_the_same_partition_are_refused_too(play: Play) -> None:
    async def story(journal: Journal) -> None:
        epoch, following = await taken(journal)
        wrong = Append("t", 1, [b"wrong"], epoch, following + 5)
        behind = Append("t", 1, [b"behind"], epoch, following + 6)
        right = Append("t", 1, [b"right"], epoch, following)
        outcomes = await outcomes_of(journal, [wrong, behind, right])
        assert [type(each) for each in outcomes] == [Refused, Refused, Appended]
        assert await everything(journal, 1) == [b"right"]

    play(story)


def test_a_commit_of_which_everything_is_refused_writes_nothing(play: Play) -> None:
    async def story(journal: Journal) -> None:
        used = journal.bytes_used("t")
        outcomes = await journal.append_many([Append("t", each, [b"x"], 1, 9) for each in (1, 2)])
        assert [type(each) for each in outcomes] == [Refused, Refused]
        assert journal.bytes_used("t") == used
        assert await journal.append("t", 1, [b"plain"]) >= 0

    play(story)


def test_a_plain_append_goes_on_in_the_newest_epoch(play_chosen: Play) -> None:
    async def story(journal: Journal) -> None:
        epoch, following = await taken(journal, epoch=5)
        await journal.append("t", 1, [b"anybody"])
        (moved,) = await journal.append_many([Append("t", 1, [b"x"], epoch, following)])
        assert isinstance(moved, Refused)
        assert (moved.epoch, moved.next) == (5, journal.bounds("t", 1).next)

    play_chosen(story)


def test_an_epoch_only_goes_up(play_chosen: Play) -> None:
    async def story(journal: Journal) -> None:
        end = (await taken(journal, epoch=5)).next
        for epoch in (0, 4, 5):
            found = await journal.take("t", 1, epoch)
            assert isinstance(found, Refused)
            assert (found.epoch, found.next) == (5, end)
        assert (await taken(journal, epoch=9)).epoch == 9
        assert (await taken(journal, 2)).epoch == 1, "each partition has its own"
        for wrong in (-1, 1 << 32):
            with pytest.raises(InvalidArgument, match="an epoch"):
                await journal.take("t", 1, wrong)
            with pytest.raises(InvalidArgument, match="an epoch"):
                await journal.append_many([Append("t", 1, [b"x"], wrong)])

    play_chosen(story)


def test_a_stream_goes_over_epochs_and_gaps(play: Play) -> None:
    async def story(journal: Journal) -> None:
        found: list[bytes] = []

        async def follow() -> None:
            async for entries in journal.stream("t", 1, Start.EARLIEST):
                found.extend(entry.payload for entry in entries)
                if len(found) == 6:
                    return

        following = asyncio.create_task(follow())
        for _ in range(3):
            epoch, end = await taken(journal)
            await appended(journal, Append("t", 1, [b"%d" % epoch, b"x"], epoch, end))
            await asyncio.sleep(0)
        await asyncio.wait_for(following, 10)
        assert found == [b"1", b"x", b"2", b"x", b"3", b"x"]

    play(story)


def test_what_is_discarded_is_gone_and_the_rest_is_read(play: Play) -> None:
    async def story(journal: Journal) -> None:
        ends = [(await appended(journal, Append("t", 1, [b"%d" % each]))).next for each in range(9)]
        journal.discard("t", 1, ends[4])
        assert journal.bounds("t", 1).earliest == ends[4]
        assert await everything(journal, 1) == [b"5", b"6", b"7", b"8"]
        journal.discard("t", 1, ends[-1])
        assert await everything(journal, 1) == []

    play(story)


# --- the local journal ------------------------------------------------------------------------


def test_epochs_outlive_restarts_and_discarded_segments() -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        for start in range(4):
            journal = LocalJournal.open("/j", disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
            journal.create_topic("t", 2)
            epoch, following = await taken(journal)
            assert epoch == start + 1
            await appended(journal, Append("t", 1, [b"x"], epoch, following))
            for _ in range(80):  # partition 2 pushes the frames of partition 1 out
                await journal.append("t", 2, [bytes(KIB)])
            journal.discard("t", 1, journal.bounds("t", 1).next)
            journal.discard("t", 2, journal.bounds("t", 2).next)
            await journal.close()
        journal = LocalJournal.open("/j", disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
        (outcome,) = await journal.append_many([Append("t", 1, [b"old"], 3)])
        assert isinstance(outcome, Refused)
        assert outcome.epoch == 4

    asyncio.run(story())


def test_a_take_waits_for_what_is_on_its_way_to_the_disk(tmp_path: Path) -> None:
    """A commit that a thread writes lands before the end of the log is told."""

    async def story() -> None:
        journal = LocalJournal.open(tmp_path)
        journal.create_topic("t", 1)
        epoch, following = await taken(journal)
        big = asyncio.ensure_future(
            journal.append_many([Append("t", 1, [bytes(1024 * KIB)] * 3, epoch, following)])
        )
        await asyncio.sleep(0)
        again = await taken(journal)
        assert again.next == 3
        assert await big == [Appended(0, 3)]
        await journal.close()

    asyncio.run(story())


def test_a_reader_in_another_process_sees_nothing_of_a_refused_append(tmp_path: Path) -> None:
    async def story() -> None:
        journal = LocalJournal.open(tmp_path)
        journal.create_topic("t", 2)
        reader = JournalReader.open(str(tmp_path))
        await journal.append_many([Append("t", 1, [b"a"], 2, 0), Append("t", 2, [b"b"], 1, 7)])
        await journal.append_many([Append("t", 1, [b"c"], 1, 1), Append("t", 2, [b"d"], 1, 0)])
        assert [each.payload for each in reader.read_now("t", 1, 0)] == [b"a"]
        assert [each.payload for each in reader.read_now("t", 2, 0)] == [b"d"]
        await journal.close()

    asyncio.run(story())


# --- what a journal in memory can be told -----------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "now", "when_taken"),
    [(Fate.KEPT, [b"a"], [b"a"]), (Fate.LATE, [], [b"a"]), (Fate.LOST, [], [])],
)
def test_an_unknown_append_is_in_the_log_once_the_partition_is_taken_or_never(
    fate: Fate, now: list[bytes], when_taken: list[bytes]
) -> None:
    async def story() -> None:
        journal = MemoryJournal(fate=lambda append: fate if append.partition == 1 else Fate.DURABLE)
        journal.create_topic("t", 2)
        epoch, following = await taken(journal)
        unknown, other = await journal.append_many(
            [Append("t", 1, [b"a"], epoch, following), Append("t", 2, [b"b"], 1, 0)]
        )
        assert isinstance(unknown, Unknown)
        assert isinstance(other, Appended)
        assert await everything(journal, 1) == now
        await taken(journal)
        assert await everything(journal, 1) == when_taken
        await taken(journal)
        assert await everything(journal, 1) == when_taken

    asyncio.run(story())


def test_a_slow_append_is_told_by_a_future_and_holds_nobody_up() -> None:
    async def story() -> None:
        journal = MemoryJournal(
            fate=lambda append: Fate.SLOW if append.partition == 1 else Fate.DURABLE
        )
        journal.create_topic("t", 2)
        slow, quick = await journal.append_many(
            [Append("t", 1, [b"a"], 1, 0), Append("t", 2, [b"b"], 1, 0)]
        )
        assert quick == Appended(0, 1)
        assert isinstance(slow, asyncio.Future)
        assert await slow == Appended(0, 1)

    asyncio.run(story())


def test_a_refusal_that_is_told_is_a_newer_epoch() -> None:
    async def story() -> None:
        journal = MemoryJournal(fate=lambda _: Fate.REFUSED)
        journal.create_topic("t", 1)
        epoch, following = await taken(journal)
        (outcome,) = await journal.append_many([Append("t", 1, [b"a"], epoch, following)])
        assert isinstance(outcome, Refused)
        assert outcome.epoch == epoch + 1
        assert await everything(journal, 1) == []

    asyncio.run(story())
