"""Due dates that rest: those whose commands were refused, and leases after a jump of the clock.

A command that throws, or is refused, leaves its due date where it is. It is tried again after a
pause that doubles. Nothing of this is state: the log has every try, and after a restart the pauses
begin anew.
"""

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.engine.due.dates import Due, DueDates
from holdfast.limits import DUE_BUG_PAUSE_MS, DUE_BUG_PAUSE_MS_MAX


class _Pause(NamedTuple):
    until_ms: int
    pause_ms: int


class Setbacks:
    """Which due dates rest, and until when; what else is due is not kept waiting by them."""

    def __init__(self, dates: DueDates) -> None:
        self._dates = dates
        self._pauses: dict[Due, _Pause] = {}

    def __len__(self) -> int:
        return len(self._pauses)

    def __contains__(self, row: Due) -> bool:
        return row in self._pauses

    def put_off(self, rows: Iterable[Due], now_ms: int) -> None:
        """The command that stood for these was refused."""
        for row in rows:
            known = self._pauses.get(row)
            pause_ms = DUE_BUG_PAUSE_MS if known is None else known.pause_ms * 2
            pause_ms = min(pause_ms, DUE_BUG_PAUSE_MS_MAX)
            self._pauses[row] = _Pause(now_ms + pause_ms, pause_ms)

    def rest(self, row: Due, until_ms: int, now_ms: int) -> None:
        """It is not due before that, whatever its date says."""
        self._pauses[row] = _Pause(until_ms, until_ms - now_ms)

    def is_resting(self, row: Due, now_ms: int) -> bool:
        pause = self._pauses.get(row)
        # A clock that was set back must not prolong it.
        return pause is not None and now_ms < pause.until_ms <= now_ms + pause.pause_ms

    def next_due_ms(self) -> int | None:
        """When the first pause is over, or something that does not rest is due."""
        self._pauses = {row: pause for row, pause in self._pauses.items() if self._dates.has(row)}
        next_ms = self._dates.next_due_ms_but(self._pauses)
        ends = [pause.until_ms for pause in self._pauses.values()]
        return min(ends if next_ms is None else [next_ms, *ends], default=None)
