"""What a member says of cuts: positions, the order by the page, and what other members fetch."""

from collections.abc import Sequence

import pytest

from holdfast.cluster.cut_log import JournalCutLog
from holdfast.cluster.member_cuts import MemberCuts
from holdfast.errors import NotFound
from holdfast.journal.memory import MemoryJournal
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.keeping import CutKeeper
from holdfast.sequence.order import TotalOrder
from holdfast.sequence.publishing import FetchCuts
from holdfast.testing import run


def history(count: int) -> tuple[list[Cut], list[CutPositions]]:
    cuts, at = list[Cut](), [START]
    for number in range(count):
        marks = {LogKey("records", each): number * each // 2 for each in range(1, 9)}
        cuts.append(make_cut(at[-1], marks, "a", f"n{number}", number * 1_000))
        at.append(follow(at[-1], cuts[-1]))
    return cuts, at


CUTS_MADE, AT = history(300)


async def kept(first: int, last: int) -> CutKeeper:
    keeper = await CutKeeper.open(JournalCutLog(MemoryJournal()))
    keeper.begin(AT[first - 1])
    for cut in CUTS_MADE[first - 1 : last]:
        keeper.follow(cut, AT[cut.number])
    await keeper.flush()
    return keeper


async def nobody(first: int, last: int) -> Sequence[Cut]:
    return ()


async def member(first: int, last: int, fetch: FetchCuts = nobody) -> MemberCuts:
    return MemberCuts(await kept(first, last), fetch)


def test_positions_are_of_a_cut_a_time_or_the_latest() -> None:
    async def story() -> None:
        cuts = await member(1, 200)
        assert await cuts.positions(None) == AT[200]
        assert await cuts.positions(77) == AT[77]
        assert await cuts.positions(None, 99_500) == AT[100]
        with pytest.raises(NotFound, match="up to 200, but found 201: it is not published yet"):
            await cuts.positions(201)

    run(story())


def test_what_a_member_does_not_have_it_asks_of_the_others() -> None:
    async def story() -> None:
        young = await member(200, 250, (await kept(1, 250)).cuts)
        for number in (0, 5, 150, 220):
            assert (await young.positions(number)).offsets == AT[number].offsets
        for fetch in (nobody, (await kept(140, 250)).cuts):
            with pytest.raises(NotFound, match="from 200 to 250"):
                await (await member(200, 250, fetch)).positions(150)

    run(story())


@pytest.mark.parametrize("spans_max", [1, 10, 1_000])
def test_the_order_comes_in_pages_of_whole_cuts(spans_max: int) -> None:
    async def story() -> None:
        cuts, order, found, following = await member(1, 120), TotalOrder(START), [], 0
        for cut in CUTS_MADE[:120]:
            order.extend(cut)
        pages = 0
        while following <= 120:
            spans, following = await cuts.order(following, spans_max)
            found += spans
            pages += 1
        assert found == list(order.spans())
        assert following == 121
        assert pages == 1 if spans_max == 1_000 else pages > 5
        assert await cuts.order(121, 5) == ([], 121)
        with pytest.raises(NotFound):
            await (await member(200, 210)).order(5, 5)

    run(story())
