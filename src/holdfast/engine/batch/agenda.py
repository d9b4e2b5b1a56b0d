"""What a partition wants done for its operations: their driver reads it from the state.

The state decides what may happen; time, selecting and live work are outside. So a driver looks
here, does what is wanted, and looks again when the partition says that something has changed.
"""

from typing import NamedTuple

from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.state import Batches, Selecting, is_draining
from holdfast.engine.batch.values import (
    BatchOperationChunkIntent,
    BatchOperationIntent,
    BatchOperationState,
    Chunk,
    Initialization,
    InitializationFailure,
    OperationRef,
    PartitionErrorType,
)
from holdfast.engine.kernel import Command
from holdfast.errors import HoldfastError, InvalidArgument, ResourceExhausted
from holdfast.records import ValueType

BATCH_OPERATION = ValueType.BATCH_OPERATION
_I, _S = BatchOperationIntent, BatchOperationState


class Agenda(NamedTuple):
    """What is wanted now."""

    selecting: tuple[int, ...]  # operations whose next page is to be had, the most urgent first
    executing: int  # the operation whose items are next; 0: none
    later_ms: int | None  # when something else will be, if nothing happens before


def agenda(batches: Batches, now_ms: int) -> Agenda:
    """What a partition wants, by the state that it has now."""
    later: list[int] = []
    selecting: list[tuple[int, int]] = []
    for key, row in batches.pending():
        stored = batches.operations.get(key)
        assert stored is not None, "what is pending is known"
        if stored.state is _S.SUSPENDED:
            continue
        if row.due_ms > now_ms:
            later.append(row.due_ms)
        else:
            selecting.append((-stored.operation.priority, key))
    executing = 0
    for key in batches.ready():
        stored, part = batches.operations.get(key), batches.parts.get(key)
        assert stored is not None and part is not None, "what is ready has items"
        if part.next_us <= now_ms * 1_000 or is_draining(stored, part):
            executing = key
            break
        later.append(-(-part.next_us // 1_000))
    keys = tuple(key for _, key in sorted(selecting))
    return Agenda(keys, executing, min(later, default=None))


# --- the commands that a driver gives ---------------------------------------------------------


def starting(key: int) -> Command:
    """Before the first page."""
    return Command(BATCH_OPERATION, _I.START, key, OperationRef(key))


def taking(key: int, selecting: Selecting, chunks: int, page: ItemPage) -> list[Command]:
    """A page and the cursor behind it, to be submitted together; InvalidArgument for no page."""
    limit, found = selecting.page_items, len(page.items)
    if found > limit or len(page.instances) not in (0, found):
        raise InvalidArgument(
            f"Expected at most {limit} items, each with its instance or none, but found {found}"
            f" with {len(page.instances)}"
        )
    commands: list[Command] = []
    if page.items:
        chunk = Chunk(chunks, selecting.cursor, page.items, page.instances)
        value_type, intent = ValueType.BATCH_OPERATION_CHUNK, BatchOperationChunkIntent.CREATE
        commands.append(Command(value_type, intent, key, chunk))
    value = Initialization(
        selecting.cursor,
        page.next_cursor or "",
        chunks + len(commands),
        selecting.page_items,
        page.next_cursor is None,
    )
    return [*commands, Command(BATCH_OPERATION, _I.CONTINUE_INITIALIZATION, key, value)]


def failing(key: int, selecting: Selecting, chunks: int, error: Exception) -> Command:
    """A page that could not be had. One that was too large is tried again at half its size."""
    is_too_large = isinstance(error, ResourceExhausted)
    if is_too_large and selecting.page_items > 1:
        cursor, half = selecting.cursor, selecting.page_items // 2
        value = Initialization(cursor, cursor, chunks, half, is_last=False)
        return Command(BATCH_OPERATION, _I.CONTINUE_INITIALIZATION, key, value)
    if isinstance(error, HoldfastError):
        type_, code, message = PartitionErrorType.QUERY_FAILED, error.code, error.message
        type_ = PartitionErrorType.RESULT_BUFFER_SIZE_EXCEEDED if is_too_large else type_
    else:
        type_, code = PartitionErrorType.UNKNOWN, "INTERNAL"
        message = f"{type(error).__name__}: {error}"
    value = InitializationFailure(selecting.cursor, type_, code, message)
    return Command(BATCH_OPERATION, _I.FAIL, key, value)
