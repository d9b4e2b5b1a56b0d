"""Time as a thing that is handed in, so that a simulation can turn the hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """What a package may ask of time."""

    def now_ms(self) -> int:
        """Wall-clock time since the epoch, for what people and logs read."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring spans."""
        ...

    def busy(self) -> float:
        """Seconds that this thread has worked, not waited, for measuring what something costs."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    busy = staticmethod(time.thread_time)
