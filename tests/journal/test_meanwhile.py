"""Work beside a write: nothing is durable then, and the append does not depend on it."""

import asyncio
import os
from pathlib import Path

import pytest

from holdfast.errors import DataLoss, ResourceExhausted
from holdfast.journal import Append, Appended
from holdfast.journal.local import LocalJournal, disk, write_out
from holdfast.journal.local.disk import RealDisk
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedDisk

ROOT = "/journal"


def opened(on: SimulatedDisk) -> LocalJournal:
    journal = LocalJournal.open(ROOT, disk=on, segment_bytes=SEGMENT_BYTES_MIN)
    journal.create_topic("t", 1)
    return journal


def ends(journal: LocalJournal) -> int:
    return journal.bounds("t", 1).next


def test_beside_a_write_nothing_is_readable_or_durable() -> None:
    async def story() -> None:
        on = SimulatedDisk()
        journal = opened(on)
        await journal.append("t", 1, [b"before"])
        seen: list[tuple[int, int, int]] = []

        def look() -> None:
            lost = opened(on.after_crash(DiskOutcome.DROP))
            kept = opened(on.after_crash(DiskOutcome.KEEP))
            seen.append((ends(journal), ends(lost), ends(kept)))

        outcomes = await journal.append_many([Append("t", 1, [b"a"])], look)
        assert seen == [(1, 1, 2)], "it is written, not durable, and not readable"
        assert outcomes == [Appended(1, 2)] and ends(journal) == 2
        assert ends(opened(on.after_crash(DiskOutcome.DROP))) == 2

    asyncio.run(story())


def test_an_error_beside_a_write_does_not_touch_the_append() -> None:
    async def story() -> None:
        journal = opened(SimulatedDisk())

        def fail() -> None:
            raise RuntimeError("a bug")

        assert await journal.append_many([Append("t", 1, [b"a"])], fail) == [Appended(0, 1)]
        assert await journal.append("t", 1, [b"b"]) == 1

    asyncio.run(story())


def test_a_sync_that_fails_behind_the_work_is_never_trusted_again() -> None:
    async def story() -> None:
        on = SimulatedDisk()
        journal = opened(on)
        called: list[None] = []
        on.fail_sync_at = on.syncs + 1
        with pytest.raises(DataLoss):
            await journal.append_many([Append("t", 1, [b"a"])], lambda: called.append(None))
        assert called and ends(journal) == 0
        with pytest.raises(DataLoss):
            await journal.append("t", 1, [b"b"])

    asyncio.run(story())


def test_on_a_full_disk_the_work_is_not_begun() -> None:
    async def story() -> None:
        on = SimulatedDisk()
        journal = opened(on)
        called: list[None] = []
        on.fail_write_at = on.operations + 1
        with pytest.raises(ResourceExhausted):
            await journal.append_many([Append("t", 1, [b"a"])], lambda: called.append(None))
        assert not called and ends(journal) == 0
        assert await journal.append("t", 1, [b"b"]) == 0

    asyncio.run(story())


@pytest.mark.parametrize("outcome", DiskOutcome)
def test_the_power_may_go_behind_the_work(outcome: DiskOutcome) -> None:
    async def story() -> None:
        on = SimulatedDisk()
        journal = opened(on)
        await journal.append("t", 1, [b"before"])
        called: list[None] = []
        on.crash_at = on.operations + 2  # a write, and the sync behind the work
        with pytest.raises(DataLoss):
            await journal.append_many([Append("t", 1, [b"a"])], lambda: called.append(None))
        restarted = opened(on.after_crash(outcome))
        assert called and ends(restarted) in (1, 2)
        assert restarted.read_now("t", 1, 0)[0].payload == b"before"

    asyncio.run(story())


def test_a_large_append_leaves_the_work_to_its_caller(tmp_path: Path) -> None:
    async def story() -> None:
        journal = LocalJournal.open(tmp_path)
        journal.create_topic("t", 1)
        called: list[None] = []
        large = Append("t", 1, [bytes(1 << 20)] * 4)
        assert await journal.append_many([large], lambda: called.append(None)) == [Appended(0, 4)]
        assert not called
        await journal.close()

    asyncio.run(story())


def noted_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[disk.RealFile, list[str]]:
    """A file of 1 MiB, and what is done to it from now on."""
    done: list[str] = []
    file = RealDisk().create(str(tmp_path / "file"), 1 << 20)
    for name in ("pwrite", "pwritev", "fdatasync"):
        function = getattr(os, name)

        def noted(*args: object, name: str = name, function: object = function) -> object:
            done.append(name)
            return function(*args)  # type: ignore[operator]

        monkeypatch.setattr(os, name, noted)
    begin = disk.begin_write_out

    def begun(*args: int) -> bool:
        done.append("write-out")
        return begin(*args)

    monkeypatch.setattr(disk, "begin_write_out", begun)
    return file, done


@pytest.mark.skipif(not write_out.can_begin_write_out, reason="a system call of Linux")
def test_the_write_out_is_begun_before_the_work_and_the_sync_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, done = noted_file(tmp_path, monkeypatch)
    file.write_durably(4_000, b"data" * 100, lambda: done.append("work"))
    assert done == ["pwrite", "write-out", "work", "fdatasync"]
    assert file.read(4_000, 8) == b"datadata"
    file.close()


def test_a_system_that_cannot_begin_a_write_out_writes_and_syncs_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, done = noted_file(tmp_path, monkeypatch)
    monkeypatch.setattr(disk, "can_begin_write_out", False)
    file.write_durably(4_000, b"data" * 100, lambda: done.append("work"))
    assert done == ["pwritev"], "the work is left to the caller"
    assert file.read(4_000, 8) == b"datadata"
    file.close()


@pytest.mark.skipif(not write_out.can_begin_write_out, reason="a system call of Linux")
def test_where_three_calls_take_long_one_call_is_used_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, done = noted_file(tmp_path, monkeypatch)
    now = [100.0]
    monkeypatch.setattr(disk, "perf_counter", lambda: now[0])
    begin = disk.begin_write_out

    def slow(*args: int) -> bool:
        now[0] += 0.005
        return begin(*args)

    monkeypatch.setattr(disk, "begin_write_out", slow)
    monkeypatch.setattr(disk, "_AWAKE_SECONDS", 0.0)
    for seconds in (0.0, 1.0, 1.0, 10.0):
        now[0] += seconds
        file.write_durably(4_000, b"data", lambda: None)
    in_three = ["pwrite", "write-out", "fdatasync"]
    assert done == [*in_three, "pwritev", "pwritev", *in_three]
    file.close()


def test_where_the_write_out_is_refused_it_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, done = noted_file(tmp_path, monkeypatch)
    monkeypatch.setattr(disk, "can_begin_write_out", True)
    monkeypatch.setattr(disk, "begin_write_out", lambda *_: False)
    for _ in range(2):
        file.write_durably(4_000, b"data", lambda: done.append("work"))
    assert done == ["pwrite", "work", "fdatasync", "pwritev"]
    assert not write_out.begin_write_out(-1, 0, 1)
    file.close()
