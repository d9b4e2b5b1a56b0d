"""Wakes partitions when something is due on them."""

import asyncio
from collections.abc import Callable

from holdfast.clock import Clock

_WAIT_SECONDS_MAX = 60.0  # then a due date is looked at again: the wall clock may have jumped


class Alarms:
    """One timer for each partition that waits for a moment."""

    def __init__(self, clock: Clock, wake: Callable[[int], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._timers: dict[int, tuple[int, asyncio.TimerHandle]] = {}

    def watch(self, partition: int, due_ms: int | None) -> None:
        """Sees to it that the partition wakes up when something is due; None: nothing is.

        A timer for an earlier moment stays: when it is over, the partition looks again. Leases end
        long before they are due, and to set a timer anew for each would cost more than the look.
        """
        if (known := self._timers.get(partition)) is not None:
            if due_ms is not None and known[0] <= due_ms:
                return
            self._timers.pop(partition)[1].cancel()
        if due_ms is not None:
            seconds = min((due_ms - self._clock.now_ms()) / 1000, _WAIT_SECONDS_MAX)
            self._set(partition, due_ms, max(seconds, 0.0))

    def pause(self, partition: int, pause_ms: int) -> None:
        """The partition wakes up after so long, whatever is due before."""
        self._set(partition, self._clock.now_ms() + pause_ms, pause_ms / 1000)

    def ring(self, partition: int) -> None:
        """The partition wakes up at once, and looks again at what is due."""
        self._set(partition, 0, 0.0)

    def forget(self, partition: int) -> None:
        """The partition does not wake up by itself any more."""
        if (known := self._timers.pop(partition, None)) is not None:
            known[1].cancel()

    def stop(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _set(self, partition: int, due_ms: int, seconds: float) -> None:
        if (known := self._timers.pop(partition, None)) is not None:
            known[1].cancel()
        loop = asyncio.get_running_loop()
        self._timers[partition] = due_ms, loop.call_later(seconds, self._on_timer, partition)

    def _on_timer(self, partition: int) -> None:
        self._timers.pop(partition, None)
        self._wake(partition)
