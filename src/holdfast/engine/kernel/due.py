"""What is due in a step. If that cannot be told, everything else goes on, and it is asked again."""

from collections.abc import Sequence

from holdfast.engine.kernel.careful import reason_of
from holdfast.engine.kernel.domain import DueCommand
from holdfast.engine.kernel.step import DueSource
from holdfast.limits import DUE_BUG_PAUSE_MS, STEP_DUE_MAX


class DueTurn:
    """Asks a source of due commands, which may throw."""

    def __init__(self, source: DueSource) -> None:
        self.source = source
        self._again_ms: int | None = None  # when to look again at a source that threw

    def next_ms(self, now_ms: int) -> int | None:
        """When time will next give a command."""
        if self._again_ms is not None:
            return self._again_ms
        try:
            return self.source.next_due_ms()
        except Exception:  # the next step says so, and tells when to look again
            return now_ms

    def now(self, now_ms: int, bugs: list[str]) -> Sequence[DueCommand]:
        """What is due."""
        if self._again_ms is not None and now_ms < self._again_ms:
            return ()
        try:
            due = self.source.due(now_ms, STEP_DUE_MAX)
            self.source.next_due_ms()
        except Exception as error:
            bugs.append(f"What is due cannot be told: {reason_of(error)}")
            self._again_ms = now_ms + DUE_BUG_PAUSE_MS
            return ()
        self._again_ms = None
        return due
