"""Whether a subscriber may be given traffic: once, when it has caught up, and never back."""

from holdfast.limits import CONTENT_READY_FORCED_MS, CONTENT_READY_IDLE_MS


class ReadyCheck:
    """Ready when it was idle for ten seconds, or after five minutes of whatever.

    >>> check = ReadyCheck(now=0.0)
    >>> check.idle(1.0)
    >>> check.is_ready(10.9), check.is_ready(11.0)
    (False, True)
    """

    def __init__(
        self,
        now: float,
        idle_ms: int = CONTENT_READY_IDLE_MS,
        forced_ms: int = CONTENT_READY_FORCED_MS,
    ) -> None:
        self._idle_seconds = idle_ms / 1000
        self._forced_at = now + forced_ms / 1000
        self._idle_since: float | None = None
        self._ready = False

    def busy(self, now: float) -> None:
        """It has something to do."""
        if self._idle_since is not None:
            self.is_ready(now)
            self._idle_since = None

    def idle(self, now: float) -> None:
        """It has everything that there is."""
        if self._idle_since is None:
            self._idle_since = now

    def is_ready(self, now: float) -> bool:
        since = self._idle_since
        if not self._ready:
            settled = since is not None and now >= since + self._idle_seconds
            self._ready = settled or now >= self._forced_at
        return self._ready

    def due_seconds(self, now: float) -> float:
        """How long until it is ready if nothing happens; for ever if it is already."""
        if self.is_ready(now):
            return float("inf")
        since = self._idle_since
        settled = self._forced_at if since is None else since + self._idle_seconds
        return max(min(settled, self._forced_at) - now, 0.0)
