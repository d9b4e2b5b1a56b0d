"""Giving up partitions that a disk is no replica of any more, and what a crash leaves of them."""

import asyncio

import pytest
from tests.journal.cluster.checking import Violation
from tests.journal.cluster.simulating import simulate
from tests.journal.cluster.test_cluster_disk import chain, held, opened, store, stretch
from tests.journal.cluster.trio import Trio, append, everything, play, take, until

from holdfast.journal.cluster import leaving
from holdfast.journal.cluster.chain import is_rolled_back, resettled
from holdfast.journal.cluster.messages import Fence, Promised, Survey, Surveyed
from holdfast.journal.cluster.replica import Bound, Promise, ReplicaRules
from holdfast.sequence.api import Chain, Replica
from holdfast.testing.disk import DiskOutcome, SimulatedCrash, SimulatedDisk


async def nothing() -> None:
    """There are no rows."""


async def moved_from_c(trio: Trio, names: list[str]) -> None:
    """Partition 1 was on all three disks, and is on those of a and b.

    Ranges are opened on the disks of the members that are named then.
    """
    trio.choose_set = lambda partition: tuple(  # type: ignore[method-assign]
        Replica(name, trio.ids[name]) for name in names
    )
    names[:] = "abc"
    await trio.start_all()
    await take(trio["a"])
    await append(trio["a"], b"one", b"two")
    await until(lambda: trio["c"].leaving.has_entries(1))
    names[:] = "ab"
    await trio["a"].take_over(1, is_drain=True)
    await append(trio["a"], b"three")


async def resettle(trio: Trio) -> Chain:
    """All ranges are named after the disks of the last one."""
    chain = before = await trio["a"].learn(1)
    assert chain.last is not None
    for each in before.ranges[:-1]:
        chain = resettled(chain, each.epoch, chain.last.replicas)
    await trio["a"]._coordination.replace(chain)
    return chain


def test_a_disk_gives_up_a_partition_once_no_range_names_it() -> None:
    async def story(trio: Trio) -> None:
        names: list[str] = []
        await moved_from_c(trio, names)
        c = trio["c"]
        assert not await c.leaving.leave(1, nothing), "a closed range is still named after it"
        assert c.leaving.has_entries(1)
        chain = await resettle(trio)
        assert await c.leaving.leave(1, nothing)
        assert not c.leaving.has_entries(1)
        assert c.disk.local.bounds("t", 1).earliest == c.disk.local.bounds("t", 1).next
        await until(lambda: c.bounds("t", 1).next == 3)
        assert await everything(c) == [b"one", b"two", b"three"], "other members have it"
        await trio.kill("c")
        c = await trio.start("c")
        assert not c.leaving.has_entries(1)
        assert c.disk.promise(1) == chain.epoch + 1
        names[:] = "abc"
        await trio["a"].take_over(1, is_drain=True)
        await append(trio["a"], b"four")
        await until(lambda: c.bounds("t", 1).next == 4 and c.is_caught_up(1))
        assert c.disk.counts(1) == {each: {"t": count} for each, count in ((1, 2), (2, 1), (3, 1))}
        assert await everything(c) == [b"one", b"two", b"three", b"four"]

    play(story)


def test_a_disk_that_leaves_says_that_it_has_nothing_before_it_looks_at_the_chain() -> None:
    async def story(trio: Trio) -> None:
        await moved_from_c(trio, [])
        c = trio["c"]
        surveys: list[Surveyed] = []
        learn = c.leaving._learn

        async def asked(partition: int):
            answer = await c.called("a", Survey(trio.ids["c"], partition))
            assert isinstance(answer, Surveyed)
            surveys.append(answer)
            return await learn(partition)

        c.leaving._learn = asked
        assert not await c.leaving.leave(1, nothing)
        assert [(each.counts, each.needed) for each in surveys] == [({}, {})]
        again = await c.called("a", Survey(trio.ids["c"], 1))
        assert isinstance(again, Surveyed)
        assert again.counts, "it stays a replica, and says what it has"

    play(story)


