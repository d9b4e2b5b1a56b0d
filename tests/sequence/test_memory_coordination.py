"""Coordination in memory: the contract, and each fault that a simulation may ask for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.sequence.coordination_contract import STORIES, Story, cut, live, span

from holdfast.errors import Unavailable, Unknown
from holdfast.limits import COORDINATION_LEASE_MS
from holdfast.sequence.api import Chain, ClusterSettings, Coordination, Registered, RolledBack
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, WriteFate
from holdfast.testing import VirtualClock, run

_LEASE_S = COORDINATION_LEASE_MS / 1_000


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_contract(story: Story) -> None:
    cluster = MemoryCluster()

    async def join(member: str) -> Coordination:
        return MemoryCoordination(cluster, member)

    run(story(join))


def play(
    story: Callable[[MemoryCluster, MemoryCoordination, MemoryCoordination], Awaitable[None]],
) -> None:
    """Two members on one store."""
    clock = VirtualClock(start_ms=0)

    async def played() -> None:
        cluster = MemoryCluster(clock)
        a, b = (MemoryCoordination(cluster, member) for member in "ab")
        await story(cluster, a, b)

    run(played(), clock)


@pytest.mark.parametrize(
    ("fate", "error", "done_at_once", "done_later"),
    [
        (WriteFate.ANSWERED, None, True, True),
        (WriteFate.LOST, Unknown, True, True),
        (WriteFate.DROPPED, Unknown, False, False),
        (WriteFate.LATE, Unknown, False, True),
        (WriteFate.UNSENT, Unavailable, False, False),
    ],
)
def test_a_write_has_the_fate_that_was_decided(
    fate: WriteFate, error: type[Exception] | None, done_at_once: bool, done_later: bool
) -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        cluster.fate = lambda member, write: fate if member == "a" else WriteFate.ANSWERED
        for write in (
            a.publish(cut(1)),
            a.replace(Chain(7, (span(1),))),
            a.put_topic("t", b"", None),
        ):
            if error is None:
                await write
            else:
                with pytest.raises(error):
                    await write
        assert a.available == (error is None)
        assert (await b.latest() is not None) == done_at_once
        assert ((await b.chain(7)).epoch == 1) == done_at_once
        while cluster.late:
            assert cluster.deliver().is_done
        assert (await b.latest() == cut(1)) == done_later
        assert ((await b.chain(7)).epoch == 1) == done_later
        assert (await b.topics() == {"t": b""}) == done_later
        assert (await a.latest() == cut(1)) == done_later
        assert a.available

    play(story)


def test_a_late_write_comes_to_nothing_when_somebody_was_first() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        cluster.fate = lambda member, write: WriteFate.LATE if member == "a" else WriteFate.ANSWERED
        with pytest.raises(Unknown):
            await a.publish(cut(1))
        assert await b.publish(cut(1, "b"))
        assert not cluster.deliver().is_done
        assert await a.latest() == cut(1, "b")

    play(story)


def test_who_is_cut_off_reads_nothing_and_the_other_goes_on() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        cluster.cut_off("a")
        with pytest.raises(Unavailable):
            await a.latest()
        with pytest.raises(Unavailable):
            await a.put_topic("t", b"", None)
        cluster.fate_unreached = WriteFate.LATE
        with pytest.raises(Unknown):
            await a.put_topic("t", b"", None)
        assert not a.available
        assert await b.topics() == {}
        cluster.cut_off()
        with pytest.raises(Unavailable):
            await b.latest()
        cluster.reconnect()
        assert await a.latest() is await b.latest() is None
        assert cluster.deliver().is_done
        assert await b.topics() == {"t": b""}

    play(story)


def test_a_lease_runs_out_by_the_clock_when_its_member_was_killed() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        await a.announce(live("a"))
        await b.announce(live("b"))
        a.stop()
        await asyncio.sleep(_LEASE_S - 1)
        assert list(await b.live()) == [1, 2]
        await asyncio.sleep(1)
        assert list(await b.live()) == [2]

    play(story)


def test_a_member_whose_lease_ran_out_is_told_and_takes_a_place_anew() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        told: list[str] = []
        a.on_lapsed.append(lambda: told.append("a"))
        await a.announce(live("a"))
        await b.announce(live("b"))
        cluster.cut_off("a")
        await asyncio.sleep(_LEASE_S)
        assert list(await b.live()) == [2]
        assert told == []
        cluster.reconnect("a")
        await asyncio.sleep(0.01)
        assert told == ["a"]
        assert {number: each.member for number, each in (await b.live()).items()} == {
            2: "b",
            3: "a",
        }
        cluster.lapse("a")
        await asyncio.sleep(0.01)
        assert told == ["a", "a"]
        assert {each.member for each in (await b.live()).values()} == {"a", "b"}

    play(story)


def test_a_hint_may_be_lost_or_doubled() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        times = {"/topics/once": 1, "/latest": 2}
        cluster.hinted = lambda member, key: times.get(key, 0)
        changes = b.changes()
        first = [await anext(changes) for _ in range(5)]
        assert set(first) == {"registered", "live", "topics", "chains", "latest"}
        await a.put_topic("lost", b"", None)
        await a.put_topic("once", b"", None)
        await a.publish(cut(1))
        assert [await anext(changes) for _ in range(3)] == ["topics", "latest", "latest"]

    play(story)


def test_a_store_that_was_rolled_back_is_noticed_and_not_believed() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        seen: list[str] = []
        a.on_rolled_back.append(seen.append)
        await a.settle(ClusterSettings("one", 16))
        await a.publish(cut(1))
        backup = cluster.save()
        await a.publish(cut(2))
        cluster.restore(backup)
        with pytest.raises(RolledBack, match="rolled back: it was at revision 4 and is now at 3"):
            await a.latest()
        assert seen == [a.rolled_back] == ["it was at revision 4 and is now at 3"]
        for call in (a.publish(cut(3)), a.chain(1), a.register(Registered("a", "k"))):
            with pytest.raises(RolledBack):
                await call
        assert len(seen) == 1
        assert await b.latest() == cut(1)  # who has seen nothing newer cannot tell

    play(story)


def test_a_store_that_has_overtaken_its_past_since_is_noticed_by_what_it_lacks() -> None:
    async def grow(coordination: MemoryCoordination) -> None:
        for number in range(5):
            await coordination.put_topic(f"t{number}", b"", None)

    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        chain = await a.replace(Chain(7, (span(1),)))
        assert isinstance(chain, Chain)
        await a.publish(cut(1))
        backup = cluster.save()
        await a.replace(Chain(7, (span(1), span(2)), chain.revision))
        cluster.restore(backup)
        await grow(b)
        with pytest.raises(RolledBack, match="partition 7 was in epoch 2 and is now in 1"):
            await a.chains()
        backup = cluster.save()
        await b.publish(cut(2, "b"))
        cluster.restore(backup)
        again = MemoryCoordination(cluster, "a")
        await again.publish(cut(2))
        await grow(again)
        with pytest.raises(RolledBack, match="last cut was"):
            await b.latest()

    play(story)


def test_an_answer_that_was_overtaken_is_no_roll_back() -> None:
    async def story(cluster: MemoryCluster, a: MemoryCoordination, b: MemoryCoordination) -> None:
        turns = 0

        async def slow_first(member: str) -> None:
            nonlocal turns
            turns += 1
            await asyncio.sleep(5 if turns == 2 else 0)  # the answer to the first call

        await a.publish(cut(1))
        cluster.pause = slow_first
        first = asyncio.create_task(a.latest())
        await asyncio.sleep(1)
        assert await b.publish(cut(2, "b"))
        assert await a.latest() == cut(2, "b")
        assert await first == cut(1)
        assert await a.publish(cut(3))
        assert a.rolled_back == ""

    play(story)
