"""Starts: torn tails are cut, damage is refused with its place, indexes are rebuilt."""

import asyncio
from collections.abc import Callable

import pytest

from holdfast.errors import DataLoss
from holdfast.journal import Bounds
from holdfast.journal.local import LocalJournal, verify
from holdfast.journal.local.disk import read_whole
from holdfast.journal.local.frame import FrameHeader, scan
from holdfast.journal.local.names import index_name, segment_name
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedDisk

ROOT = "/journal"
FOLDER = f"{ROOT}/t"
FIRST = f"{FOLDER}/{segment_name(1)}"


def opened(disk: SimulatedDisk) -> LocalJournal:
    journal = LocalJournal.open(ROOT, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
    journal.create_topic("t", 2)
    return journal


def written(appends: int, size_bytes: int = 1 * KIB) -> SimulatedDisk:
    """The disk of a journal whose process was killed after some appends to partition 1."""
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk)
        for number in range(appends):
            await journal.append("t", 1, [b"%d" % number, bytes(size_bytes)])

    asyncio.run(story())
    return disk.after_crash(DiskOutcome.KEEP)


def contents(disk: SimulatedDisk, path: str) -> bytes:
    file = disk.open(path)
    return file.read(0, file.size_bytes())


def headers(disk: SimulatedDisk, sequence: int = 1) -> list[FrameHeader]:
    return scan(contents(disk, f"{FOLDER}/{segment_name(sequence)}"), sequence).headers


def flip(disk: SimulatedDisk, path: str, position: int) -> None:
    byte = contents(disk, path)[position]
    disk.damage(path, position, bytes([byte ^ 0x10]))


def forget_mark(disk: SimulatedDisk) -> None:
    """As after a power loss, when the mark never reached the platter."""
    disk.damage(f"{FOLDER}/durable", 0, bytes(20))


def read_numbers(journal: LocalJournal) -> list[int]:
    found: list[int] = []
    offset = journal.bounds("t", 1).earliest
    while entries := journal.read_now("t", 1, offset):
        found += [int(entry.payload) for entry in entries if entry.offset % 2 == 0]
        offset = entries[-1].offset + 1
    return found


@pytest.mark.parametrize("place", [0, 5, 20, 48, 60, 900])
def test_a_damaged_middle_refuses_to_start_and_names_the_place(place: int) -> None:
    disk = written(appends=10)
    forget_mark(disk)
    damaged = headers(disk)[4]
    flip(disk, FIRST, damaged.position + place)
    with pytest.raises(DataLoss) as caught:
        opened(disk)
    assert caught.value.fields["file"] == FIRST
    assert caught.value.fields["position"] == damaged.position
    assert caught.value.fields["offset"] == damaged.first_offset
    assert FIRST in caught.value.message


def test_a_damaged_last_frame_below_the_durable_mark_refuses_to_start() -> None:
    disk = written(appends=10)
    last = headers(disk)[-1]
    flip(disk, FIRST, last.position + 70)
    with pytest.raises(DataLoss) as caught:
        opened(disk)
    assert caught.value.fields["position"] == last.position


def test_a_last_frame_that_is_gone_below_the_durable_mark_refuses_to_start() -> None:
    disk = written(appends=10)
    last = headers(disk)[-1]
    disk.damage(FIRST, last.position, bytes(last.end - last.position))
    with pytest.raises(DataLoss):
        opened(disk)


def test_a_torn_tail_is_cut_off_and_never_comes_back() -> None:
    disk = written(appends=10)
    forget_mark(disk)
    last = headers(disk)[-1]
    flip(disk, FIRST, last.position + 70)
    journal = opened(disk)
    assert read_numbers(journal) == list(range(9))
    assert not contents(disk, FIRST)[last.position :].strip(b"\0")
    asyncio.run(journal.append("t", 1, [b"9", b""]))
    assert read_numbers(journal) == list(range(10))


def test_a_commit_of_many_frames_may_be_torn_in_its_middle() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk)
        await journal.append("t", 1, [b"0", b""])
        await asyncio.gather(*(journal.append("t", 1, [b"%d" % n, b""]) for n in range(1, 6)))

    asyncio.run(story())
    disk = disk.after_crash(DiskOutcome.KEEP)
    forget_mark(disk)
    third = headers(disk)[3]
    assert third.commit_position < third.position
    flip(disk, FIRST, third.position + 1)
    assert read_numbers(opened(disk)) == [0, 1]


