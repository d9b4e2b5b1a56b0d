"""When to ask a silent peer for a sign of life, and when to give it up."""

from enum import Enum

from holdfast.transport.api import ConnectionBounds


class Verdict(Enum):
    """What a look at a connection leads to."""

    FINE = "fine"
    ASK = "ask"  # nothing was heard since the last look: send a ping
    SILENT = "silent"  # asked, and nothing was heard for too long
    STUCK = "stuck"  # it talks, but does not read what waits for it


class Keepalive:
    """Looks at two numbers at every tick. A tick that comes late makes nobody look dead.

    A peer that is alive answers a ping between any two of its own turns, so silence means that its
    process is stopped, or that the way to it is gone. A connection that is half open looks the
    same.
    """

    def __init__(self, bounds: ConnectionBounds) -> None:
        self._ticks_max = bounds.silent_ticks_max
        self._heard = 0
        self._silent_ticks = 0
        self._unsent = 0
        self._stuck_ticks = 0

    def tick(self, heard: int, unsent: int) -> Verdict:
        """`heard` bytes came so far, `unsent` bytes were written and have not left yet."""
        self._stuck_ticks = self._stuck_ticks + 1 if 0 < self._unsent <= unsent else 0
        self._unsent = unsent
        if heard != self._heard:
            self._heard, self._silent_ticks = heard, 0
            return Verdict.STUCK if self._stuck_ticks >= self._ticks_max else Verdict.FINE
        self._silent_ticks += 1
        if self._silent_ticks > self._ticks_max:
            return Verdict.SILENT
        return Verdict.ASK if self._silent_ticks == 1 else Verdict.FINE
