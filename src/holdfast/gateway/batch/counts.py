"""What batch operations add up to, for the metrics: counted by type and outcome."""

from collections import Counter

from holdfast.clock import Clock
from holdfast.engine.batch.values import BatchOperationEnded, BatchOperationType, Counts
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.batch.pace import Pace
from holdfast.gateway.batch.views import Live
from holdfast.metrics import BatchNumbers
from holdfast.records import partition_of

_OUTCOMES = ("completed", "failed", "skipped", "canceled")
Items = Counter[tuple[str, str]]  # by type and outcome


class BatchCounts:
    """Adds up the operations that ended since the node started, and those that run."""

    def __init__(self, asked: Asked, live: Live, pace: Pace, clock: Clock) -> None:
        self._asked = asked
        self._live = live
        self._pace = pace
        self._clock = clock
        self._ended: Counter[tuple[str, str]] = Counter()  # operations by type and state
        self._items_ended: Items = Counter()
        self._items: Items = Counter()  # as they were told the last time
        self._numbers = BatchNumbers({}, {}, {}, 0.0)

    def ended(self, effect: BatchOperationEnded) -> None:
        """An operation is over: what it did is not in the state any more."""
        if partition_of(effect.key) not in self._asked.near:
            return
        self._ended[str(effect.operation.type), str(effect.end.state)] += 1
        _add(self._items_ended, effect.operation.type, effect.end.counts)

    def numbers(self) -> BatchNumbers:
        """All of it, as it was counted the last time."""
        return self._numbers

    async def count(self) -> None:
        """Counts the operations that this member leads; others count theirs."""
        running: Counter[tuple[str, str]] = Counter()
        items, now, per_second = self._items_ended.copy(), self._clock.monotonic(), 0.0
        led = [
            each for each in await self._live.all() if partition_of(each.key) in self._asked.near
        ]
        counted = await self._live.counts(led)
        for each in led:
            if each.key not in counted:
                continue
            type_, counts = each.operation.type, counted[each.key]
            running[str(type_), str(each.state)] += 1
            _add(items, type_, counts)
            per_second += self._pace.per_second(each.key, now, counts.total - counts.left) or 0.0
        # Between the end of an operation and word of it its items are in neither: a counter that
        # fell for a moment would look as if the node had been started again.
        self._items |= items
        self._numbers = BatchNumbers(
            dict(running), dict(self._ended), dict(self._items), per_second
        )


def _add(items: Items, type_: BatchOperationType, counts: Counts) -> None:
    for outcome in _OUTCOMES:
        if count := getattr(counts, outcome):
            items[str(type_), outcome] += count