def test_a_damaged_segment_before_the_last_refuses_to_start_even_without_its_index() -> None:
    disk = written(appends=100)
    forget_mark(disk)
    disk.remove(f"{FOLDER}/{index_name(1)}")
    last = headers(disk)[-1]
    flip(disk, FIRST, last.position + 70)
    with pytest.raises(DataLoss) as caught:
        opened(disk)
    assert caught.value.fields["position"] == last.position


def test_damage_under_an_intact_index_is_noticed_when_it_is_read() -> None:
    disk = written(appends=100)
    damaged = headers(disk)[5]
    flip(disk, FIRST, damaged.position + 70)
    journal = opened(disk)
    with pytest.raises(DataLoss) as caught:
        read_numbers(journal)
    assert caught.value.fields["offset"] == damaged.first_offset
    assert caught.value.fields["position"] == damaged.position
    (report,) = verify(ROOT, disk=disk)
    assert [(each.file, each.position) for each in report.damage][:1] == [(FIRST, damaged.position)]


def remove_index(disk: SimulatedDisk) -> None:
    disk.remove(f"{FOLDER}/{index_name(1)}")


def damage_summary(disk: SimulatedDisk) -> None:
    flip(disk, f"{FOLDER}/{index_name(1)}", 20)


def damage_points(disk: SimulatedDisk) -> None:
    flip(disk, f"{FOLDER}/{index_name(1)}", len(contents(disk, f"{FOLDER}/{index_name(1)}")) - 9)


@pytest.mark.parametrize("harm", [remove_index, damage_summary, damage_points])
def test_an_index_that_is_gone_or_damaged_is_rebuilt(harm: Callable[[SimulatedDisk], None]) -> None:
    disk = written(appends=100)
    harm(disk)
    journal = opened(disk)
    assert read_numbers(journal) == list(range(100))
    assert journal.read_now("t", 1, 20)[0].payload == b"10"


def test_a_segment_that_is_missing_is_named() -> None:
    disk = written(appends=200)
    disk.remove(f"{FOLDER}/{segment_name(2)}")
    with pytest.raises(DataLoss) as caught:
        opened(disk)
    assert caught.value.fields["file"] == f"{FOLDER}/{segment_name(2)}"


def test_the_oldest_segment_must_not_vanish_unless_it_was_discarded() -> None:
    disk = written(appends=200)
    disk.remove(FIRST)
    with pytest.raises(DataLoss):
        opened(disk)


def test_offsets_go_on_when_no_entry_of_a_partition_is_left() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk)
        await journal.append("t", 2, [b"a", b"b", b"c"])
        for _ in range(150):
            await journal.append("t", 1, [bytes(KIB)])
        journal.discard("t", 2, 3)
        journal.discard("t", 1, 150)
        await journal.close()
        again = opened(disk)
        assert again.bounds("t", 2) == Bounds(3, 3)
        assert again.bounds("t", 1) == Bounds(150, 150)
        assert await again.append("t", 2, [b"d"]) == 3

    asyncio.run(story())
    assert segment_name(1) not in disk.list(FOLDER)


def test_what_a_killed_process_left_half_done_is_cleared_away() -> None:
    disk = written(appends=10)
    disk.create(f"{FOLDER}/{index_name(9)}", 10)
    disk.create(f"{FOLDER}/topic.json.new", 10)
    disk.create(f"{FOLDER}/{segment_name(2)}", 100)
    disk.damage(f"{FOLDER}/{segment_name(2)}", 50, b"garbage")
    assert read_numbers(opened(disk)) == list(range(10))
    names = disk.list(FOLDER)
    assert names == [
        segment_name(1),
        "durable",
        "earliest",
        "epochs",
        "topic.copy.json",
        "topic.json",
    ]


def test_damaged_settings_of_a_topic_are_read_from_their_copy() -> None:
    disk = written(appends=1)
    whole = read_whole(disk, f"{FOLDER}/topic.json")
    disk.damage(f"{FOLDER}/topic.json", 0, b"###")
    opened(disk)
    assert read_whole(disk, f"{FOLDER}/topic.json") == whole, "written anew from its copy"


def test_settings_of_a_topic_that_are_damaged_twice_are_named() -> None:
    disk = written(appends=1)
    for name in ("topic.json", "topic.copy.json"):
        disk.damage(f"{FOLDER}/{name}", 0, b"###")
    with pytest.raises(DataLoss, match=r"topic\.copy\.json"):
        opened(disk)
