"""The time of a node: it follows the machine's clock, and never jumps with it.

Due dates and spans are kept as moments. If the machine's clock is set back, all that was due in an
hour would be due in two; if it is set forward, every lease would run out at once. So time passes by
the monotonic clock, and a difference to the wall clock is made up for slowly. A machine that was
suspended has not jumped where the clock counts that span (CLOCK_BOOTTIME).
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from holdfast.clock import Clock, SystemClock
from holdfast.limits import CLOCK_ADOPT_MS, CLOCK_JUMP_MS, CLOCK_SLEW_PERCENT


class Jump(NamedTuple):
    """The wall clock was set."""

    by_ms: int  # > 0: forward
    before_ms: int  # the node's time before and after: the same unless it follows at once
    after_ms: int


def _unheard(jump: Jump) -> None:
    """Nobody has asked to be told."""


_PASSED_MS_MIN = 0.25  # until then it is taken to be the same time still
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)

boot_seconds: Callable[[], float] = (
    time.monotonic if _BOOT_CLOCK is None else partial(time.clock_gettime, _BOOT_CLOCK)
)
"""Seconds since the machine was started, its sleep included where the system counts it."""


class SteadyClock:
    """Another clock, whose now goes on evenly whatever is done to it.

    A difference to the other is made up for at a tenth of the speed of time, so that a span is at
    most a tenth longer or shorter than it should be. More than three hours forward is taken to be
    time that really passed, and followed at once. It never goes back.
    """

    def __init__(self, clock: Clock, elapsed: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._elapsed = elapsed or (
            boot_seconds if isinstance(clock, SystemClock) else clock.monotonic
        )
        self.monotonic = clock.monotonic
        self.busy = clock.busy
        self.on_jump: Callable[[Jump], None] = _unheard
        self.jumps = 0
        self.ahead_ms = 0.0  # the wall clock's lead over this one
        self._now_ms = float(clock.now_ms())
        self._at_ms = self._elapsed() * 1000

    def now_ms(self) -> int:
        """The time of the node, a little nearer to the wall clock than it was.

        What a node does for one submission asks several times: it is told the same time.
        """
        at_ms = self._elapsed() * 1000
        passed_ms = at_ms - self._at_ms
        if 0.0 < passed_ms < _PASSED_MS_MIN:
            return int(self._now_ms)
        wall_ms = self._clock.now_ms()
        if passed_ms < 0.0:
            passed_ms = 0.0
        now_ms = self._now_ms + passed_ms
        ahead_ms = wall_ms - now_ms
        before_ms, by_ms = now_ms, ahead_ms - self.ahead_ms
        has_jumped = not -CLOCK_JUMP_MS <= by_ms <= CLOCK_JUMP_MS
        if has_jumped and ahead_ms > CLOCK_ADOPT_MS:
            now_ms = wall_ms
        else:
            slewed_ms = passed_ms * CLOCK_SLEW_PERCENT / 100
            now_ms += max(-slewed_ms, min(ahead_ms, slewed_ms))
        self._now_ms, self._at_ms, self.ahead_ms = now_ms, at_ms, wall_ms - now_ms
        if has_jumped:
            self.jumps += 1
            self.on_jump(Jump(round(by_ms), int(before_ms), int(now_ms)))
        return int(now_ms)

    def not_before(self, moment_ms: int) -> None:
        """Time was at this moment already, before a restart: it does not go back behind it."""
        if moment_ms > self._now_ms:
            self._now_ms = float(moment_ms)
            self.ahead_ms = self._clock.now_ms() - self._now_ms