def test_a_disk_that_has_left_proves_that_the_store_was_rolled_back() -> None:
    """A chain that names it again is older than its promise: its empty log is not the tail."""
    rules = ReplicaRules(3, {2: {"t": 5}, 3: {"t": 4}})
    assert rules.leave(4) == Promise(5, is_new=True)
    rules.promised(5)
    assert rules.left(4)
    assert rules.epochs() == []
    for epoch in (2, 3):
        assert rules.fence(epoch, epoch + 1) == Bound(5)
        assert is_rolled_back(chain(*range(epoch)), rules.durable_promise, 0)
    answer = rules.fence(4, 5)  # only disks of the open range are asked for that
    assert isinstance(answer, Promise)
    assert ReplicaRules(6).leave(4) is None, "it has promised more than the chain knows"
    assert ReplicaRules(5, {5: {"t": 1}}).leave(4) is None, "it has entries of a newer range"


def test_entries_of_a_newer_range_that_arrive_meanwhile_are_kept() -> None:
    rules = ReplicaRules(3, {3: {"t": 4}})
    assert rules.leave(4) is not None
    rules.append(5, "t", 0, 2)
    assert not rules.left(4)
    assert rules.taken(3, "t") == 4


@pytest.mark.parametrize("outcome", list(DiskOutcome))
def test_a_crash_while_entries_are_dropped_leaves_all_or_none_of_them(outcome: DiskOutcome) -> None:
    async def dropped(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await disk.raise_promise(1, 4)
        await disk.drop(1)
        await disk.close()

    async def checked(simulated: SimulatedDisk) -> bool:
        disk = opened(simulated)
        known, bounds = chain(0), disk.local.bounds("t", 1)
        is_dropped = not disk.counts(1)
        if is_dropped:
            assert disk.promise(1) == 4, "what was promised is never given up"
            assert bounds.earliest == bounds.next, "the space is free after the next start"
        else:
            assert disk.counts(1) == {1: {"t": 3}}
            assert held(disk, known, 1, 0) == [b"a", b"b", b"c"]
        assert disk.stretches("t", 2, 1, 0, 9, 1 << 20) == [stretch(1, 0, b"other", partition=2)]
        await store(disk, stretch(4, 0, b"new"))
        assert disk.counts(1)[4] == {"t": 1}
        await disk.close()
        return is_dropped

    async def story() -> set[bool]:
        seen: set[bool] = set()
        for operations in range(60):
            simulated = SimulatedDisk()
            disk = opened(simulated)
            await store(disk, stretch(1, 0, b"a", b"b", b"c"), stretch(1, 0, b"other", partition=2))
            await disk.close()
            simulated.crash_at = simulated.operations + 1 + operations
            try:
                await dropped(simulated)
            except SimulatedCrash:
                seen.add(await checked(simulated.after_crash(outcome, seed=operations)))
            else:
                simulated.crash_at = None
                assert await checked(simulated)
                return seen
        raise AssertionError("it never ended")

    assert asyncio.run(story()) == {False, True}


def test_a_disk_that_leaves_while_it_is_named_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "is_named", lambda chain, replica: chain.last is None)
    with pytest.raises((Violation, AssertionError)):
        for seed in range(10):
            simulate(seed)


def test_a_fence_of_the_newest_range_is_answered_after_leaving_older_ones() -> None:
    async def story(trio: Trio) -> None:
        names: list[str] = []
        await moved_from_c(trio, names)
        chain = await resettle(trio)
        assert await trio["c"].leaving.leave(1, nothing)
        names[:] = "abc"
        await trio["a"].take_over(1, is_drain=True)
        await append(trio["a"], b"four")
        message = Fence(trio.ids["c"], 1, chain.epoch + 1, chain.epoch + 2, is_drain=True)
        await until(lambda: trio["c"].is_caught_up(1))
        answer = await trio["c"].called("b", message)
        assert isinstance(answer, Promised)
        assert answer.counts == {"t": 1}

    play(story)
