"""`app.group`: partitions that programs share, embedded, in the test kit and at a node."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from holdfast import Holdfast, InvalidArgument, InvalidState, Moved, NewPartition, Owned
from holdfast.testing import TestApp, app

pytest_plugins = ["holdfast.testing.plugin"]
TOKENS = ["east", "north", "south", "west"]


async def count_up(owned: Owned) -> None:
    offset = owned.offset or 0
    while not owned.is_leaving:
        offset += 1
        owned.commit(offset, watermark=offset)
        leaving = asyncio.ensure_future(owned.leaving())
        await asyncio.wait([leaving], timeout=1)
        leaving.cancel()


def count_plainly(owned: Owned) -> None:
    offset = owned.offset or 0
    while not owned.wait(1):
        offset += 1
        owned.commit(offset, watermark=offset)
        owned.flush()


@pytest.mark.parametrize("run", [count_up, count_plainly])
def test_two_members_in_the_kit_share_and_the_second_takes_over(holdfast_app: TestApp, run) -> None:
    first = holdfast_app.group("devices", partitions=TOKENS, run=run, member="a").start()
    holdfast_app.advance(3)
    assert first.owned == TOKENS
    with holdfast_app.group("devices", run=run, member="b") as second:
        holdfast_app.advance(3)
        assert sorted(first.owned + second.owned) == TOKENS
        assert len(second.owned) == 2
        assert [each.partition("/")[0] for each in second.members] == ["a", "b"]
        before = {token: each.offset for token, each in second.partitions.items()}
        first.stop()
        holdfast_app.advance(3)
        assert second.owned == TOKENS
        after = {token: each.offset for token, each in second.partitions.items()}
        assert all(after[token] > before[token] for token in TOKENS)
        assert second.watermark == min(after.values())
        assert second.epoch >= 3


def test_a_partition_that_raises_is_parked_with_its_error_and_others_go_on(
    holdfast_app: TestApp,
) -> None:
    failures = {"north": 3}

    async def run(owned: Owned) -> None:
        if failures.get(owned.token, 0) > 0:
            failures[owned.token] -= 1
            raise ConnectionError("no route to north")
        await owned.leaving()

    with holdfast_app.group("devices", partitions=TOKENS, run=run) as group:
        holdfast_app.advance(0.5)
        parked = group.partitions["north"]
        assert parked.state == "PARKED" and "no route to north" in (parked.error or "")
        assert group.owned == ["east", "south", "west"]
        holdfast_app.advance(1 + 2 + 4)
        assert failures["north"] == 0
        assert group.owned == TOKENS


def test_partitions_split_merge_and_come_from_a_function(holdfast_app: TestApp) -> None:
    ran: list[str] = []

    async def run(owned: Owned) -> None:
        ran.append(owned.token)
        if owned.token == "all":
            owned.split(["a-m", NewPartition("n-z", start=14, end=26)])
        elif owned.token in ("a-m", "n-z"):
            owned.merge("again", ["a-m", "n-z"])
        else:
            await owned.leaving()

    with holdfast_app.group("letters", partitions=lambda: ["all"], run=run) as group:
        holdfast_app.advance(2)
        assert ran == ["all", "a-m", "n-z", "again"]
        group.declare(["more"])
        holdfast_app.advance(1)
        assert group.owned == ["again", "more"]
        assert "all" not in group.partitions


def test_commit_after_the_partition_moved_raises_and_is_not_counted(
    holdfast_app: TestApp,
) -> None:
    kept: list[Owned] = []

    async def run(owned: Owned) -> None:
        kept.append(owned)
        owned.commit("page-7")
        await owned.flush_async()
        await owned.leaving()

    group = holdfast_app.group("pages", partitions=["one"], run=run).start()
    holdfast_app.advance(1)
    [owned] = kept
    assert owned.offset == "page-7" and owned.epoch == group.epoch > 0
    with pytest.raises(InvalidState, match="int or str"):
        owned.commit(1.5)  # type: ignore[arg-type]
    group.stop()
    with pytest.raises(Moved, match="'one'"):
        owned.commit("page-8")


def test_bad_input_is_refused_where_it_is_written(holdfast_app: TestApp) -> None:
    async def run(owned: Owned) -> None: ...

    for name in ("", "two words", "../etc", "x" * 101):
        with pytest.raises(InvalidArgument, match="name of a group"):
            holdfast_app.group(name, run=run)
    for partitions in ("north", [""], ["a", "a"], [7], ["x" * 201], None):
        with pytest.raises(InvalidArgument, match=r"[Pp]artition"):
            holdfast_app.group("g", partitions=partitions, run=run)  # type: ignore[arg-type]
    for member in ("", "a/b", "x" * 101):
        with pytest.raises(InvalidArgument, match="name of a member"):
            holdfast_app.group("g", member=member, run=run)
    with pytest.raises(InvalidArgument, match="session"):
        holdfast_app.group("g", session=0.01, run=run)
    with pytest.raises(InvalidArgument, match="function to run"):
        holdfast_app.group("g", run=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="at most 100000"):
        holdfast_app.group("g", partitions=[str(each) for each in range(100_001)], run=run)
    group = holdfast_app.group("g", run=run)
    with pytest.raises(InvalidState, match="started"):
        group.declare(["a"])
    group.start()
    with pytest.raises(InvalidState, match="before"):
        group.start()


def until(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


@pytest.mark.parametrize("run", [count_up, count_plainly])
def test_an_embedded_app_keeps_offsets_over_a_restart(tmp_path: Path, run) -> None:
    offsets: dict[str, object] = {}
    with Holdfast.open(tmp_path, workers=0) as work:
        group = work.group("devices", partitions=TOKENS, run=run, member="a").start()
        until(lambda: group.owned == TOKENS)
        until(lambda: all(each.offset for each in group.partitions.values()))
        offsets = {token: each.offset for token, each in group.partitions.items()}
        began = time.monotonic()
    assert time.monotonic() - began < 5, "closing the app hands over and leaves"
    seen: dict[str, object] = {}
    threads: set[int] = set()

    def look(owned: Owned) -> None:
        seen[owned.token] = owned.offset
        threads.add(threading.get_ident())
        owned.wait(60)

    with (
        Holdfast.open(tmp_path, workers=0) as work,
        work.group("devices", run=look, member="a"),  # another name would wait for "a" to come back
    ):
        until(lambda: len(seen) == 4)
    assert all(seen[token] >= offset for token, offset in offsets.items())  # type: ignore
    assert len(threads) == 4


def test_a_group_in_async_code() -> None:
    with app() as work:
        ran: list[str] = []

        async def run(owned: Owned) -> None:
            ran.append(owned.token)
            await owned.leaving()

        async def story() -> None:
            async with work.group("devices", partitions=["one"], run=run) as group:
                work.advance(1)
                assert group.owned == ["one"]

        asyncio.run(story())
        assert ran == ["one"]
