"""What batch operations add up to, for the metrics: counted by type and outcome."""

from collections import Counter

from holdfast.clock import Clock
from holdfast.engine.batch.values import BatchOperationEnded, BatchOperationType, Counts
from holdfast.gateway.batch.views import Live
from holdfast.gateway.batch_pace import Pace
from holdfast.metrics import BatchNumbers

_OUTCOMES = ("completed", "failed", "skipped", "canceled")
Items = Counter[tuple[str, str]]  # by type and outcome


class BatchCounts:
    """Adds up the operations that ended since the node started, and those that run."""

    def __init__(self, live: Live, pace: Pace, clock: Clock) -> None:
        self._live = live
        self._pace = pace
        self._clock = clock
        self._ended: Counter[tuple[str, str]] = Counter()  # operations by type and state
        self._items_ended: Items = Counter()
        self._items: Items = Counter()  # as they were told the last time

    def ended(self, effect: BatchOperationEnded) -> None:
        """An operation is over: what it did is not in the state any more."""
        self._ended[str(effect.operation.type), str(effect.end.state)] += 1
        _add(self._items_ended, effect.operation.type, effect.end.counts)

    def numbers(self) -> BatchNumbers:
        """All of it, as it is now."""
        running: Counter[tuple[str, str]] = Counter()
        items, now, per_second = self._items_ended.copy(), self._clock.monotonic(), 0.0
        for key, stored in self._live.all().items():
            type_ = stored.operation.type
            running[str(type_), str(stored.state)] += 1
            counts = self._live.counts(key, stored)
            _add(items, type_, counts)
            per_second += self._pace.per_second(key, now, counts.total - counts.left) or 0.0
        # Between the end of an operation and word of it its items are in neither: a counter that
        # fell for a moment would look as if the node had been started again.
        self._items |= items
        return BatchNumbers(dict(running), dict(self._ended), dict(self._items), per_second)


def _add(items: Items, type_: BatchOperationType, counts: Counts) -> None:
    for outcome in _OUTCOMES:
        if count := getattr(counts, outcome):
            items[str(type_), outcome] += count
