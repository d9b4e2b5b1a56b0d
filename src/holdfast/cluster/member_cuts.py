"""What a member says of cuts: where all logs stood as of one, and the order that they make."""

from holdfast.errors import NotFound
from holdfast.limits import CUT_SHARES
from holdfast.sequence.api import CutPositions
from holdfast.sequence.cuts import START, restore
from holdfast.sequence.keeping import CutKeeper
from holdfast.sequence.order import Ordered, ordered
from holdfast.sequence.publishing import FetchCuts


class MemberCuts:
    """The cuts that a member keeps, and where it asks for those that it does not have."""

    def __init__(self, keeper: CutKeeper, fetch: FetchCuts) -> None:
        self._keeper = keeper
        self._fetch = fetch

    async def positions(self, cut: int | None, time_ms: int | None = None) -> CutPositions:
        """Where all logs stood as of a cut, or of the last one at a time, or of the last one."""
        keeper = self._keeper
        if cut is None:
            cut = keeper.last if time_ms is None else await keeper.at_time(time_ms)
        if cut == 0:
            return START
        if cut > keeper.last:
            raise NotFound(
                f"Expected a cut up to {keeper.last}, but found {cut}: it is not published yet, or"
                " this member has not read it yet",
                first=keeper.first, last=keeper.last,
            )  # fmt: skip
        try:
            return await keeper.positions(cut)
        except NotFound:
            first = max(cut - CUT_SHARES + 1, 1)
            found = await self._fetch(first, cut)
            if [each.number for each in found] != list(range(first, cut + 1)):
                raise
            at = restore(found)
            assert at is not None, "these are all of them, or as many as there are shares"
            return at

    async def order(self, first: int, spans_max: int) -> tuple[list[Ordered], int]:
        """What cuts order from one on, as many whole cuts as hold so many; and the next cut.

        Without a first one, from the oldest that is kept.
        """
        keeper = self._keeper
        spans: list[Ordered] = []
        number = first = first or keeper.first
        if first > keeper.last:
            return [], first
        async for before, cut in keeper.follow_from(first):
            spans.extend(ordered(before, cut))
            number = cut.number + 1
            if len(spans) >= spans_max:
                break
        return spans, number
