"""Segments made ahead: durable with their names before anything is written to them."""

import asyncio

from holdfast.journal.local import LocalJournal
from holdfast.journal.local.allocator import Allocator
from holdfast.journal.local.names import segment_capacity_bytes, segment_name, spare_name
from holdfast.limits import MIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedDisk

FOLDER = "/journal/t"


def allocator(disk: SimulatedDisk) -> Allocator:
    disk.make_folder(FOLDER)
    return Allocator(disk, FOLDER, SEGMENT_BYTES_MIN, disk.background())


def test_a_new_segment_survives_a_power_loss_from_the_moment_it_is_handed_out() -> None:
    disk = SimulatedDisk()
    allocator(disk).take(5, 100)
    survivor = disk.after_crash(DiskOutcome.DROP)
    assert survivor.open(f"{FOLDER}/{segment_name(5)}").size_bytes() == SEGMENT_BYTES_MIN


def test_a_spare_file_is_used_under_its_new_name_and_at_full_size() -> None:
    disk = SimulatedDisk()
    made = allocator(disk)
    disk.create(f"{FOLDER}/{spare_name(1)}", SEGMENT_BYTES_MIN - 1000).write(0, b"old")
    file = made.take(5, 100)
    assert file.read(0, 3) == b"old"
    assert file.size_bytes() == SEGMENT_BYTES_MIN
    assert disk.after_crash(DiskOutcome.DROP).list(FOLDER) == [segment_name(5)]


def test_an_append_larger_than_a_segment_gets_a_larger_one() -> None:
    file = allocator(SimulatedDisk()).take(5, 3 * SEGMENT_BYTES_MIN)
    assert file.size_bytes() == 3 * SEGMENT_BYTES_MIN


def test_the_first_segments_are_small_and_double() -> None:
    sizes_bytes = [segment_capacity_bytes(sequence, 64 * MIB) for sequence in (1, 2, 3, 4, 5, 90)]
    assert sizes_bytes == [4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 64 * MIB]


def test_the_next_segment_is_ready_when_the_first_is_half_full() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = LocalJournal.open("/journal", disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
        journal.create_topic("t", 1)
        await journal.append("t", 1, [bytes(SEGMENT_BYTES_MIN // 4)])
        assert segment_name(2) not in disk.list(FOLDER)
        await journal.append("t", 1, [bytes(SEGMENT_BYTES_MIN // 3)])
        assert segment_name(2) in disk.list(FOLDER)

    asyncio.run(story())
