"""A member's part in the order: publishes cuts when it is its turn, and follows all others'.

What is decided is in `ticks`; this is the loop around it. Hints that something changed only make it
read sooner: what is believed was read, or was written with an answer. A store that is away is tried
again and again with growing pauses. Nothing here waits for anything but the store and the clock.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from holdfast.clock import Clock
from holdfast.errors import DataLoss, HoldfastError, Unknown
from holdfast.limits import (
    COORDINATION_CUTS_KEPT,
    CUT_SHARES,
    PUBLISHER_LOOK_SECONDS,
    PUBLISHER_RETRY_SECONDS_MAX,
)
from holdfast.logs import log
from holdfast.sequence import ticks
from holdfast.sequence.api import Coordination, Cut, CutPositions, LogKey
from holdfast.sequence.cuts import START, follow, make_cut, restore
from holdfast.sequence.ring import Ring
from holdfast.sequence.tick_numbers import TickNumbers
from holdfast.sequence.ticks import TickPace

FetchCuts = Callable[[int, int], Awaitable[Sequence[Cut]]]
"""Cuts from one number to another, both included, as far as anybody else has them."""


class CutFollower(Protocol):
    """A component that is told of cuts: each one, in order, without gaps."""

    def begin(self, at: CutPositions) -> None:
        """The next cut is the one behind this. Said first, and again where cuts cannot be had."""
        ...

    def follow(self, cut: Cut, at: CutPositions) -> None:
        """A cut that counts, and where all logs stand behind it."""
        ...


async def _nobody(first: int, last: int) -> Sequence[Cut]:
    return ()


class Publisher:
    """One member's timer, its writes, and the cuts that it has read."""

    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        member: str,
        *,
        nonce: str,
        ring: Callable[[], Ring],
        marks: Callable[[], Mapping[LogKey, int]],
        followers: Sequence[CutFollower] = (),
        fetch_cuts: FetchCuts = _nobody,
        at: CutPositions | None = None,
        pace: TickPace | None = None,
        is_told: bool = False,
    ) -> None:
        """`nonce` is of this start of the member; `at` is where the kept cuts end.

        `is_told`: somebody watches the store anyway and calls `hint`; it is not watched twice.
        """
        self.numbers = TickNumbers()
        self.at = at  # None: not known yet
        self._coordination = coordination
        self._clock = clock
        self._member = member
        self._nonce = nonce
        self._ring = ring
        self._marks = marks
        self._followers = list(followers)
        self._fetch_cuts = fetch_cuts
        self._pace = pace or TickPace()
        self._is_told = is_told
        self._turn = ticks.begin(clock.monotonic())
        self._tries = 0
        self._failures = 0  # in a row
        self._hinted = asyncio.Event()
        self._moved = asyncio.Condition()

    # --- for others ---

    @property
    def number(self) -> int:
        """Of the last cut that was followed; 0 if there is none."""
        return 0 if self.at is None else self.at.number

    @property
    def writer(self) -> str | None:
        """Who wrote the last cut that was seen."""
        return self._turn.writer

    @property
    def is_away(self) -> bool:
        """Whether the store did not answer the last time: there are no new cuts then."""
        return self._failures > 0

    def hint(self) -> None:
        """Something may have been published."""
        self._hinted.set()

    async def reached(self, number: int) -> CutPositions:
        """Waits for a cut to be followed; where all logs stand behind the last one then."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.at is not None and self.at.number >= number)
        assert self.at is not None
        return self.at

    async def run(self) -> None:
        """Takes part until it is cancelled."""
        if self.at is not None:
            self._begin(self.at)
        watching = None
        if not self._is_told:
            watching = asyncio.create_task(self._watch(), name="watching for cuts")
        try:
            while True:
                await self._wait(await self._step())
        finally:
            if watching is not None:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching

    # --- the loop ---

    async def _step(self) -> float:
        """Does what is due; for how long nothing is, unless there is a hint, in seconds."""
        try:
            if self._is_echo:
                self._hinted.clear()
            if self._turn.must_read or self._hinted.is_set() or self._is_behind:
                await self._read()
            due = self._due()
            if due is None:
                wait = PUBLISHER_LOOK_SECONDS
            elif (wait := due - self._clock.monotonic()) <= 0:
                await self._publish(due)
            self._answered()
        except (HoldfastError, OSError) as error:
            wait = self._failed(error)
        return wait

    @property
    def _is_echo(self) -> bool:
        """Whether a hint now is about this member's own cut, which need not be read.

        If it is about somebody else's nevertheless, that one beats the next attempt.
        """
        since_s = self._clock.monotonic() - self._turn.since
        return self._turn.writer == self._member and since_s < self._pace.tick_seconds / 2

    @property
    def _is_behind(self) -> bool:
        return self.at is None or self.at.number != self._turn.number

    def _due(self) -> float | None:
        return ticks.due(self._turn, self._ring(), self._member, self._pace)

    async def _wait(self, seconds: float) -> None:
        if self.is_away:
            await asyncio.sleep(seconds)  # hints do not make the store answer
        elif seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._hinted.wait()
            except TimeoutError:
                if self._due() is None:
                    self.hint()  # who has no turn would not notice that hints are lost

    async def _watch(self) -> None:
        while True:
            try:
                async for name in self._coordination.changes():
                    if name == "latest":
                        self.hint()
            except (HoldfastError, OSError) as error:
                log.debug("changes of the store cannot be watched", error=str(error))
            await asyncio.sleep(PUBLISHER_LOOK_SECONDS)

    def _answered(self) -> None:
        if self._failures:
            log.info("the store of the cluster answers again: cuts continue", cut=self.number)
        self._failures = 0

    def _failed(self, error: Exception) -> float:
        """The store is away, or says what cannot be: after a pause it is asked again."""
        self.numbers.away += 1
        self._failures += 1
        if self._failures == 1:
            say = log.error if isinstance(error, DataLoss) else log.warning
            say("there are no new cuts: the store of the cluster failed", error=str(error))
        ticks_out = 2 ** min(self._failures - 1, 10)
        return min(ticks_out * self._pace.tick_seconds, PUBLISHER_RETRY_SECONDS_MAX)

    # --- publishing ---

    async def _publish(self, due: float) -> None:
        assert self.at is not None and self.at.number == self._turn.number
        self._tries += 1
        nonce = f"{self._nonce}-{self._tries}"
        cut = make_cut(self.at, self._marks(), self._member, nonce, self._clock.now_ms())
        self._turn = ticks.tried(self._turn, self._clock.monotonic(), due, nonce)
        attempt = self._turn.trying
        assert attempt is not None
        try:
            is_written = await self._coordination.publish(cut)
        except Unknown:  # the next step reads
            self.numbers.unknown += 1
            self._turn = ticks.unknown(self._turn, self._clock.monotonic())
            return
        except BaseException:
            self._turn = ticks.unknown(self._turn, self._clock.monotonic())
            raise
        now = self._clock.monotonic()
        if is_written:
            self._turn = ticks.written(self._turn, now, self._member, self._pace)
            is_late = ticks.is_late(attempt, now, self._pace)
            self.numbers.saw_written(cut, ticks.lateness(attempt, now), is_late)
            await self._take([cut])
        else:
            self._turn = ticks.beaten(self._turn, now)
            self.numbers.beaten += 1

    # --- following ---

    async def _read(self) -> None:
        self._hinted.clear()
        latest = await self._coordination.latest()
        now = self._clock.monotonic()
        if latest is None:
            self._turn = ticks.read(self._turn, now, 0, None, None)
            if self.at is None:
                self._begin(START)
            return
        if self.at is None or self.at.number < latest.number:
            await self._catch_up(latest)
        self._turn = ticks.read(self._turn, now, latest.number, latest.writer, latest.nonce)
        if self.number > latest.number:
            raise DataLoss(
                f"The last cut in the store is {latest.number}, but this member has followed cut "
                f"{self.number}. Was etcd restored from a backup? See the how-to on restoring a "
                "cluster",
                cut=latest.number,
            )

    async def _catch_up(self, latest: Cut) -> None:
        """Follows all cuts up to the latest; where they cannot be had, it begins behind them."""
        if self.at is None:
            first = max(latest.number - CUT_SHARES + 1, 1)
        elif self.at.number + 1 == latest.number:
            await self._take([latest])
            return
        else:
            first = self.at.number + 1
        kept = list(await self._coordination.cuts(first, latest.number))
        if self.at is not None and kept and kept[0].number > first:
            kept = [*await self._fetch(first, kept[0].number - 1), *kept]
        if self.at is None or not kept or kept[0].number > first:
            kept = await self._jump(latest, kept)
        await self._take(kept)

    async def _fetch(self, first: int, last: int) -> Sequence[Cut]:
        """What the store no longer keeps, from peers: all of it, or nothing."""
        fetched: list[Cut] = []
        while first <= last and (more := await self._fetch_cuts(first, last)):
            if [cut.number for cut in more] != list(range(first, first + len(more))):
                return ()
            fetched.extend(more)
            first += len(more)
        return fetched if first > last else ()

    async def _jump(self, latest: Cut, kept: list[Cut]) -> list[Cut]:
        """Begins with what is kept, as far back as that goes; the cuts to follow from there."""
        if len(kept) < CUT_SHARES and latest.number > len(kept):
            oldest = max(latest.number - COORDINATION_CUTS_KEPT + 1, 1)
            kept = list(await self._coordination.cuts(oldest, latest.number))
        began = START if kept and kept[0].number == 1 else restore(kept[:CUT_SHARES])
        if began is None:
            raise DataLoss(
                f"The store keeps {len(kept)} cuts up to {latest.number}, but {CUT_SHARES} are "
                "needed to begin. Restore etcd from a backup",
                cut=latest.number,
            )
        if self.at is not None:
            self.numbers.jumps += 1
            log.info(
                "cuts between these two are known to other members only", last=self.number,
                goes_on_at=began.number,
            )  # fmt: skip
        self._begin(began)
        return kept if began is START else kept[CUT_SHARES:]

    def _begin(self, at: CutPositions) -> None:
        self.at = at
        for follower in self._followers:
            follower.begin(at)

    async def _take(self, cuts: Sequence[Cut]) -> None:
        for cut in cuts:
            assert self.at is not None
            self.at = follow(self.at, cut)
            for follower in self._followers:
                follower.follow(cut, self.at)
        async with self._moved:
            self._moved.notify_all()
