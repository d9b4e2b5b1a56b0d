"""How fast operations go: what was done at a few moments of the last seconds."""

from collections import deque

from holdfast.limits import BATCH_RATE_SAMPLE_MS, BATCH_RATE_SAMPLES


class Pace:
    """Notes how far operations are, now and then."""

    def __init__(self) -> None:
        self._notes: dict[int, deque[tuple[float, int]]] = {}
        self._next = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether to note now."""
        return now >= self._next

    def note(self, now: float, done: dict[int, int]) -> None:
        """So many items of each operation that runs have an outcome."""
        self._next = now + BATCH_RATE_SAMPLE_MS / 1_000
        for key in self._notes.keys() - done.keys():
            del self._notes[key]
        for key, count in done.items():
            self._notes.setdefault(key, deque(maxlen=BATCH_RATE_SAMPLES)).append((now, count))

    def per_second(self, key: int, now: float, done: int) -> float | None:
        """Items a second between the oldest note and now; None if it is too early to tell."""
        notes = self._notes.get(key)
        if not notes:
            return None
        oldest = BATCH_RATE_SAMPLES * BATCH_RATE_SAMPLE_MS / 1_000
        started, before = next((each for each in notes if now - each[0] <= oldest), notes[-1])
        seconds = now - started
        return (done - before) / seconds if seconds >= BATCH_RATE_SAMPLE_MS / 1_000 else None
