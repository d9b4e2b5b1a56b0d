"""How a partition comes to know its items: page by page, and each page once.

The selector hands over a page as a chunk and, right behind it in one append, the cursor of the
next. Both name the cursor that the page began at. So the log has both or none, and a page that
comes twice is not taken twice.
"""

from holdfast.engine.batch.reporting import report_if_done
from holdfast.engine.batch.state import Selecting
from holdfast.engine.batch.values import (
    BatchesChanged,
    BatchOperationChunkIntent,
    BatchOperationIntent,
    BatchOperationState,
    Chunk,
    Initialization,
    InitializationFailure,
    OperationRef,
    PartitionErrorType,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import (
    BATCH_ATTEMPTS_MAX,
    BATCH_PAGE_ITEMS_MAX,
    BATCH_PARTITION_ERROR_CHARS_MAX,
    BATCH_RETRY_MS,
    BATCH_RETRY_MS_MAX,
)
from holdfast.records import Record, ValueType

BATCH_OPERATION = ValueType.BATCH_OPERATION
_I, _S = BatchOperationIntent, BatchOperationState

# Asking again gives the same answer.
_HOPELESS = frozenset({Code.FORBIDDEN, Code.UNAUTHORIZED, Code.NOT_FOUND, Code.INVALID_ARGUMENT})


def start(turn: Turn[EngineState], command: Record) -> None:
    """This partition begins to select its items."""
    batches = turn.state.batches
    stored, part = batches.operations.get(command.key), batches.parts.get(command.key)
    if stored is None or part is None or batches.selecting(command.key) is None:
        return _reject_unknown(turn, command)
    if stored.state is _S.SUSPENDED:
        return _reject_state(turn, command, _S.CREATED, stored.state)
    if part.is_started:
        return _reject_state(turn, command, _S.CREATED, "started already")
    turn.event(BATCH_OPERATION, _I.STARTED, command.key, OperationRef(command.key))
    turn.effect_once(BatchesChanged(turn.partition))


def add_chunk(turn: Turn[EngineState], command: Record) -> None:
    """The items of a page. The cursor behind them follows with the next command."""
    chunk: Chunk = command.value
    if _page(turn, command, chunk.cursor, chunk.number) is None:
        return None
    stored = turn.state.batches.operations.get(command.key)
    assert stored is not None
    if not 0 < len(chunk.items) <= BATCH_PAGE_ITEMS_MAX:
        reason = f"Expected 1 to {BATCH_PAGE_ITEMS_MAX} items, but found {len(chunk.items)}"
        return turn.reject(command, Code.INVALID_ARGUMENT, reason)
    if chunk.instances and len(chunk.instances) != len(chunk.items):
        reason = f"Expected {len(chunk.items)} instances, but found {len(chunk.instances)}"
        return turn.reject(command, Code.INVALID_ARGUMENT, reason)
    value_type, intent = ValueType.BATCH_OPERATION_CHUNK, BatchOperationChunkIntent.CREATED
    created = Chunk(chunk.number, chunk.cursor, chunk.items, chunk.instances, stored.operation.type)
    turn.event(value_type, intent, command.key, created)


def go_on(turn: Turn[EngineState], command: Record) -> None:
    """How far the selection has come, or that its pages are to be smaller."""
    page: Initialization = command.value
    if _page(turn, command, page.cursor, page.chunks) is None:
        return None
    if not 0 < page.page_items <= BATCH_PAGE_ITEMS_MAX:
        reason = f"Expected pages of 1 to {BATCH_PAGE_ITEMS_MAX}, but found {page.page_items}"
        return turn.reject(command, Code.INVALID_ARGUMENT, reason)
    turn.event(BATCH_OPERATION, _I.INITIALIZATION_CONTINUED, command.key, page)
    turn.effect_once(BatchesChanged(turn.partition))
    report_if_done(turn, command.key)


def fail(turn: Turn[EngineState], command: Record) -> None:
    """A page could not be had: it is tried again after a pause, unless that is of no use."""
    failure: InitializationFailure = command.value
    selecting = _page(turn, command, failure.cursor, None)
    if selecting is None:
        return
    attempts = selecting.attempts + 1
    is_final = (
        attempts >= BATCH_ATTEMPTS_MAX
        or failure.code in _HOPELESS
        or failure.type is PartitionErrorType.RESULT_BUFFER_SIZE_EXCEEDED
    )
    due_ms = 0 if is_final else turn.now_ms + retry_ms(attempts)
    message = failure.message[:BATCH_PARTITION_ERROR_CHARS_MAX]
    failed = InitializationFailure(
        failure.cursor, failure.type, failure.code, message, attempts, due_ms
    )
    turn.event(BATCH_OPERATION, _I.FAILED, command.key, failed)
    turn.effect_once(BatchesChanged(turn.partition))
    report_if_done(turn, command.key)


def retry_ms(attempts: int) -> int:
    """How long to wait after so many failures in a row."""
    return min(BATCH_RETRY_MS << (attempts - 1), BATCH_RETRY_MS_MAX)


def _page(
    turn: Turn[EngineState], command: Record, cursor: str, chunks: int | None
) -> Selecting | None:
    """The selection that a page is the next one of; else rejects the command."""
    batches = turn.state.batches
    stored, part = batches.operations.get(command.key), batches.parts.get(command.key)
    selecting = batches.selecting(command.key)
    if stored is None or part is None or selecting is None:
        _reject_unknown(turn, command)
    elif stored.state is not _S.ACTIVE:
        _reject_state(turn, command, _S.ACTIVE, stored.state)
    elif not part.is_started:
        _reject_state(turn, command, _S.ACTIVE, "not started here")
    elif cursor != selecting.cursor or (chunks is not None and chunks != part.chunks):
        reason = (
            f"Expected the page at {selecting.cursor!r} with {part.chunks} chunks before it,"
            f" but it is the one at {cursor!r} with {chunks}"
        )
        turn.reject(command, Code.ALREADY_EXISTS, reason)
    else:
        return selecting
    return None


def _reject_unknown(turn: Turn[EngineState], command: Record) -> None:
    reason = f"Expected operation {command.key} to select items here, but it does not"
    turn.reject(command, Code.NOT_FOUND, reason)


def _reject_state(
    turn: Turn[EngineState], command: Record, wanted: BatchOperationState, found: str
) -> None:
    reason = f"Expected operation {command.key} to be {wanted}, but it is {found}"
    turn.reject(command, Code.INVALID_STATE, reason)
