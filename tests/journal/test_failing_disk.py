"""A disk that is full is waited for; a disk that fails a sync is never trusted again."""

import asyncio
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import DataLoss, ResourceExhausted
from holdfast.journal import Append
from holdfast.journal.local import LocalJournal, verify
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedDisk

ROOT = "/journal"


def opened(root: str | Path = ROOT, disk: SimulatedDisk | None = None) -> LocalJournal:
    journal = LocalJournal.open(root, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
    journal.create_topic("t", 2)
    return journal


async def fill_up(journal: LocalJournal) -> int:
    """Appends until there is no room; how many were acknowledged."""
    for number in range(10_000):
        try:
            await journal.append("t", 1, [b"%d" % number * 100])
        except ResourceExhausted as full:
            assert full.retry_after_ms > 0
            return number
    raise AssertionError("expected the disk to be full")


def test_a_full_disk_refuses_appends_reads_go_on_and_room_makes_it_go_on() -> None:
    disk = SimulatedDisk(capacity_bytes=200 * KIB)

    async def story() -> None:
        journal = opened(disk=disk)
        count = await fill_up(journal)
        assert journal.read_now("t", 1, count - 1)[0].payload == b"%d" % (count - 1) * 100
        with pytest.raises(ResourceExhausted):
            await journal.append("t", 1, [bytes(2 * KIB)])
        assert journal.bounds("t", 1).next == count

        restarted = opened(disk=disk.after_crash(DiskOutcome.KEEP))
        assert restarted.bounds("t", 1).next == count

        disk.capacity_bytes *= 2
        assert await journal.append("t", 1, [bytes(2 * KIB)]) == count

    asyncio.run(story())


def test_discarding_makes_room_on_a_full_disk() -> None:
    disk = SimulatedDisk(capacity_bytes=200 * KIB)

    async def story() -> None:
        journal = opened(disk=disk)
        count = await fill_up(journal)
        journal.discard("t", 1, count)
        assert await journal.append("t", 1, [bytes(2 * KIB)]) == count

    asyncio.run(story())


def test_a_write_that_ran_out_of_room_leaves_nothing_behind() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk=disk)
        await journal.append("t", 1, [b"before"])
        disk.fail_write_at = disk.operations + 1
        appends = [Append("t", 1, [b"refused"]), Append("t", 2, [b"refused" * 100])]
        with pytest.raises(ResourceExhausted):
            await journal.append_many(appends)
        restarted = opened(disk=disk.after_crash(DiskOutcome.KEEP))
        assert [restarted.bounds("t", each).next for each in (1, 2)] == [1, 0]
        assert await journal.append("t", 1, [b"after"]) == 1
        restarted = opened(disk=disk.after_crash(DiskOutcome.KEEP))
        assert [restarted.bounds("t", each).next for each in (1, 2)] == [2, 0]

    asyncio.run(story())


def test_a_failed_sync_fails_everyone_who_waits_and_everyone_after() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk=disk)
        journal.create_topic("u", 1)
        await journal.append("t", 1, [b"a"])
        disk.fail_sync_at = disk.syncs + 1
        answers = await asyncio.gather(
            journal.append("t", 1, [b"b"]), journal.append("t", 2, [b"c"]), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [DataLoss, DataLoss]
        syncs = disk.syncs
        for topic in ("t", "u"):
            with pytest.raises(DataLoss, match="restart"):
                await journal.append(topic, 1, [b"d"])
        assert disk.syncs == syncs, "a failed sync is not tried again"
        assert [entry.payload for entry in journal.read_now("t", 1, 0)] == [b"a"]
        await journal.close()
        restarted = opened(disk=disk.after_crash(DiskOutcome.DROP))
        assert [entry.payload for entry in restarted.read_now("t", 1, 0)] == [b"a"]

    asyncio.run(story())


def test_what_a_failed_sync_left_in_the_cache_is_durable_before_it_is_read_again() -> None:
    disk = SimulatedDisk()

    async def story() -> None:
        journal = opened(disk=disk)
        disk.fail_sync_at = disk.syncs + 1
        with pytest.raises(DataLoss):
            await journal.append("t", 1, [b"a"])
        await journal.close()
        restarted = opened(disk=disk)
        visible = restarted.read_now("t", 1, 0)
        after_power_loss = opened(disk=disk.after_crash(DiskOutcome.DROP))
        assert after_power_loss.read_now("t", 1, 0) == visible

    asyncio.run(story())


def test_a_real_limit_on_the_file_size_is_a_full_disk_too(tmp_path: Path) -> None:
    async def story() -> None:
        journal = opened(tmp_path)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        count = 0
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (32 * KIB, limit[1]))
            with pytest.raises(ResourceExhausted):
                while count < 1000:
                    await journal.append("t", 1, [bytes(1 * KIB)])
                    count += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, ignored)
        assert journal.bounds("t", 1).next == count
        assert await journal.append("t", 1, [bytes(1 * KIB)]) == count
        await journal.close()
        assert verify(str(tmp_path))[0].entries == count + 1

    asyncio.run(story())


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 1 MiB; only where mounting is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "holdfast", str(tmp_path)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this process may not mount a file system")
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs")
def test_a_real_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    async def story() -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(300 * KIB))
        journal = opened(small_disk)
        count = await fill_up(journal)
        assert journal.read_now("t", 1, count - 1)[0].payload == b"%d" % (count - 1) * 100
        ballast.unlink()
        assert await journal.append("t", 1, [bytes(1 * KIB)]) == count
        await journal.close()
        again = opened(small_disk)
        assert again.bounds("t", 1).next == count + 1
        await again.close()

    try:
        asyncio.run(story())
    finally:
        subprocess.run(["umount", str(small_disk)], check=True)
