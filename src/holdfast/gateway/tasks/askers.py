"""Which workers asked for jobs lately, for the metrics."""

from collections import Counter
from collections.abc import Callable, Iterable

from holdfast.limits import METRIC_WORKER_MS, METRIC_WORKERS_MAX


class Askers:
    """Remembers who asked for jobs of which types, and when."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed  # seconds; only their differences count
        self._asked: dict[str, tuple[float, tuple[str, ...]]] = {}

    def asks(self, worker: str, types: tuple[str, ...], now: float) -> None:
        """A worker asks for jobs, or has waited for them until now."""
        self._asked[worker] = now, types
        if len(self._asked) > METRIC_WORKERS_MAX:
            self._asked = dict(self._lately()[-METRIC_WORKERS_MAX // 2 :])

    def by_type(self, waiting: Iterable[tuple[str, tuple[str, ...]]]) -> Counter[str]:
        """How many workers there are for each type, with those that wait now."""
        known = {worker: types for worker, (_, types) in self._lately()}
        known.update(waiting)
        return Counter(type_ for types in known.values() for type_ in types)

    def _lately(self) -> list[tuple[str, tuple[float, tuple[str, ...]]]]:
        """Those that asked in the last minute, the last one at the end."""
        since = self._elapsed() - METRIC_WORKER_MS / 1_000
        found = [(worker, last) for worker, last in self._asked.items() if last[0] >= since]
        return sorted(found, key=lambda each: each[1][0])
