"""A clock that can be pinned: for tests of processes with timers."""

from collections.abc import Callable

from holdfast.clock import Clock


def _nobody() -> None:
    """Nobody has asked to be told."""


class PinnableClock:
    """Another clock, until it is pinned: then it stands still at that moment.

    Spans are measured by the clock behind it, so what only waits goes on as ever.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pinned_ms: int | None = None
        self.on_turn: Callable[[], None] = _nobody  # what is due has to be looked at again

    def now_ms(self) -> int:
        return self._clock.now_ms() if self._pinned_ms is None else self._pinned_ms

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def busy(self) -> float:
        return self._clock.busy()

    def pin(self, now_ms: int) -> None:
        """It is this moment from now on."""
        self._pinned_ms = now_ms
        self.on_turn()

    def reset(self) -> None:
        """It is as late as the clock behind it says."""
        self._pinned_ms = None
        self.on_turn()
