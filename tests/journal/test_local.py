"""The local journal: shared syncs, the lock, the index's thrift, readers in other processes."""

import asyncio
import os
import subprocess
import sys
import textwrap
from array import array
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import InvalidArgument, InvalidState, NotFound, Unavailable
from holdfast.journal import Append, Bounds, Retention
from holdfast.journal.local import JournalReader, LocalJournal, verify
from holdfast.journal.local.disk import RealDisk, RealFile
from holdfast.journal.local.follower import TopicFollower
from holdfast.limits import (
    KIB,
    LOOP_COMMIT_BYTES_MAX,
    LOOP_COMMIT_SECONDS_MAX,
    SEGMENT_BYTES_MIN,
    THREAD_COMMIT_BYTES_MIN,
)
from holdfast.testing.disk import SimulatedDisk


class Commits:
    """Notes what an observer is told."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, int]] = []

    def on_commit(self, entries: int, size_bytes: int, sync_seconds: float) -> None:
        assert sync_seconds >= 0
        self.noted.append((entries, size_bytes))


def opened(root: Path, **options: object) -> LocalJournal:
    return LocalJournal.open(root, segment_bytes=SEGMENT_BYTES_MIN, **options)  # pyright: ignore


def test_all_appends_of_a_turn_share_one_sync(tmp_path: Path) -> None:
    async def story() -> None:
        disk, commits = SimulatedDisk(), Commits()
        journal = LocalJournal.open("/journal", disk=disk, observer=commits)
        journal.create_topic("t", 16)
        await journal.append("t", 1, [b"first"])
        syncs = disk.syncs
        await asyncio.gather(
            *(journal.append("t", each, [b"a", b"b"]) for each in range(1, 17)),
            journal.append_many([Append("t", each, [b"c"]) for each in range(1, 17)]),
        )
        assert disk.syncs == syncs + 1
        assert [entries for entries, _ in commits.noted] == [1, 48]

    asyncio.run(story())


class CountingThread(ThreadPoolExecutor):
    """A commit thread that notes how often it is used."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.used = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.used += 1
        return super().submit(fn, *args, **kwargs)


class CountingDisk(RealDisk):
    def __init__(self) -> None:
        self.thread = CountingThread()

    def committing(self) -> Executor:
        return self.thread


class SteppedClock(SystemClock):
    """Every look at it is `step` seconds after the last, so each sync seems to take so long."""

    step = 0.0
    _now = 0.0

    def monotonic(self) -> float:
        self._now += self.step
        return self._now


