"""Cuts that are kept: found by number, by time and by entry, after a restart and after a gap."""

import random
from collections.abc import Sequence

import pytest

from holdfast.errors import NotFound
from holdfast.limits import CUT_SHARES
from holdfast.sequence import keeping
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.keeping import CutKeeper
from holdfast.testing import run

LOGS = [LogKey(topic, number) for topic in ("content", "records") for number in range(1, 40)]


class ListLog:
    """Cuts in a list; what is older than the earliest is gone."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.earliest = 0

    @property
    def next(self) -> int:
        return len(self.entries)

    async def append(self, cuts: Sequence[bytes]) -> int:
        self.entries += cuts
        return len(self.entries) - len(cuts)

    async def read(self, offset: int, count: int) -> Sequence[bytes]:
        if offset < self.earliest:
            raise NotFound("too old")
        return self.entries[offset : offset + min(count, 50)]


def history(count: int) -> tuple[list[Cut], list[CutPositions]]:
    dice, marks, at, cuts = random.Random(count), dict[LogKey, int](), [START], list[Cut]()
    for number in range(count):
        for _ in range(dice.randrange(9)):
            key = dice.choice(LOGS)
            marks[key] = marks.get(key, 0) + dice.randrange(4)
        cuts.append(make_cut(at[-1], marks, "a", f"n{number}", 1_000 * (number // 3)))
        at.append(follow(at[-1], cuts[-1]))
    return cuts, at


CUTS, AT = history(400)


async def keep(log: ListLog, first: int, last: int, flush_each: int = 7) -> CutKeeper:
    """Keeps cuts of the history, as a member does that begins with `first`."""
    keeper = await CutKeeper.open(log)
    keeper.begin(AT[first - 1])
    for cut in CUTS[first - 1 : last]:
        keeper.follow(cut, AT[cut.number])
        if cut.number % flush_each == 0:
            await keeper.flush()
    return keeper


async def check(keeper: CutKeeper, first: int, last: int) -> None:
    """Everything that can be asked of the cuts from `first` to `last`."""
    assert (keeper.first, keeper.last) == (first, last)
    for number in {*range(first, last + 1, 9), last}:
        assert await keeper.positions(number) == AT[number], number
    oldest = await keeper.positions(first - 1)  # the time of a cut that is gone is not known
    assert (oldest.number, oldest.offsets) == (first - 1, AT[first - 1].offsets)
    assert (await keeper.cuts(first, last))[0] == CUTS[first - 1]
    assert [cut async for _, cut in keeper.follow_from(first)] == CUTS[first - 1 : last]
    assert [at async for at, _ in keeper.follow_from(first)][1:] == AT[first:last]
    for key in LOGS[::5]:
        for cut in CUTS[first - 1 : last]:
            for offset in range(
                AT[cut.number - 1].offsets.get(key, 0), AT[cut.number].offsets.get(key, 0)
            ):
                assert await keeper.holding(key, offset) == cut.number
        with pytest.raises(NotFound, match="none of the cuts"):
            await keeper.holding(key, AT[last].offsets.get(key, 0))
    for number in range(first, last + 1):
        time_ms = CUTS[number - 1].time_ms
        together = [cut.number for cut in CUTS[:last] if cut.time_ms == time_ms]
        assert await keeper.at_time(time_ms) == together[-1]


def test_what_is_kept_is_found_again_written_or_not() -> None:
    async def story() -> None:
        log = ListLog()
        keeper = await keep(log, 1, 200)
        assert 0 < log.next < 200  # some wait
        await check(keeper, 1, 200)
        await keeper.flush()
        await keeper.flush()
        assert log.next == 200
        assert await keeper.at_time(-1) == 0

    run(story())


def test_after_a_restart_it_goes_on_behind_what_was_written() -> None:
    async def story() -> None:
        log = ListLog()
        await (await keep(log, 1, 150)).flush()
        again = await CutKeeper.open(log)
        assert again.at == AT[150]
        keeper = await keep(log, 151, 230)
        await check(keeper, 1, 230)

    run(story())


def test_with_few_cuts_a_restart_knows_where_it_is_if_they_are_all() -> None:
    async def story() -> None:
        log = ListLog()
        assert (await CutKeeper.open(log)).at is None
        await (await keep(log, 1, 5)).flush()
        assert (await CutKeeper.open(log)).at == AT[5]
        late = ListLog()
        await (await keep(late, 101, 105)).flush()
        assert (await CutKeeper.open(late)).at is None

    run(story())


def test_old_cuts_are_dropped_and_what_is_left_still_tells_everything() -> None:
    async def story() -> None:
        log = ListLog()
        keeper = await keep(log, 1, 300)
        await keeper.flush()
        log.earliest = 130
        await check(keeper, 131, 300)
        with pytest.raises(NotFound, match="those from 131 to 300"):
            await keeper.positions(129)
        with pytest.raises(NotFound, match="the oldest is 131"):
            await keeper.at_time(3)
        assert await keeper.cuts(5, 9) == []
        reopened = await CutKeeper.open(log)
        await check(reopened, 131, 300)

    run(story())


def test_cuts_that_were_missed_for_good_leave_a_gap_and_no_wrong_answers() -> None:
    async def story() -> None:
        log = ListLog()
        await (await keep(log, 1, 100)).flush()
        await (await keep(log, 181, 280)).flush()
        keeper = await keep(log, 320, 400)
        await check(keeper, 320, 400)
        await keeper.flush()
        reopened = await CutKeeper.open(log)
        await check(reopened, 320, 400)
        assert [cut.number for cut in await reopened.cuts(90, 190)] == list(range(90, 101))
        assert [cut.number for cut in await reopened.cuts(270, 400)] == list(range(270, 281))
        assert await reopened.cuts(101, 190) == []
        with pytest.raises(NotFound, match="Ask another member"):
            await reopened.positions(100)

    run(story())


def test_behind_a_gap_positions_are_known_once_each_share_was_seen() -> None:
    async def story() -> None:
        keeper = await keep(ListLog(), 101, 100 + CUT_SHARES - 1)
        with pytest.raises(NotFound):
            await keeper.positions(101)
        await check(await keep(ListLog(), 101, 100 + CUT_SHARES), 101, 100 + CUT_SHARES)

    run(story())


def test_a_disk_that_takes_nothing_for_long_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "CUTS_WAITING_MAX", 100)

    async def story() -> None:
        log = ListLog()
        keeper = await keep(log, 1, 30)
        await keeper.flush()
        for cut in CUTS[30:300]:
            keeper.follow(cut, AT[cut.number])
        assert len(keeper._waiting) <= 100
        assert (keeper.first, keeper.last) == (231, 300)
        await check(keeper, 231, 300)
        await keeper.flush()
        await check(await CutKeeper.open(log), 231, 300)
        assert [cut.number for cut in await keeper.cuts(1, 300)] == list(range(1, 31))

    run(story())
