"""Cuts that were read back are kept by each member for as long as it has room, and found again.

etcd keeps a few seconds of them. What is kept here tells the sequence ids of what is still in the
logs, and what "as of a cut" or "as of a time" means. Cuts are in a log of their own, one entry
each, in runs of consecutive numbers: a new run begins where cuts were missed for good.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from holdfast.errors import NotFound
from holdfast.limits import CUT_SHARES, CUTS_READ_MAX, CUTS_WAITING_MAX
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cut_codec import decode_cut, encode_cut
from holdfast.sequence.cuts import START, follow, restore, rewind, share_of


class CutLog(Protocol):
    """Where cuts are kept, one entry each. The oldest are dropped when there is no more room."""

    async def append(self, cuts: Sequence[bytes]) -> int:
        """Keeps some; the offset of the first. They are durable then, in this order."""
        ...

    async def read(self, offset: int, count: int) -> Sequence[bytes]:
        """So many from an offset on, or fewer at the end; NotFound before `earliest`."""
        ...

    @property
    def earliest(self) -> int: ...

    @property
    def next(self) -> int: ...


class CutRun(NamedTuple):
    """Cuts with consecutive numbers at consecutive offsets, up to the next run."""

    number: int
    offset: int


class CutKeeper:
    """A follower that keeps what it is told, and finds it again."""

    def __init__(self, log: CutLog) -> None:
        self.at: CutPositions | None = None  # as of the last cut that is kept
        self._log = log
        self._runs: list[CutRun] = []
        self._end = log.next  # of what is written; behind it come those that wait
        self._waiting: list[bytes] = []
        self._number = 0  # of the last one that is kept or waits
        self._is_new_run = False
        self._keeping = asyncio.Lock()

    @classmethod
    async def open(cls, log: CutLog) -> "CutKeeper":
        """Finds out what the log has."""
        keeper = cls(log)
        if log.next > log.earliest:
            keeper._runs = await keeper._find_runs(log.earliest, log.next - 1)
            keeper._number = await keeper._number_at(log.next - 1)
            first = max(keeper.first, keeper._number - CUT_SHARES + 1)
            recent = await keeper._read_all(first, keeper._number)
            keeper.at = restore(recent)
        return keeper

    # --- keeping: a follower of the publisher ---

    def begin(self, at: CutPositions) -> None:
        """The next cut is the one behind this."""
        self._is_new_run = at.number != self._number or not self._runs
        self._number, self.at = at.number, at

    def follow(self, cut: Cut, at: CutPositions) -> None:
        """Keeps a cut with the next `flush`."""
        assert cut.number == self._number + 1, (self._number, cut.number)
        if len(self._waiting) >= CUTS_WAITING_MAX and not self._keeping.locked():
            self._give_up_waiting()
        if self._is_new_run:
            self._runs.append(CutRun(cut.number, self._end + len(self._waiting)))
            self._is_new_run = False
        self._waiting.append(encode_cut(cut))
        self._number, self.at = cut.number, at

    def _give_up_waiting(self) -> None:
        """The disk takes nothing for too long: those that wait are missing here from now on."""
        self._waiting.clear()
        self._runs = [run for run in self._runs if run.offset < self._end]
        self._is_new_run = True

    async def flush(self) -> None:
        """Writes what waits. What a crash takes is read again from etcd or from other members."""
        async with self._keeping:
            if waiting := list(self._waiting):
                offset = await self._log.append(waiting)
                assert offset == self._end, (offset, self._end)
                self._end += len(waiting)
                del self._waiting[: len(waiting)]

    # --- finding ---

    @property
    def first(self) -> int:
        """The number of the oldest cut of the last run, from which on none is missing."""
        if not self._runs:
            return self._number + 1
        run = self._runs[-1]
        return run.number + max(self._log.earliest - run.offset, 0)

    @property
    def last(self) -> int:
        """The number of the last cut; before `first` if there is none."""
        return self._number

    async def cuts(self, first: int, last: int) -> list[Cut]:
        """Cuts from one number to another, in a row: as many as one read hands out, from `first`.

        Older runs count, too. Empty where the first one is not kept.
        """
        at = bisect_right(self._runs, first, key=_number) - 1
        if at < 0:
            return []
        run, end = self._runs[at], self._number
        if at + 1 < len(self._runs):
            end = run.number + self._runs[at + 1].offset - run.offset - 1
        if first > min(last, end) or self._offset(first) < self._log.earliest:
            return []
        return await self._read(first, min(last, end) - first + 1)

    async def follow_from(self, number: int) -> AsyncIterator[tuple[CutPositions, Cut]]:
        """Each cut from a number on that is kept by now, with where all logs stood before it."""
        before = await self.positions(number - 1)
        while before.number < self.last:
            cuts = await self.cuts(before.number + 1, self.last)
            if not cuts:
                raise self._gone(before.number + 1)
            for cut in cuts:
                yield before, cut
                before = follow(before, cut)

    async def positions(self, number: int) -> CutPositions:
        """Where all logs stand as of a cut; NotFound if that can no longer be told."""
        if number == 0 and self.first == 1:
            return START
        if not self.first - 1 <= number <= self.last:
            raise self._gone(number)
        first = max(self.first, number - CUT_SHARES + 1)
        cuts = await self._read_all(first, max(first + CUT_SHARES - 1, number))
        found = restore(cuts)
        if found is None:
            raise self._gone(number)
        while found.number > number:
            found = rewind(found, cuts.pop(), cuts[-1].time_ms if cuts else 0)
        return found

    async def at_time(self, time_ms: int) -> int:
        """The number of the last cut that was published at or before a time, by its own clock."""
        low, high = self.first, self.last + 1  # the first that is later is in low..high
        while low < high:
            middle = (low + high) // 2
            if (await self._one(middle)).time_ms <= time_ms:
                low = middle + 1
            else:
                high = middle
        if low == self.first and self.first > 1:
            raise NotFound(
                f"No cut from before {time_ms} ms is kept; the oldest is {self.first}",
                first=self.first, last=self.last,
            )  # fmt: skip
        return low - 1

    async def holding(self, key: LogKey, offset: int) -> int:
        """The number of the cut that an entry is in; NotFound if it is in none that is kept.

        Only cuts that say where this log stands are looked at, and then those up to the next one.
        """
        share = share_of(key)
        low = -((share - self.first) // CUT_SHARES)  # number = share + 64 * n, from `first` on
        high = (self.last - share) // CUT_SHARES + 1
        while low < high:
            middle = (low + high) // 2
            cut = await self._one(share + middle * CUT_SHARES)
            if cut.positions.get(key, 0) <= offset:
                low = middle + 1
            else:
                high = middle
        first = share + (low - 1) * CUT_SHARES
        if first >= self.first:
            at = (await self._one(first)).positions.get(key, 0)
        else:
            first = self.first - 1
            at = (await self.positions(first)).offsets.get(key, 0)
        if at <= offset:
            for cut in await self._read_all(first + 1, first + CUT_SHARES):
                at += cut.grown.get(key, 0)
                if at > offset:
                    return cut.number
        raise NotFound(
            f"Offset {offset} of {key.topic}/{key.partition} is in none of the cuts "
            f"{self.first} to {self.last} that are kept",
            first=self.first, last=self.last,
        )  # fmt: skip

    # --- the log ---

    def _gone(self, number: int) -> NotFound:
        return NotFound(
            f"Cut {number} is not kept here: there are those from {self.first} to {self.last}. "
            "Ask another member, or choose a later one",
            first=self.first, last=self.last,
        )  # fmt: skip

    def _offset(self, number: int) -> int:
        run = self._runs[bisect_right(self._runs, number, key=_number) - 1]
        return run.offset + number - run.number

    async def _one(self, number: int) -> Cut:
        return (await self._read(number, 1))[0]

    async def _read_all(self, first: int, last: int) -> list[Cut]:
        found: list[Cut] = []
        last = min(last, self._number)
        while first <= last and (more := await self._read(first, last - first + 1)):
            found.extend(more)
            first += len(more)
        return found

    async def _read(self, first: int, count: int) -> list[Cut]:
        """What is on the log, and then what waits to be written."""
        offset, count = self._offset(first), min(count, CUTS_READ_MAX)
        async with self._keeping:
            past = offset - self._end
            if past >= 0:
                found = self._waiting[past : past + count]
            else:
                found = await self._log.read(offset, min(count, -past))
        return [decode_cut(each) for each in found]

    async def _number_at(self, offset: int) -> int:
        return decode_cut((await self._log.read(offset, 1))[0]).number

    async def _find_runs(self, first: int, last: int) -> list[CutRun]:
        """Where numbers skip, by halves: a stretch without a skip is seen by its two ends."""
        number, end = await self._number_at(first), await self._number_at(last)
        if end - number == last - first:
            return [CutRun(number, first)]
        if last - first == 1:
            return [CutRun(number, first), CutRun(end, last)]
        middle = (first + last) // 2
        left = await self._find_runs(first, middle)
        right = await self._find_runs(middle, last)
        return [*left, *right[1:]]


def _number(run: CutRun) -> int:
    return run.number
