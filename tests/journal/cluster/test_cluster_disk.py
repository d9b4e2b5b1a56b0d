"""A member's disk: entries by range in one log, notes beside it, and what a crash leaves."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.errors import DataLoss, ResourceExhausted
from holdfast.journal.cluster.disk import Begin, ClusterDisk
from holdfast.journal.cluster.identity import DiskIdentity
from holdfast.journal.cluster.messages import Stretch
from holdfast.journal.cluster.runs import LogRuns, Run, spans_of
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.sequence.api import Chain, Range
from holdfast.testing import VirtualClock
from holdfast.testing.disk import DiskOutcome, SimulatedCrash, SimulatedDisk

NOBODY = ("a", "nonce", ())


def chain(*starts: int) -> Chain:
    """Ranges of partition 1 from epoch 1 on, by where topic `t` starts in them."""
    ranges = [Range(epoch, *NOBODY, {"t": start}) for epoch, start in enumerate(starts, 1)]
    return Chain(1, tuple(ranges), 1)


def opened(disk: SimulatedDisk) -> ClusterDisk:
    found = ClusterDisk.open(
        "/m", DiskIdentity("d1"), clock=VirtualClock(), disk=disk, segment_bytes=SEGMENT_BYTES_MIN
    )
    found.local.create_topic("t", 2)
    return found


def stretch(epoch: int, number: int, *entries: bytes, partition: int = 1) -> Stretch:
    return Stretch(partition, epoch, "t", number, 1_000 + number, list(entries))


async def store(disk: ClusterDisk, *stretches: Stretch) -> None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    disk.store("t", stretches, done.set_result)
    error = await done
    if error is not None:
        raise error


def held(disk: ClusterDisk, known: Chain, epoch: int, offset: int) -> list[bytes] | None:
    span = spans_of(known, "t")[epoch]
    entries = disk.entries("t", known.partition, span, epoch, offset, 1 << 20)
    assert entries is None or not entries or entries[0].offset == offset
    return None if entries is None else [each.payload for each in entries]


def play(story: Callable[[SimulatedDisk], Awaitable[None]]) -> None:
    asyncio.run(story(SimulatedDisk()))  # pyright: ignore[reportArgumentType]


def test_entries_are_found_by_range_whatever_order_they_came_in() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a", b"b"), stretch(1, 2, b"c"))
        await store(disk, stretch(2, 0, b"x"))
        await store(disk, stretch(1, 3, b"d", b"e"))  # a late copy
        await store(disk, stretch(2, 1, b"y"), stretch(2, 0, b"other", partition=2))
        for _ in range(2):
            known = chain(0, 4)
            assert held(disk, known, 1, 0) == [b"a", b"b", b"c"]
            assert held(disk, known, 1, 3) == [b"d"], "what is behind the end of a range is void"
            assert held(disk, known, 2, 4) == [b"x"]
            assert held(disk, known, 2, 5) == [b"y"]
            assert held(disk, known, 2, 6) is None
            assert disk.counts(1) == {1: {"t": 5}, 2: {"t": 2}}
            assert disk.promise(1) == 2
            found = disk.stretches("t", 1, 1, 0, 5, 1 << 20)
            assert found == [stretch(1, 0, b"a", b"b"), stretch(1, 2, b"c")]
            assert disk.stretches("t", 1, 1, 0, 2, 1 << 20) == [stretch(1, 0, b"a", b"b")]
            assert disk.stretches("t", 1, 2, 2, 9, 1 << 20) == []
            await disk.close()
            disk = opened(simulated)

    play(story)


def test_what_arrives_in_a_turn_has_one_sync_and_promises_share_a_write() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a"), stretch(1, 0, b"b", partition=2))
        before = simulated.syncs
        await asyncio.gather(*(
            store(disk, stretch(1, 1, b"x", partition=partition)) for partition in (1, 2)
        ))  # fmt: skip
        assert simulated.syncs == before + 1
        before = simulated.syncs
        await asyncio.gather(disk.raise_promise(1, 2), disk.raise_promise(2, 5))
        assert simulated.syncs == before + 1
        assert opened(simulated.after_crash(DiskOutcome.DROP)).promise(2) == 5

    play(story)


def test_discarding_frees_the_log_up_to_what_is_still_needed() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, *[b"a"] * 10))
        await store(disk, stretch(2, 0, *[b"x"] * 10))
        await store(disk, stretch(1, 10, *[b"b"] * 10))
        await store(disk, stretch(2, 10, *[b"y"] * 10))
        known = chain(0, 18)  # two of the first range are void
        disk.discard(known, "t", 12)
        assert disk.earliest("t", 1) == 12
        assert disk.local.bounds("t", 1).earliest == 10, "the other range is needed"
        disk.discard(known, "t", 22)
        assert disk.local.bounds("t", 1).earliest == 14
        disk.discard(known, "t", 28)
        assert disk.local.bounds("t", 1).earliest == 30, "void entries are not needed"
        assert held(disk, known, 2, 28) == [b"y"] * 10
        disk.discard(known, "t", 38)
        await disk.close()
        disk = opened(simulated)
        assert disk.earliest("t", 1) == 38
        assert disk.counts(1)[2] == {"t": 20}, "how far a range has come is known without entries"
        await store(disk, stretch(2, 20, b"z"))
        assert held(disk, known, 2, 38) == [b"z"]

    play(story)


def test_a_member_that_got_a_snapshot_goes_on_behind_it() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a"))
        await disk.begin_at(1, 3, {"t": Begin(number=7, offset=107)})
        disk = opened(simulated.after_crash(DiskOutcome.DROP))
        assert disk.counts(1) == {1: {"t": 1}, 3: {"t": 7}}
        assert disk.earliest("t", 1) == 107
        await store(disk, stretch(3, 7, b"h"))
        assert held(disk, chain(0, 50, 100), 3, 107) == [b"h"]

    play(story)


def test_a_run_that_was_noted_and_stayed_empty_does_not_claim_what_others_write_there() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a"))
        syncs = simulated.syncs
        simulated.crash_at = simulated.operations + 6  # the note is there, the entries are not
        with pytest.raises(DataLoss, match="power"):
            await store(disk, stretch(2, 0, b"x"))
        assert simulated.syncs > syncs
        simulated = simulated.after_crash(DiskOutcome.DROP)
        disk = opened(simulated)
        assert disk.promise(1) == 2, "the note was written before the entries"
        assert disk.counts(1) == {1: {"t": 1}, 2: {"t": 0}}
        await store(disk, stretch(1, 1, b"b"))  # a late copy comes first
        await store(disk, stretch(2, 0, b"y"))
        disk = opened(simulated.after_crash(DiskOutcome.DROP))
        assert held(disk, chain(0, 2), 1, 1) == [b"b"]
        assert held(disk, chain(0, 2), 2, 2) == [b"y"]

    play(story)


def test_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a"))
        simulated.fail_write_at = simulated.operations + 1
        first = asyncio.ensure_future(store(disk, stretch(1, 1, b"b")))
        second = asyncio.ensure_future(store(disk, stretch(1, 2, b"c")))
        for each in (first, second):
            with pytest.raises(ResourceExhausted):
                await each
        assert disk.counts(1) == {1: {"t": 1}}
        await store(disk, stretch(1, 1, b"b"))
        assert held(disk, chain(0), 1, 0) == [b"a", b"b"]

    play(story)


def test_a_disk_that_lost_its_promises_is_refused() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        await store(disk, stretch(1, 0, b"a"))
        await disk.close()
        damaged = simulated.after_crash(DiskOutcome.KEEP)
        damaged.damage("/m/journal/promises", 9, b"\xff\xff")
        simulated.remove("/m/journal/promises")
        for each in (damaged, simulated):
            with pytest.raises(DataLoss, match="promises"):
                opened(each)

    play(story)


async def _small_story(disk: ClusterDisk, told: list[str]) -> None:
    """What a replica does in a take-over, and what it tells others after each sync."""
    steps: list[tuple[str, Callable[[], Awaitable[None]]]] = [
        ("1:2", lambda: store(disk, stretch(1, 0, b"a"), stretch(1, 1, b"b"))),
        ("promised 2", lambda: disk.raise_promise(1, 2)),
        ("1:3", lambda: store(disk, stretch(1, 2, b"c"))),
        ("2:1", lambda: store(disk, stretch(2, 0, b"x"))),
        ("1:4", lambda: store(disk, stretch(1, 3, b"d"))),
        ("2:3", lambda: store(disk, stretch(2, 1, b"y", b"z"))),
    ]
    for name, step in steps:
        await step()
        told.append(name)


def _check(disk: ClusterDisk, told: list[str]) -> None:
    """Everything that was told is here, and nothing else than was written."""
    written = {1: [b"a", b"b", b"c", b"d"], 2: [b"x", b"y", b"z"]}
    for name in told:
        kind, _, count = name.partition(":")
        if count:
            assert disk.counts(1).get(int(kind), {}).get("t", 0) >= int(count), name
        else:
            assert disk.promise(1) >= 2
    known = chain(0, 4)
    for epoch, counts in disk.counts(1).items():
        found: list[bytes] = []
        while len(found) < counts["t"]:
            start = spans_of(known, "t")[epoch].start
            more = held(disk, known, epoch, start + len(found))
            assert more, "what is counted can be read"
            found += more
        assert found == written[epoch][: counts["t"]]


@pytest.mark.parametrize("outcome", DiskOutcome)
def test_power_loss_at_every_operation_leaves_what_was_told(outcome: DiskOutcome) -> None:
    async def story() -> None:
        operations, crashes = 0, 0
        while True:
            simulated, told = SimulatedDisk(), list[str]()
            disk = opened(simulated)
            operations += 1
            simulated.crash_at = simulated.operations + operations
            try:
                await _small_story(disk, told)
            except (SimulatedCrash, DataLoss):
                crashes += 1
            else:
                break
            for seed in range(3):
                survivor = simulated.after_crash(outcome, seed=seed)
                disk = opened(survivor)
                _check(disk, told)
                # It goes on, crashes again at rest, and is still what it was.
                count = disk.counts(1).get(2, {}).get("t", 0)
                if count == 0:
                    await store(disk, stretch(2, 0, b"x"))
                _check(opened(survivor.after_crash(DiskOutcome.DROP)), told)
        assert crashes > 20, crashes

    asyncio.run(story())


def test_runs_are_forgotten_when_nothing_is_left_of_them() -> None:
    runs = LogRuns(40, [Run(1, 0, 0), Run(2, 0, 10), Run(3, 0, 20), Run(5, 0, 30)])
    assert not runs.forget(9)
    assert runs.forget(25)
    assert runs.runs == [Run(3, 0, 20), Run(5, 0, 30)]
    assert runs.forget(40)
    assert runs.runs == [Run(5, 0, 30)], "how far the newest range has come stays known"


def test_entries_of_a_range_that_the_chain_does_not_have_yet_are_needed() -> None:
    runs = LogRuns(30, [Run(1, 0, 0), Run(2, 0, 10)])
    assert runs.free(chain(0), "t", 10) == 10
    assert runs.free(chain(0, 10), "t", 25) == 25
    assert runs.dropped(chain(0, 10), "t", 15) == 15


def test_a_disk_that_has_promised_nothing_may_have_a_log_of_its_own() -> None:
    async def story(simulated: SimulatedDisk) -> None:
        disk = opened(simulated)
        disk.local.create_topic("cuts", 1)  # as a member has it that is in no replica set
        await disk.local.append("cuts", 1, [b"cut"])
        again = opened(simulated.after_crash(DiskOutcome.DROP))
        assert again.local.bounds("cuts", 1).next == 1
        assert again.promise(1) == 0

    play(story)
