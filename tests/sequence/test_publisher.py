"""Publishers of several members over one store, in virtual time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import pytest

from holdfast.limits import COORDINATION_CUTS_KEPT
from holdfast.metrics import Metrics
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.keys import Write
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, WriteFate
from holdfast.sequence.order import TotalOrder
from holdfast.sequence.publishing import Publisher
from holdfast.sequence.ring import Ring
from holdfast.testing import VirtualClock, run

_KEYS = sorted((f"{n:064x}" for n in range(3)), key=lambda k: sha256(bytes.fromhex(k)).digest())
KEYS = dict(zip("abc", _KEYS, strict=True))  # the ring is a, b, c
LOG = LogKey("records", 1)
TICK = 1 / 16


class Told:
    """A follower that remembers, and checks that nothing is left out."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.cuts: dict[int, Cut] = {}
        self.order: TotalOrder | None = None

    def begin(self, at: CutPositions) -> None:
        self.began.append(at.number)
        self.order = TotalOrder(at)

    def follow(self, cut: Cut, at: CutPositions) -> None:
        assert self.order is not None
        self.order.extend(cut)
        assert self.order.at == at
        self.cuts[cut.number] = cut


class Trio:
    """Three members that take part, and what each was told."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.store = MemoryCluster(clock)
        self.ring = Ring(KEYS)
        self.marks = {LOG: 0}
        self.told: dict[str, Told] = {}
        self.members: dict[str, Publisher] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starts = 0

    def start(self, *members: str, **options: Any) -> None:
        for member in members:
            self._starts += 1
            self.told[member] = Told()
            self.members[member] = publisher = Publisher(
                MemoryCoordination(self.store, member), self.clock, member,
                nonce=f"{member}{self._starts}", ring=lambda: self.ring, marks=lambda: self.marks,
                followers=[self.told[member]], **options,
            )  # fmt: skip
            self._tasks[member] = asyncio.create_task(publisher.run())

    async def stop(self, *members: str) -> None:
        for member in members or list(self._tasks):
            task = self._tasks.pop(member)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def pass_ticks(self, count: float) -> None:
        """Lets time pass; something is acknowledged all the time."""
        for _ in range(int(count * 4)):
            self.marks[LOG] += 1
            await asyncio.sleep(TICK / 4)

    def numbers(self) -> dict[str, int]:
        return {member: publisher.number for member, publisher in self.members.items()}

    def writers(self, first: int = 1) -> str:
        """Who wrote each cut, as the member that knows most was told."""
        cuts = max((told.cuts for told in self.told.values()), key=len)
        return "".join(cut.writer for number, cut in sorted(cuts.items()) if number >= first)


Story = Callable[[Trio], Awaitable[None]]


def play(story: Story) -> None:
    clock = VirtualClock()

    async def played() -> None:
        trio = Trio(clock)
        try:
            await story(trio)
        finally:
            await trio.stop()
        orders = [list(told.order.spans()) for told in trio.told.values() if told.order]
        for spans in orders:
            known = {span.cut: span for span in max(orders, key=len)}
            assert all(known.get(span.cut, span) == span for span in spans), "two orders"

    run(played(), clock)


def fates(*sequence: WriteFate) -> Callable[[str, Write], WriteFate]:
    """So the next writes end; all after them are answered."""
    left: Iterator[WriteFate] = iter(sequence)
    return lambda member, write: next(left, WriteFate.ANSWERED)


def test_the_first_of_the_ring_publishes_sixteen_times_a_second_and_all_follow() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(160.5)
        assert trio.numbers() == {"a": 160, "b": 160, "c": 160}
        assert trio.writers() == "a" * 160
        numbers = trio.members["a"].numbers
        assert (numbers.written, numbers.late, numbers.unknown) == (160, 0, 0)
        assert [trio.members[each].numbers.beaten for each in "bc"] == [0, 0]
        assert trio.members["c"].writer == "a"
        assert all(told.began == [0] for told in trio.told.values())

    play(story)


def test_when_the_writer_is_gone_the_next_goes_on_after_its_delay() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        await trio.stop("a")
        await trio.pass_ticks(3)  # the tenth cut was half a tick ago, and b's turn is four after it
        assert trio.numbers()["b"] == 10
        await trio.pass_ticks(1)
        assert trio.numbers()["b"] == trio.numbers()["c"] == 11
        await trio.pass_ticks(10)
        assert trio.writers() == "a" * 10 + "b" * 11

    play(story)


def test_a_writer_that_is_no_longer_heard_is_followed_at_once() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        await trio.stop("a")
        trio.ring = Ring({"b": KEYS["b"], "c": KEYS["c"]}, former={"a": KEYS["a"]})
        for member in "bc":
            trio.members[member].hint()
        await trio.pass_ticks(1)
        assert trio.writers() == "a" * 10 + "b"

    play(story)


def test_a_member_whose_hints_are_lost_is_beaten_and_learns_from_it() -> None:
    async def story(trio: Trio) -> None:
        trio.store.hinted = lambda member, key: 0 if member == "b" else 2
        trio.start("a", "b", "c")
        await trio.pass_ticks(40.5)
        assert trio.members["b"].numbers.beaten >= 8
        assert trio.members["b"].number >= 36
        assert trio.writers() == "a" * 40

    play(story)


@pytest.mark.parametrize("fate", [WriteFate.LOST, WriteFate.DROPPED, WriteFate.LATE])
def test_an_unknown_outcome_is_found_out_before_the_next_attempt(fate: WriteFate) -> None:
    async def story(trio: Trio) -> None:
        trio.start("a")
        await trio.pass_ticks(4.5)
        trio.store.fate = fates(fate)
        await trio.pass_ticks(3)
        is_late = bool(trio.store.late)
        while trio.store.late:
            assert not trio.store.deliver().is_done  # its number was taken meanwhile
        await trio.pass_ticks(3)
        assert trio.members["a"].numbers.unknown == 1
        assert is_late == (fate is WriteFate.LATE)
        nonces = [cut.nonce for cut in trio.told["a"].cuts.values()]
        assert (
            nonces
            == [f"a1-{n}" for n in range(1, 12) if n != 5 or fate is WriteFate.LOST][: len(nonces)]
        )
        assert len(nonces) >= 9

    play(story)


def test_a_late_write_that_wins_is_a_cut_like_any_other() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a")
        await trio.pass_ticks(4.5)
        trio.store.fate = fates(WriteFate.LATE)
        await trio.pass_ticks(1)  # the fifth cut is on its way, and the next try half a tick off
        assert trio.members["a"].number == 4
        assert trio.store.deliver().is_done
        await trio.pass_ticks(3)
        assert [cut.nonce for cut in trio.told["a"].cuts.values()][3:6] == ["a1-4", "a1-5", "a1-6"]

    play(story)


def test_while_the_store_is_away_it_is_tried_with_growing_pauses() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        trio.store.cut_off()
        await trio.pass_ticks(16 * 60)
        for member in trio.members.values():
            assert member.is_away
            assert member.number == 10
            assert 30 < member.numbers.away < 45  # each 2 s, after a few quick ones
        trio.store.reconnect()
        await trio.pass_ticks(64)
        assert not any(member.is_away for member in trio.members.values())
        assert len(set(trio.numbers().values())) == 1
        assert trio.numbers()["a"] >= 10 + 16
        assert len(set(trio.writers(trio.numbers()["a"] - 8))) == 1

    play(story)


def test_a_member_that_was_away_reads_what_it_missed_from_the_store() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        trio.store.cut_off("c")
        await trio.pass_ticks(100)
        trio.store.reconnect("c")
        await trio.pass_ticks(40)
        assert trio.told["c"].cuts == trio.told["a"].cuts
        assert trio.members["c"].numbers.jumps == 0

    play(story)


def test_what_the_store_no_longer_keeps_is_fetched_from_peers() -> None:
    async def story(trio: Trio) -> None:
        async def fetch(first: int, last: int) -> Sequence[Cut]:
            had = trio.told["a"].cuts
            return [had[number] for number in range(first, min(last, first + 49) + 1)]

        trio.start("a", "b")
        trio.start("c", fetch_cuts=fetch)
        await trio.pass_ticks(10.5)
        trio.store.cut_off("c")
        await trio.pass_ticks(COORDINATION_CUTS_KEPT + 150)
        trio.store.reconnect("c")
        await trio.pass_ticks(40)
        assert trio.told["c"].cuts == trio.told["a"].cuts
        assert trio.members["c"].numbers.jumps == 0

    play(story)


@pytest.mark.parametrize("wrong", [[20, 21], [11, 13], [12, 11]])
def test_a_peer_that_hands_out_other_cuts_than_asked_for_is_not_believed(wrong: list[int]) -> None:
    async def story(trio: Trio) -> None:
        async def fetch(first: int, last: int) -> Sequence[Cut]:
            assert first == 11
            return [trio.told["a"].cuts[number] for number in wrong]

        trio.start("a", "b")
        trio.start("c", fetch_cuts=fetch)
        await trio.pass_ticks(10.5)
        trio.store.cut_off("c")
        await trio.pass_ticks(COORDINATION_CUTS_KEPT + 150)
        trio.store.reconnect("c")
        await trio.pass_ticks(40)
        assert trio.members["c"].numbers.jumps == 1
        assert trio.members["c"].at == trio.members["a"].at

    play(story)


def test_where_nobody_has_what_was_missed_it_begins_anew_and_says_so() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        trio.store.cut_off("c")
        await trio.pass_ticks(COORDINATION_CUTS_KEPT + 150)
        trio.store.reconnect("c")
        await trio.pass_ticks(40)
        told = trio.told["c"]
        assert trio.members["c"].numbers.jumps == 1
        assert len(told.began) == 2
        assert min(n for n in told.cuts if n > 20) == told.began[1] + 1
        assert trio.members["c"].at == trio.members["a"].at

    play(story)


def test_a_member_that_starts_late_knows_where_all_logs_stand() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b")
        await trio.pass_ticks(300.5)
        trio.start("c")
        await trio.pass_ticks(10)
        assert trio.members["c"].at == trio.members["a"].at
        assert trio.told["c"].began == [300]

    play(story)


def test_a_member_goes_on_behind_the_cuts_that_it_kept() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b", "c")
        await trio.pass_ticks(10.5)
        kept = trio.members["c"].at
        await trio.stop("c")
        await trio.pass_ticks(20)
        trio.start("c", at=kept)
        await trio.pass_ticks(5)
        assert trio.told["c"].began == [10]
        assert sorted(trio.told["c"].cuts) == list(range(11, trio.numbers()["c"] + 1))

    play(story)


def test_a_member_that_is_not_in_the_ring_follows_and_never_writes() -> None:
    async def story(trio: Trio) -> None:
        trio.ring = Ring({"a": KEYS["a"]})
        trio.store.hinted = lambda member, key: 0
        trio.start("a", "b")
        await trio.pass_ticks(40.5)
        assert trio.members["b"].numbers.written == trio.members["b"].numbers.beaten == 0
        assert trio.members["b"].number >= 40 - 17

    play(story)


def test_slow_writes_do_not_change_the_beat_and_late_ones_are_counted() -> None:
    async def story(trio: Trio) -> None:
        pause = TICK / 8

        async def slow(member: str) -> None:
            await asyncio.sleep(pause)

        trio.store.pause = slow
        trio.start("a")
        await trio.pass_ticks(32)
        before = trio.members["a"].numbers.written
        await trio.pass_ticks(32)
        assert trio.members["a"].numbers.written == before + 32
        assert trio.members["a"].numbers.late == 0
        pause = TICK
        await trio.pass_ticks(4)
        pause = 0.0
        await trio.pass_ticks(16)
        assert 1 <= trio.members["a"].numbers.late <= 3

    play(story)


def test_a_store_that_was_restored_from_a_backup_stops_the_cuts_and_nothing_else() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b")
        await trio.pass_ticks(10.5)
        backup = trio.store.save()
        await trio.pass_ticks(10)
        trio.store.restore(backup)
        at = trio.members["a"].at
        await trio.pass_ticks(160)
        assert all(member.is_away for member in trio.members.values())
        assert trio.members["a"].at == at
        await trio.stop("a")
        trio.start("a", at=at)  # a start later it still knows, by the cuts that it kept
        await trio.pass_ticks(16)
        assert trio.members["a"].is_away

    play(story)


def test_a_caller_that_needs_a_cut_can_wait_for_it() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a", "b")
        at = await trio.members["b"].reached(5)
        assert at.number == 5
        assert trio.clock.monotonic() == pytest.approx(5 * TICK, abs=TICK / 100)

    play(story)


def test_what_is_counted_is_handed_out_as_metrics() -> None:
    async def story(trio: Trio) -> None:
        trio.start("a")
        metrics = Metrics()
        assert b"holdfast_cut" not in metrics.exposition()
        metrics.order.numbers = trio.members["a"].numbers
        await trio.pass_ticks(8.5)
        text = metrics.exposition().decode()
        assert 'holdfast_cut_attempts_total{outcome="written"} 8.0' in text
        assert 'holdfast_tick_lateness_seconds_bucket{le="+Inf"} 8.0' in text
        assert "holdfast_cut_bytes 0" not in text

    play(story)
