"""The schedules of a partition."""

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.timers.values import Schedule
from holdfast.state import PartitionState
from holdfast.state.keys import TEXT, U64


class StoredSchedule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A schedule with its key and its next due time."""

    schedule: Schedule
    next_due_ms: int
    fired: int = 0  # how often it has fired


class Schedules:
    """All schedules, by key and by the id that people gave them."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.schedules = state.family(Tag.SCHEDULES, U64, StoredSchedule)
        self._keys = state.family(Tag.SCHEDULE_KEYS, TEXT, int)

    def key_of(self, id_: str) -> int | None:
        return self._keys.get(id_)

    def add(self, key: int, schedule: Schedule, next_due_ms: int) -> None:
        self.remove(schedule.id)
        self.schedules.put(key, StoredSchedule(schedule, next_due_ms))
        self._keys.put(schedule.id, key)
        if next_due_ms:
            self._due.add(next_due_ms, DueKind.SCHEDULE, key)

    def fired(self, key: int, next_due_ms: int) -> None:
        self._go_on(key, next_due_ms, 1)

    def skipped(self, key: int, next_due_ms: int) -> None:
        self._go_on(key, next_due_ms, 0)

    def _go_on(self, key: int, next_due_ms: int, firings: int) -> None:
        stored = self.schedules.get(key)
        assert stored is not None
        self._due.remove(stored.next_due_ms, DueKind.SCHEDULE, key)
        fired = stored.fired + firings
        self.schedules.put(key, StoredSchedule(stored.schedule, next_due_ms, fired))
        if next_due_ms:
            self._due.add(next_due_ms, DueKind.SCHEDULE, key)

    def remove(self, id_: str) -> None:
        key = self._keys.get(id_)
        if key is None:
            return
        stored = self.schedules.get(key)
        assert stored is not None
        self._due.remove(stored.next_due_ms, DueKind.SCHEDULE, key)
        self.schedules.delete(key)
        self._keys.delete(id_)
