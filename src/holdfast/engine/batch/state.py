"""The batch operations of a partition.

An operation's row is on its leader until it has ended, and on the others until they have reported.
The part of it that a partition does has a row of its own, which changes at every step: how many
items have which outcome, and which are next. While its items are being selected the part is also
among the pending; as soon as they may be executed it is among the ready.
"""

import struct
from collections.abc import Iterator

import msgspec

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationState,
    Chunk,
    Counts,
    Executed,
    Initialization,
    InitializationFailure,
    PartitionError,
    PartitionReport,
)
from holdfast.engine.families import Tag
from holdfast.limits import BATCH_PAGE_ITEMS_MAX
from holdfast.records import partition_of
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import U64, U64_U64, check_u64

_DRAINING_RANK = 0  # what is only to be counted is over soon, and comes first
_PRIORITY_TOP = 1 << 31  # priorities are stored upside down, so that the highest is scanned first
_KEY_BYTES = 8
_COUNT = 0  # the only row of its family

_S = BatchOperationState


class StoredOperation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An operation as this partition knows it."""

    operation: BatchOperation
    state: BatchOperationState
    reported: int = 0  # on the leader: how many partitions are done


class OperationPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What this partition does of an operation."""

    counts: Counts = Counts()
    chunks: int = 0  # how many were selected
    chunk: int = 0  # the one whose items are next
    place: int = 0  # of the next item in it
    is_started: bool = False
    is_selected: bool = False  # every item is known
    next_us: int = 0  # by the throttle: when the next items may be executed
    error: PartitionError | None = None  # the items could not be selected


