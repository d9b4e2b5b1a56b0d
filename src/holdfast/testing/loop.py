"""An event loop whose time is a number: it jumps to the next timer when nothing else can run.

An hour passes at once, and the same program takes the same steps every time. A program in which
everybody waits and no timer is set can never go on: that is an error, not a test that hangs.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
_MICROSECONDS = 1_000_000


class DeadlockError(Exception):
    """Every task waits for another one: nothing can run and no timer is set."""


class VirtualClock:
    """A clock (`holdfast.clock.Clock`) that stands still until it is advanced.

    >>> clock = VirtualClock(start_ms=1_000)
    >>> clock.advance(2.5)
    >>> clock.now_ms()
    3500
    """

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._passed = 0.0

    def now_ms(self) -> int:
        # Rounded to microseconds first: a timer of 0.3 s must not be found at 299 ms.
        return self._start_ms + round(self._passed * _MICROSECONDS) // 1_000

    def monotonic(self) -> float:
        return self._passed

    def busy(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        """Advances the clock. The loop runs timers: see `VirtualLoop.run_for`."""
        assert seconds >= 0, "time does not go back"
        self._passed += seconds


class _Jump(selectors.DefaultSelector):
    """Where a real loop waits for the operating system, this one turns the clock."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.loop.pass_time(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop on virtual time, for one thread and without sockets."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self._until: float | None = None  # how far time may pass; None: as far as the timers want
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.clock.monotonic()

    def pass_time(self, seconds: float | None) -> None:
        """Called when the loop would wait this long, or for ever, for something to happen."""
        if seconds is not None and seconds <= 0:
            return
        if self._until is None:
            if seconds is None:
                raise DeadlockError(
                    "Expected something to run, but everybody waits and no timer is set"
                )
            self.clock.advance(seconds)
            return
        left = max(self._until - self.time(), 0.0)
        if seconds is None or seconds > left:
            self.clock.advance(left)
            self.stop()
        else:
            self.clock.advance(seconds)

    def run_for(self, seconds: float) -> None:
        """Runs everything that is due within this time; with 0, everything that is due now."""
        self._until = self.time() + seconds
        try:
            self.run_forever()
        finally:
            self._until = None


def run(coroutine: Coroutine[Any, Any, T], clock: VirtualClock | None = None) -> T:
    """Like `asyncio.run`, on virtual time.

    >>> clock = VirtualClock(start_ms=0)
    >>> run(asyncio.sleep(3600, "an hour later"), clock)
    'an hour later'
    >>> clock.now_ms()
    3600000
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(coroutine)
