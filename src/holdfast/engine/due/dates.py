"""Due dates: one ordered list of all that waits for time on a partition.

A domain adds (when, what kind, which key); once it is due the kernel turns it into a command. The
next due date is known without looking at anything that is not due.
"""

from collections.abc import Container
from enum import IntEnum

from holdfast.engine.families import Tag
from holdfast.engine.kernel.domain import Due
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import U64_U8_U64, check_u64


class DueKind(IntEnum):
    """What becomes due. The numbers are on disk."""

    JOB = 1  # a delay or a back-off is over
    LEASE = 2  # a worker did not come back
    BUCKET = 3  # outcomes and idempotency keys whose time is over
    SCHEDULE = 4  # a schedule fires
    TIMER = 5  # an element of a process waits for it
    CONTINUE = 6  # work that did not fit one step continues
    START_TIMER = 7  # a process starts
    MESSAGE = 8  # a message is kept no longer
    PARCEL = 9  # nothing was heard of parcels to another partition
    DISTRIBUTION = 10  # nothing was heard of commands that were distributed to a partition
    TREE = 11  # the deferred work of a tree of calls continues
    REQUESTS = 12  # answers to requests whose time is over
    TRANSACTION = 13  # it is open for too long, or decided and kept long enough


class DueDates:
    """The due dates of a partition, soonest first."""

    def __init__(self, state: PartitionState) -> None:
        self._rows = state.family(Tag.DUE, U64_U8_U64, bytes)
        # Nothing is due before `_first`: saves walking over graves. While it is `_known` that
        # `_first` is there, or that there is nothing at all, the next due date is told without
        # looking at the rows.
        self._first: Due | None = None
        self._known = False
        state.when_undone(self._forget)

    def _forget(self) -> None:
        self._first, self._known = None, False

    def add(self, due_ms: int, kind: DueKind, key: int) -> None:
        check_u64(due_ms)
        row = (due_ms, kind, key)
        self._rows.insert(row, EMPTY)
        if self._first is not None:
            if row < self._first:
                self._first, self._known = row, True
        elif self._known:
            self._first = row

    def remove(self, due_ms: int, kind: DueKind, key: int) -> None:
        row = (due_ms, kind, key)
        self._rows.delete(row)
        if row == self._first:
            self._known = False

    def due(self, now_ms: int, limit: int) -> list[Due]:
        """What is due at this time, soonest first."""
        next_ms = self.next_due_ms()
        if next_ms is None or next_ms > now_ms:
            return []
        found: list[Due] = []
        for row, _ in self._rows.scan(start=self._first):
            if row[0] > now_ms or len(found) >= limit:
                break
            found.append(row)
        return found

    def has(self, row: Due) -> bool:
        return self._rows.get(row) is not None

    def next_due_ms_but(self, left_out: Container[Due]) -> int | None:
        """When the next thing is due that is none of these."""
        rows = self._rows.scan(start=self._first)
        return next((row[0] for row, _ in rows if row not in left_out), None)

    def next_due_ms(self) -> int | None:
        """When the next thing is due."""
        if not self._known:
            self._first = next(iter(self._rows.first_keys((), self._first, 1)), None)
            self._known = True
        return None if self._first is None else self._first[0]
