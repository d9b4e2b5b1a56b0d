"""Doing items: a few in a step, each for itself, their outcomes on the log with what they did."""

import msgspec

from holdfast.engine.batch.items import Items
from holdfast.engine.batch.reporting import report_if_done
from holdfast.engine.batch.state import OperationPart, StoredOperation, is_draining
from holdfast.engine.batch.values import (
    BatchesChanged,
    BatchOperation,
    BatchOperationExecutionIntent,
    BatchOperationState,
    Execute,
    Executed,
    ItemFailure,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import (
    BATCH_ERROR_CHARS_MAX,
    BATCH_EXECUTE_BYTES_MAX,
    BATCH_EXECUTE_ITEMS_MAX,
    BATCH_EXECUTE_RECORDS_MAX,
    BATCH_PAGE_ITEMS_MAX,
    BATCH_THROTTLE_STEP_MS,
)
from holdfast.records import Record, ValueType

_EXECUTION = ValueType.BATCH_OPERATION_EXECUTION
_S = BatchOperationState


def execute(turn: Turn[EngineState], command: Record) -> None:
    """The next items of an operation."""
    batches = turn.state.batches
    stored, part = batches.operations.get(command.key), batches.parts.get(command.key)
    if stored is None or part is None:
        reason = f"Expected operation {command.key} to have items here, but it has none"
        return turn.reject(command, Code.NOT_FOUND, reason)
    reason = _why_not(turn, command.key, stored, part)
    if reason:
        return turn.reject(command, Code.INVALID_STATE, reason)
    if is_draining(stored, part):
        keys = batches.next_items(command.key, part, BATCH_PAGE_ITEMS_MAX)
        done = Executed(canceled=keys)
    else:
        asked: Execute = command.value
        limit = min(asked.limit or BATCH_EXECUTE_ITEMS_MAX, BATCH_EXECUTE_ITEMS_MAX)
        limit = min(limit, _at_once(stored.operation))
        done = _do(turn, stored.operation, batches.next_items(command.key, part, limit), part)
    turn.event(_EXECUTION, BatchOperationExecutionIntent.EXECUTED, command.key, done)
    turn.answer(done.count, command.key)
    turn.effect_once(BatchesChanged(turn.partition))
    report_if_done(turn, command.key)


def _why_not(
    turn: Turn[EngineState], key: int, stored: StoredOperation, part: OperationPart
) -> str:
    """Why no items may be done now; "" if they may."""
    if stored.state is _S.SUSPENDED:
        return f"Expected operation {key} to be ACTIVE, but it is SUSPENDED"
    if is_draining(stored, part):
        return ""
    if not part.is_selected:
        return f"Expected the items of operation {key} to be known, but not all are"
    if part.next_us > turn.now_ms * 1_000:
        return f"Expected the throttle of operation {key} to let items through, but it does not yet"
    return ""


def _do(
    turn: Turn[EngineState], operation: BatchOperation, keys: tuple[int, ...], part: OperationPart
) -> Executed:
    items = Items(turn, operation)
    items.fetch(keys)
    completed: list[int] = []
    failed: list[ItemFailure] = []
    skipped: list[int] = []
    records_max, size_bytes = len(turn.records) + BATCH_EXECUTE_RECORDS_MAX, 0
    for key in keys:
        written = len(turn.records)
        refused = items.do(key)
        size_bytes += items.weight_bytes(written)
        if refused is None:
            completed.append(key)
        elif refused.code is Code.NOT_FOUND and items.is_gone(key):
            skipped.append(key)
        else:
            failed.append(
                ItemFailure(key, refused.code, refused.reason[:BATCH_ERROR_CHARS_MAX])
            )  # fmt: skip
        if len(turn.records) > records_max or size_bytes > BATCH_EXECUTE_BYTES_MAX:
            break
    done = Executed(tuple(completed), tuple(failed), tuple(skipped))
    next_us = _next_us(operation, part, turn.now_ms, done.count)
    return msgspec.structs.replace(done, next_us=next_us)


# --- the throttle -----------------------------------------------------------------------------
# It is for the whole operation, and each partition has an equal share of it: what one does not use
# the others do not get, so it is never exceeded.


def _at_once(operation: BatchOperation) -> int:
    """How many items may be done together: about as many as come in a tenth of a second."""
    if not operation.throttle:
        return BATCH_EXECUTE_ITEMS_MAX
    share = operation.throttle * BATCH_THROTTLE_STEP_MS // (1_000 * len(operation.partitions))
    return max(1, share)


def _next_us(operation: BatchOperation, part: OperationPart, now_ms: int, count: int) -> int:
    """When the items after so many may be done."""
    if not operation.throttle:
        return 0
    pause_us = count * 1_000_000 * len(operation.partitions) // operation.throttle
    return max(part.next_us, now_ms * 1_000) + pause_us
