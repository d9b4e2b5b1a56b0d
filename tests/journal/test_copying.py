"""Copies of logs: the same offsets, times and epochs in another journal."""

import asyncio
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import InvalidState, NotFound
from holdfast.journal import Append, Appended, Bounds, Retention
from holdfast.journal.local import JournalCopy, JournalReader, LocalJournal, WrittenAppend, verify
from holdfast.limits import SEGMENT_BYTES_MIN


class Hands(SystemClock):
    """A clock that a test turns."""

    at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms


def opened(root: Path, clock: Hands | None = None) -> LocalJournal:
    return LocalJournal.open(root, clock=clock, segment_bytes=SEGMENT_BYTES_MIN)


async def make(root: Path) -> None:
    """Three partitions over several segments, in several epochs; the third has nothing left."""
    hands = Hands()
    journal = opened(root, hands)
    journal.create_topic("t", 3, Retention(age_ms=1 << 40))
    for number in range(90):
        hands.at_ms += number % 3
        if number % 20 == 0:
            await journal.take("t", 1)
        entries = [b"%d-%d" % (number, each) * 300 for each in range(number % 4 + 1)]
        await journal.append("t", number % 2 + 1, entries)
    await journal.take("t", 3, 7)
    await journal.append("t", 3, [b"gone"] * 5)
    journal.discard("t", 1, 11)  # in the middle of an append
    journal.discard("t", 3, 5)
    await journal.close()


def all_of(journal: LocalJournal | JournalReader, partition: int) -> list[WrittenAppend]:
    found: list[WrittenAppend] = []
    offset, end = journal.bounds("t", partition)
    while offset < end:
        found += journal.appends("t", partition, offset, 10_000)
        offset = found[-1].offset + len(found[-1].entries)
    return found


async def copy(source: LocalJournal, root: Path) -> None:
    target = JournalCopy(root, SEGMENT_BYTES_MIN)
    target.create_topic("t", 3, source.retention("t"))
    appends: list[tuple[int, int, WrittenAppend]] = []
    for partition in (1, 2, 3):
        found = all_of(source, partition)
        appends += [(each.timestamp_ms, partition, each) for each in found]
        epoch = 0 if found else source.epoch("t", partition)
        target.begin_at("t", partition, source.bounds("t", partition).earliest, epoch)
    for _, partition, each in sorted(appends):
        await target.take("t", partition, each)
    await target.close()


def test_a_copy_has_what_the_log_has_where_the_log_has_it(tmp_path: Path) -> None:
    async def story() -> None:
        await make(tmp_path / "a")
        source = opened(tmp_path / "a")
        await copy(source, tmp_path / "b")
        assert all(not report.damage for report in verify(str(tmp_path / "b")))
        target, reader = opened(tmp_path / "b"), JournalReader.open(str(tmp_path / "b"))
        assert target.retention("t") == Retention(age_ms=1 << 40)
        assert source.bounds("t", 1).earliest == 11 and source.bounds("t", 3) == Bounds(5, 5)
        for partition in (1, 2, 3):
            for copied in (target, reader):
                assert copied.bounds("t", partition) == source.bounds("t", partition)
                assert all_of(copied, partition) == all_of(source, partition)
            assert target.epoch("t", partition) == source.epoch("t", partition)
            for at_ms in range(995, 1_100, 3):
                expected = source.offset_at("t", partition, at_ms)
                assert target.offset_at("t", partition, at_ms) == expected
        first = all_of(target, 1)[0]
        assert first.offset == 11 and len({each.epoch for each in all_of(target, 1)}) > 3
        with pytest.raises(NotFound):
            target.appends("t", 1, 10)
        outcome = (await target.append_many([Append("t", 3, [b"on"], 7, 5)]))[0]
        assert outcome == Appended(5, 6)
        await target.close()
        await source.close()

    asyncio.run(story())


def test_only_a_partition_without_a_log_begins_elsewhere(tmp_path: Path) -> None:
    async def story() -> None:
        journal = opened(tmp_path)
        journal.create_topic("t", 3)
        await journal.append("t", 1, [b"x"])
        await journal.take("t", 2)
        for partition in (1, 2):
            with pytest.raises(InvalidState, match="only a new partition"):
                journal.begin_at("t", partition, 5)
        journal.begin_at("t", 3, 5, 2)
        await journal.close()
        journal = opened(tmp_path)
        assert journal.bounds("t", 3) == Bounds(5, 5) and journal.epoch("t", 3) == 2
        with pytest.raises(InvalidState):
            journal.begin_at("t", 3, 6)
        assert await journal.append("t", 3, [b"x"]) == 5
        await journal.close()

    asyncio.run(story())
