"""Power loss at every write, sync and rename of a scripted run: what was acknowledged is there."""

import asyncio

import pytest

from holdfast.errors import DataLoss, HoldfastError
from holdfast.journal import Append, Appended
from holdfast.journal.local import JournalReader, LocalJournal, verify
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedCrash, SimulatedDisk

ROOT = "/journal"
PARTITIONS = 3


class Ledger:
    """What was sent and what was acknowledged, by partition; an append is a list of payloads."""

    def __init__(self) -> None:
        self.sent: dict[int, list[list[bytes]]] = {1: [], 2: [], 3: []}
        self.acknowledged = {1: 0, 2: 0, 3: 0}
        self.discarded = {1: 0, 2: 0, 3: 0}

    def check(self, journal: LocalJournal | JournalReader) -> None:
        """Nothing acknowledged is lost, and every append is there as a whole or not at all."""
        for partition, sent in self.sent.items():
            bounds = journal.bounds("t", partition)
            assert bounds.earliest <= self.discarded[partition]
            assert bounds.next >= self.acknowledged[partition]
            entries = []
            offset = bounds.earliest
            while found := journal.read_now("t", partition, offset):
                entries += [entry.payload for entry in found]
                offset = found[-1].offset + 1
            flat = [payload for append in sent for payload in append]
            ends = [0]
            for append in sent:
                ends.append(ends[-1] + len(append))
            assert bounds.next in ends, "an append is there in part"
            assert entries == flat[bounds.earliest : bounds.next]


async def scripted_run(disk: SimulatedDisk, ledger: Ledger) -> None:
    """Rolls, discards, reuse of files, a close and a second start, with appends of many sizes."""
    for start in range(2):
        journal = LocalJournal.open(ROOT, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
        journal.create_topic("t", PARTITIONS)
        for number in range(30):
            appends: list[Append] = []
            for partition in range(1, 2 + number % PARTITIONS):
                size_bytes = (number * 977 + partition * 131) % (9 * KIB)
                entries = [b"%d.%d.%d" % (start, number, partition), bytes([number]) * size_bytes]
                appends.append(Append("t", partition, entries))
                ledger.sent[partition].append(entries)
            outcomes = await journal.append_many(appends)
            for append, outcome in zip(appends, outcomes, strict=True):
                assert isinstance(outcome, Appended)
                ledger.acknowledged[append.partition] = outcome.next
            if number % 10 == 9:
                for partition in range(1, 1 + PARTITIONS):
                    before = max(0, ledger.acknowledged[partition] - 8)
                    ledger.discarded[partition] = max(before, ledger.discarded[partition])
                    journal.discard("t", partition, before)
        await journal.close()


def run_until_crash(crash_at: int | None) -> tuple[SimulatedDisk, Ledger]:
    disk, ledger = SimulatedDisk(crash_at=crash_at), Ledger()
    try:
        asyncio.run(scripted_run(disk, ledger))
    except (SimulatedCrash, DataLoss) as error:
        assert "power" in str(error) or "down" in str(error), error
    return disk, ledger


def check_survivor(disk: SimulatedDisk, ledger: Ledger) -> None:
    """The journal opens with all it must have, takes appends, and is the same once more."""

    async def story() -> None:
        journal = LocalJournal.open(ROOT, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
        if journal.topics():
            ledger.check(journal)
            ledger.check(JournalReader.open(ROOT, disk=disk))
        else:
            assert not any(ledger.acknowledged.values())
        journal.create_topic("t", PARTITIONS)
        bounds = {each: journal.bounds("t", each) for each in range(1, 1 + PARTITIONS)}
        offset = await journal.append("t", 2, [b"after the crash"])
        assert offset == bounds[2].next
        await journal.close()
        assert [report.damage for report in verify(ROOT, disk=disk)] == [[]]
        again = LocalJournal.open(ROOT, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
        assert again.bounds("t", 1) == bounds[1]
        assert again.bounds("t", 2) == bounds[2]._replace(next=offset + 1)
        await again.close()

    asyncio.run(story())


def test_the_script_meets_every_kind_of_operation() -> None:
    disk, ledger = run_until_crash(None)
    names = disk.list(f"{ROOT}/t")
    assert any(name.endswith(".spare") for name in names)
    assert not any(name.startswith(f"{1:020}") and name.endswith(".segment") for name in names)
    assert disk.operations > 300
    check_survivor(disk.after_crash(DiskOutcome.KEEP), ledger)


@pytest.mark.parametrize("part", range(8))
def test_no_acknowledged_entry_is_lost_at_any_operation(part: int) -> None:
    operations = run_until_crash(None)[0].operations
    for crash_at in range(1 + part, operations + 1, 8):
        disk, ledger = run_until_crash(crash_at)
        for outcome, seed in [
            (DiskOutcome.KEEP, 0),
            (DiskOutcome.DROP, 0),
            *((DiskOutcome.TEAR, seed) for seed in range(3)),
        ]:
            try:
                check_survivor(disk.after_crash(outcome, seed=seed), ledger)
            except (AssertionError, HoldfastError) as error:
                raise AssertionError(
                    f"crash at operation {crash_at}, {outcome}, {seed}: {error}"
                ) from error