def test_the_thread_writes_commits_of_a_middle_size_only_while_the_disk_is_slow(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        disk, clock = CountingDisk(), SteppedClock()
        journal = LocalJournal.open(tmp_path, disk=disk, clock=clock)
        journal.create_topic("t", 1)

        async def threads_of(size_bytes: int, sync_seconds: float) -> int:
            clock.step = sync_seconds
            before = disk.thread.used
            await journal.append("t", 1, [bytes(size_bytes)])
            return disk.thread.used - before

        quick, slow = LOOP_COMMIT_SECONDS_MAX / 2, LOOP_COMMIT_SECONDS_MAX * 2
        middle = THREAD_COMMIT_BYTES_MIN
        assert await threads_of(100, slow) == 0
        assert await threads_of(middle, quick) == 1  # nothing is known of the disk yet
        assert await threads_of(middle, quick) == 0
        assert await threads_of(LOOP_COMMIT_BYTES_MAX, quick) == 1
        assert await threads_of(middle, slow) == 0  # only now the disk has become slow
        assert await threads_of(middle, slow) == 1
        assert await threads_of(100, quick) == 0  # a small sync tells nothing about larger ones
        assert await threads_of(middle, quick) == 1
        assert await threads_of(middle, quick) == 0
        await journal.close()

    asyncio.run(story())


def test_an_entry_whose_length_is_not_its_number_of_bytes_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        journal = opened(tmp_path)
        journal.create_topic("t", 1)
        words = memoryview(array("I", [1, 2, 3]))
        with pytest.raises(InvalidArgument):
            await journal.append("t", 1, [b"good", words])  # pyright: ignore
        await journal.append("t", 1, [b"good"])
        assert [each.payload for each in journal.read_now("t", 1, 0)] == [b"good"]
        await journal.close()

    asyncio.run(story())


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        for start in range(4):
            journal = opened(tmp_path)
            journal.create_topic("t", 3, Retention(age_ms=1 << 40))
            assert journal.bounds("t", 2) == Bounds(0, 60 * start)
            for number in range(60):
                await journal.append("t", 2, [b"%d" % (60 * start + number) * 400])
            await journal.close()
        journal = opened(tmp_path)
        assert journal.topics() == {"t": 3}
        offset = 0
        while entries := journal.read_now("t", 2, offset):
            for entry in entries:
                assert entry.payload == b"%d" % entry.offset * 400
            offset += len(entries)
        assert offset == 240
        await journal.close()
        (report,) = verify(str(tmp_path))
        assert (report.entries, report.damage) == (240, [])
        assert report.segments > 2

    asyncio.run(story())


def test_the_second_opener_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    async def story() -> None:
        journal = opened(tmp_path)
        with pytest.raises(Unavailable) as caught:
            opened(tmp_path)
        assert f"in use by process {os.getpid()} on " in caught.value.message
        await journal.close()
        await opened(tmp_path).close()

    asyncio.run(story())


def test_a_partition_is_read_without_parsing_its_many_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        journal = LocalJournal.open(tmp_path)
        journal.create_topic("t", 64)
        for number in range(20):
            appends = [Append("t", each, [b"%d" % number, bytes(KIB)]) for each in range(1, 65)]
            await journal.append_many(appends)
        read_bytes = 0
        read = RealFile.read

        def counted(self: RealFile, position: int, size_bytes: int) -> bytes:
            nonlocal read_bytes
            read_bytes += size_bytes
            return read(self, position, size_bytes)

        monkeypatch.setattr(RealFile, "read", counted)
        assert len(journal.read_now("t", 64, 0)) == 40
        assert read_bytes <= 20 * 4 * KIB, "a page for each frame of the partition, no more"
        await journal.close()

    asyncio.run(story())


def test_discarded_segments_leave_the_disk_but_for_a_few_that_are_used_again(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        journal = opened(tmp_path)
        journal.create_topic("t", 1)
        for _ in range(1000):
            await journal.append("t", 1, [bytes(2 * KIB)])
        journal.discard("t", 1, 1000)
        await journal.close()
        names = [path.name for path in (tmp_path / "t").iterdir()]
        assert sum(name.endswith(".spare") for name in names) == 4
        assert sum(name.endswith(".segment") for name in names) <= 2
        journal = opened(tmp_path)
        for _ in range(100):
            await journal.append("t", 1, [b"again" * 400])
        assert {entry.payload for entry in journal.read_now("t", 1, 1000)} == {b"again" * 400}
        await journal.close()
        assert sum(path.name.endswith(".spare") for path in (tmp_path / "t").iterdir()) < 4

    asyncio.run(story())


def test_a_reader_sees_what_is_durable_and_follows_rolls_and_discards(tmp_path: Path) -> None:
    async def story() -> None:
        writer = opened(tmp_path)
        reader = JournalReader.open(str(tmp_path))
        assert reader.topics() == {}
        with pytest.raises(NotFound):
            reader.bounds("t", 1)
        writer.create_topic("t", 2)
        assert reader.bounds("t", 1) == Bounds(0, 0)
        for number in range(200):
            await writer.append("t", 1 + number % 2, [b"%d" % number, bytes(2 * KIB)])
            assert reader.bounds("t", 1) == writer.bounds("t", 1)
        late = JournalReader.open(str(tmp_path))
        for each in (reader, late):
            assert each.read_now("t", 2, 100) == writer.read_now("t", 2, 100)
        writer.discard("t", 1, 190)
        writer.discard("t", 2, 190)
        for _ in range(200):  # over the files of the discarded segments
            await writer.append("t", 1, [bytes(2 * KIB)])
        for each in (reader, late):
            assert each.bounds("t", 1).earliest == 190
            with pytest.raises(NotFound):
                each.read_now("t", 1, 10)
            assert each.read_now("t", 1, 190) == writer.read_now("t", 1, 190)
        with pytest.raises(InvalidState):
            await reader.append("t", 1, [b"a"])
        await reader.close()
        await writer.close()

    asyncio.run(story())


def test_a_reader_of_a_file_that_is_used_again_meanwhile_is_told_of_the_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        writer = opened(tmp_path)
        writer.create_topic("t", 1)
        for _ in range(150):
            await writer.append("t", 1, [bytes(2 * KIB)])
        reader = JournalReader.open(str(tmp_path))
        assert len(reader.read_now("t", 1, 0, bytes_max=10 * KIB)) == 5
        writer.discard("t", 1, 150)
        for _ in range(150):
            await writer.append("t", 1, [bytes(2 * KIB)])
        refresh = TopicFollower.refresh

        def too_early(self: TopicFollower) -> None:
            """As if the file had been used again just after the reader had looked."""
            monkeypatch.setattr(TopicFollower, "refresh", refresh)

        monkeypatch.setattr(TopicFollower, "refresh", too_early)
        with pytest.raises(NotFound) as caught:
            reader.read_now("t", 1, 5)
        assert caught.value.fields["earliest"] == 150
        await reader.close()
        await writer.close()

    asyncio.run(story())


READER = """
    import asyncio, sys
    from holdfast.journal import Start
    from holdfast.journal.local import JournalReader

    async def story():
        reader = JournalReader.open(sys.argv[1])
        count = 0
        print("ready", flush=True)
        async for entries in reader.stream("t", 1, Start.EARLIEST):
            for entry in entries:
                assert entry.payload == b"%d" % entry.offset * 100, entry
                assert entry.offset == count
                count += 1
            if count == 2000:
                print("done", flush=True)
                return

    asyncio.run(story())
"""


def test_another_process_reads_while_one_writes(tmp_path: Path) -> None:
    async def story() -> None:
        writer = opened(tmp_path)
        writer.create_topic("t", 2)
        command = [sys.executable, "-c", textwrap.dedent(READER), str(tmp_path)]
        reader = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert reader.stdout is not None
        assert await reader.stdout.readline() == b"ready\n"
        for number in range(0, 2000, 4):
            entries = [b"%d" % each * 100 for each in range(number, number + 4)]
            await asyncio.gather(
                writer.append("t", 1, entries), writer.append("t", 2, [bytes(100)])
            )
        assert await asyncio.wait_for(reader.stdout.readline(), 30) == b"done\n"
        assert await reader.wait() == 0
        await writer.close()

    asyncio.run(story())


KILLED = """
    import asyncio, sys
    from holdfast.journal.local import LocalJournal

    async def story():
        journal = LocalJournal.open(sys.argv[1], segment_bytes=65536)
        journal.create_topic("t", 4)
        async def appender(partition):
            while True:
                offset = await journal.append("t", partition, [b"%d" % partition * 300])
                sys.stdout.write(f"{partition} {offset}\\n")
                sys.stdout.flush()
        await asyncio.gather(*(appender(partition) for partition in range(1, 5)))

    asyncio.run(story())
"""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    acknowledged = {1: -1, 2: -1, 3: -1, 4: -1}
    for _ in range(5):
        command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(700):
                partition, offset = map(int, process.stdout.readline().split())
                assert offset == acknowledged[partition] + 1 or offset > acknowledged[partition]
                acknowledged[partition] = offset
            process.kill()
        journal = opened(tmp_path)
        for partition, offset in acknowledged.items():
            assert journal.bounds("t", partition).next > offset
            assert journal.read_now("t", partition, offset)[0].payload == b"%d" % partition * 300
        asyncio.run(journal.close())
    assert verify(str(tmp_path))[0].damage == []