class Selecting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the selection of a part has come."""

    cursor: str = ""
    page_items: int = BATCH_PAGE_ITEMS_MAX
    attempts: int = 0  # that failed in a row
    due_ms: int = 0  # when to try again


_replace = msgspec.structs.replace


class Batches:
    """What operations there are, and how far this partition is with each."""

    def __init__(self, state: PartitionState) -> None:
        self.operations = state.family(Tag.BATCH_OPERATION, U64, StoredOperation)
        self.parts = state.family(Tag.BATCH_OPERATION_PARTS, U64, OperationPart)
        self._pending = state.family(Tag.PENDING_BATCH_OPERATIONS, U64, Selecting)
        # (operation, number) -> keys of items. They stay as they are until all have an outcome.
        self._chunks = state.family(Tag.BATCH_OPERATION_CHUNKS, U64_U64, bytes)
        self._ready = state.family(Tag.BATCH_OPERATIONS_READY, U64_U64, bytes)  # (rank, operation)
        self._reports = state.family(Tag.BATCH_OPERATION_REPORTS, U64_U64, PartitionReport)
        self._led = state.family(Tag.BATCH_OPERATIONS_LED, U64, int)  # one row: how many
        self._partition = state.partition

    # --- what can be seen ---------------------------------------------------------------------

    def led(self) -> int:
        """How many operations this partition leads."""
        return self._led.get(_COUNT) or 0

    def leads(self, key: int) -> bool:
        return partition_of(key) == self._partition

    def selecting(self, key: int) -> Selecting | None:
        """How far the selection of an operation's items is, while there is one."""
        return self._pending.get(key)

    def pending(self) -> Iterator[tuple[int, Selecting]]:
        """Operations whose items are to be selected, suspended ones too."""
        return self._pending.scan()

    def ready(self) -> Iterator[int]:
        """Operations that have items to do, the most urgent first."""
        for (_, key), _ in self._ready.scan():
            yield key

    def next_items(self, key: int, part: OperationPart, limit: int) -> tuple[int, ...]:
        """The items that are next, from one chunk."""
        chunk = self._chunks.get((key, part.chunk))
        assert chunk is not None, "what has items left has a chunk"
        count = min(limit, len(chunk) // _KEY_BYTES - part.place)
        return struct.unpack_from(f">{count}Q", chunk, part.place * _KEY_BYTES)

    def is_reported(self, key: int, partition: int) -> bool:
        return self._reports.get((key, partition)) is not None

    def reports(self, key: int) -> tuple[PartitionReport, ...]:
        """What the partitions of an operation have said, in their order."""
        return tuple(report for _, report in self._reports.scan((key,)))

    # --- what appliers change -----------------------------------------------------------------

    def create(self, key: int, operation: BatchOperation) -> None:
        has_part = self._partition in operation.partitions
        state = _S.CREATED if has_part else _S.ACTIVE
        self.operations.insert(key, StoredOperation(operation, state))
        if has_part:
            self.parts.insert(key, OperationPart())
            self._pending.insert(key, Selecting())
        if self.leads(key):
            self._led.put(_COUNT, self.led() + 1)

    def start(self, key: int) -> None:
        stored, part = self._both(key)
        self.parts.put(key, _replace(part, is_started=True))
        self.operations.put(key, _replace(stored, state=_S.ACTIVE))

    def add_chunk(self, key: int, chunk: Chunk) -> None:
        _, part = self._both(key)
        counts = _replace(part.counts, total=part.counts.total + len(chunk.items))
        packed = struct.pack(f">{len(chunk.items)}Q", *chunk.items)
        self._chunks.insert((key, chunk.number), packed)
        self.parts.put(key, _replace(part, counts=counts, chunks=part.chunks + 1))

    def go_on_selecting(self, key: int, page: Initialization) -> None:
        if page.is_last:
            stored, part = self._both(key)
            self._pending.delete(key)
            self._put(key, stored, _replace(part, is_selected=True))
        else:
            self._pending.put(key, Selecting(page.next_cursor, page.page_items))

    def fail(self, key: int, failure: InitializationFailure) -> None:
        if failure.due_ms:
            selecting = self._pending.get(key)
            assert selecting is not None, "what fails is being selected"
            later = _replace(selecting, attempts=failure.attempts, due_ms=failure.due_ms)
            self._pending.put(key, later)
            return
        stored, part = self._both(key)
        self._pending.delete(key)
        error = PartitionError(failure.type, failure.message)
        self._put(key, stored, _replace(part, error=error))

    def suspend(self, key: int) -> None:
        self._enter(key, _S.SUSPENDED)

    def resume(self, key: int) -> None:
        self._enter(key, _S.ACTIVE)

    def cancel(self, key: int) -> None:
        self._enter(key, _S.CANCELED)
        if self._pending.get(key) is not None:
            self._pending.delete(key)

    def change(self, key: int, throttle: int, priority: int) -> None:
        stored = self._stored(key)
        operation = _replace(stored.operation, throttle=throttle, priority=priority)
        part = self.parts.get(key)
        # The pause of the old throttle ends with it. Another priority alone shortens no pause.
        is_free = part is not None and throttle != stored.operation.throttle
        later = _replace(part, next_us=0) if part is not None and is_free else part
        self._put(key, _replace(stored, operation=operation), later)

    def execute(self, key: int, done: Executed) -> None:
        _, part = self._both(key)
        counts = part.counts
        new = Counts(
            counts.total,
            counts.completed + len(done.completed),
            counts.failed + len(done.failed),
            counts.skipped + len(done.skipped),
            counts.canceled + len(done.canceled),
        )
        chunk, place = part.chunk, part.place + counts.left - new.left
        stored = self._chunks.get((key, chunk))
        assert stored is not None, "items were done that are in no chunk"
        if place * _KEY_BYTES == len(stored):
            self._chunks.delete((key, chunk))
            chunk, place = chunk + 1, 0
        part = _replace(part, counts=new, chunk=chunk, place=place, next_us=done.next_us)
        self.parts.put(key, part)

    def report(self, key: int, report: PartitionReport) -> None:
        """A partition is done. If it is this one, its part is over."""
        stored = self._stored(key)
        if report.partition == self._partition:
            part = self.parts.get(key)
            assert part is not None and not part.counts.left, "a part ends with its last item"
            self._put(key, stored, None)
        if self.leads(key):
            self._reports.insert((key, report.partition), report)
            self.operations.put(key, _replace(stored, reported=stored.reported + 1))
        else:
            self.operations.delete(key)

    def end(self, key: int) -> None:
        """Every partition is done: nothing is left of the operation."""
        for report in self.reports(key):
            self._reports.delete((key, report.partition))
        self.operations.delete(key)
        if left := self.led() - 1:
            self._led.put(_COUNT, left)
        else:
            self._led.delete(_COUNT)

    # --- rows that go together ----------------------------------------------------------------

    def _enter(self, key: int, state: BatchOperationState) -> None:
        self._put(key, _replace(self._stored(key), state=state), self.parts.get(key))

    def _put(self, key: int, stored: StoredOperation, part: OperationPart | None) -> None:
        """Writes both rows of an operation, and sees to it that it is ready if it should be."""
        before, old = self._stored(key), self.parts.get(key)
        was = _rank(before, old)
        rank = _rank(stored, part)
        if was != rank:
            if was is not None:
                self._ready.delete((was, key))
            if rank is not None:
                check_u64(rank)
                self._ready.insert((rank, key), EMPTY)
        self.operations.put(key, stored)
        if part is not None:
            self.parts.put(key, part)
        elif old is not None:
            self.parts.delete(key)

    def _stored(self, key: int) -> StoredOperation:
        stored = self.operations.get(key)
        assert stored is not None, "an operation was changed that is not there"
        return stored

    def _both(self, key: int) -> tuple[StoredOperation, OperationPart]:
        part = self.parts.get(key)
        assert part is not None, "a part was changed that is not there"
        return self._stored(key), part


def is_draining(stored: StoredOperation, part: OperationPart) -> bool:
    """Whether the items that are left are not to be done any more, only to be counted."""
    return stored.state is _S.CANCELED or part.error is not None


def _rank(stored: StoredOperation, part: OperationPart | None) -> int | None:
    """Where an operation stands among those that are ready, the smallest first."""
    if part is None or stored.state is _S.SUSPENDED:
        return None
    if is_draining(stored, part):
        return _DRAINING_RANK
    return _PRIORITY_TOP - stored.operation.priority if part.is_selected else None
