"""What people ask of batch operations: here as the first to hear of it, or after the leader."""

import msgspec

from holdfast.engine.asker import Asker, asker_of
from holdfast.engine.batch.reporting import report_if_done, tell_leader
from holdfast.engine.batch.state import StoredOperation
from holdfast.engine.batch.values import (
    QUEUE,
    BatchesChanged,
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
    Change,
    OperationRef,
    PartitionReport,
    Selection,
    Visible,
)
from holdfast.engine.distribution.distributing import distribute
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Command, Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument
from holdfast.limits import (
    BATCH_OPERATION_BYTES_MAX,
    BATCH_OPERATIONS_MAX,
    BATCH_THROTTLE_MAX,
    PRIORITY_MAX,
    RETRIES_MAX,
)
from holdfast.records import Record, ValueType

BATCH_OPERATION = ValueType.BATCH_OPERATION
_I, _S, _T = BatchOperationIntent, BatchOperationState, BatchOperationType

_replace = msgspec.structs.replace
_encode = msgspec.msgpack.Encoder().encode
_decode_filter = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

# What can be done in which state; a canceled operation counts as gone.
ALLOWED: dict[BatchOperationIntent, frozenset[BatchOperationState]] = {
    _I.SUSPEND: frozenset({_S.CREATED, _S.ACTIVE}),
    _I.RESUME: frozenset({_S.SUSPENDED}),
    _I.CANCEL: frozenset({_S.CREATED, _S.ACTIVE, _S.SUSPENDED}),
    _I.CHANGE: frozenset({_S.CREATED, _S.ACTIVE, _S.SUSPENDED}),
}
_EVENTS = {_I.SUSPEND: _I.SUSPENDED, _I.RESUME: _I.RESUMED, _I.CANCEL: _I.CANCELED}


# --- a new one --------------------------------------------------------------------------------


def create(turn: Turn[EngineState], command: Record) -> None:
    """A new operation. The partition that takes it leads it."""
    asked: BatchOperation = command.value
    if turn.state.batches.led() >= BATCH_OPERATIONS_MAX:
        reason = (
            f"Expected fewer than {BATCH_OPERATIONS_MAX} batch operations on partition"
            f" {turn.partition}, but so many have not ended"
        )
        return turn.reject(command, Code.RESOURCE_EXHAUSTED, reason)
    try:
        _check(asked, turn.state.partitions)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    key = turn.new_key()
    name = asked.selection.name or f"batch-{key}"
    operation = _replace(
        asked,
        partitions=tuple(sorted(asked.partitions)) or tuple(range(1, turn.state.partitions + 1)),
        selection=Selection(name, asked.selection.positions),
        claims=command.claims,
        visible=visible_to(turn.state, asker_of(command.claims) if command.claims else None),
    )
    _add(turn, key, operation)
    told = Command(BATCH_OPERATION, _I.CREATE, key, operation, command.claims)
    distribute(turn, told, to=operation.partitions, in_queue=QUEUE)


def visible_to(state: EngineState, asker: Asker | None) -> Visible | None:
    """What the asker may see; None without authorization."""
    if asker is None:
        return None
    allowed = state.identities.allowed
    processes = allowed(asker, ResourceType.PROCESS_DEFINITION, (Permission.READ_PROCESS_INSTANCE,))
    types = allowed(asker, ResourceType.TASK, (Permission.READ,))
    return Visible(tuple(sorted(processes)), tuple(sorted(types)))


def follow_create(turn: Turn[EngineState], command: Record) -> None:
    """The leader has a new operation that this partition is part of."""
    if turn.state.batches.operations.get(command.key) is not None:
        reason = f"Expected a new batch operation, but {command.key} is here already"
        return turn.reject(command, Code.ALREADY_EXISTS, reason)
    _add(turn, command.key, command.value)


def _add(turn: Turn[EngineState], key: int, operation: BatchOperation) -> None:
    turn.event(BATCH_OPERATION, _I.CREATED, key, operation)
    turn.effect_once(BatchesChanged(turn.partition))


def _check(asked: BatchOperation, partitions: int) -> None:
    """InvalidArgument for an operation that makes no sense."""
    try:
        is_empty = not _decode_filter(asked.filter)
    except msgspec.MsgspecError as error:
        raise InvalidArgument(f"Expected a filter, but found no JSON object: {error}") from error
    if is_empty:
        raise InvalidArgument("Expected a filter with a condition, but it is empty")
    for type_, plan in (
        (_T.MODIFY_PROCESS_INSTANCE, asked.modification),
        (_T.MIGRATE_PROCESS_INSTANCE, asked.migration),
    ):
        if (asked.type is type_) != (plan is not None):
            found = f"one is there for {asked.type}" if plan is not None else "there is none"
            raise InvalidArgument(f"Expected a plan for {type_} and nothing else, but {found}")
    if unknown := set(asked.partitions) - set(range(1, partitions + 1)):
        raise InvalidArgument(f"Expected partitions 1 to {partitions}, but found {sorted(unknown)}")
    if len(set(asked.partitions)) != len(asked.partitions):
        raise InvalidArgument("Expected each partition once, but one is named twice")
    if not 0 <= asked.retries <= RETRIES_MAX:
        raise InvalidArgument(f"Expected 0 to {RETRIES_MAX} retries, but found {asked.retries}")
    _check_pace(asked.throttle, asked.priority)
    if (size := len(_encode(asked))) > BATCH_OPERATION_BYTES_MAX:
        raise InvalidArgument(
            f"Expected at most {BATCH_OPERATION_BYTES_MAX} bytes of filter and plan,"
            f" but found {size}"
        )


def _check_pace(throttle: int | None, priority: int | None) -> None:
    if throttle is not None and not 0 <= throttle <= BATCH_THROTTLE_MAX:
        raise InvalidArgument(
            f"Expected a throttle of 0 to {BATCH_THROTTLE_MAX} items/s, but found {throttle}"
        )
    if priority is not None and abs(priority) > PRIORITY_MAX:
        raise InvalidArgument(
            f"Expected a priority from {-PRIORITY_MAX} to {PRIORITY_MAX}, but found {priority}"
        )


# --- one that is there ------------------------------------------------------------------------


def control(turn: Turn[EngineState], command: Record) -> None:
    """SUSPEND, RESUME, CANCEL: in effect here with this record, and on its way to the others."""
    stored = _led(turn, command)
    if stored is not None:
        others = _others(turn, command.key, stored)
        _enter(turn, command.key, _I(command.intent))
        _tell(turn, command, others, OperationRef(command.key))


def follow_control(turn: Turn[EngineState], command: Record) -> None:
    """The leader was asked to SUSPEND or RESUME an operation."""
    key: int = command.value.operation
    if _allowed(turn, command, key) is not None:
        _enter(turn, key, _I(command.intent))


def follow_cancel(turn: Turn[EngineState], command: Record) -> None:
    """The leader was asked to CANCEL an operation.

    Where it is not known this partition has reported already, or never will, because a person
    skipped its creation here. The leader takes the first report only, so one more costs nothing,
    and every canceled operation ends.
    """
    key: int = command.value.operation
    stored = turn.state.batches.operations.get(key)
    if stored is None:
        tell_leader(turn, key, PartitionReport(turn.partition))
    elif _allowed(turn, command, key) is not None:
        _enter(turn, key, _I.CANCEL)


def change(turn: Turn[EngineState], command: Record) -> None:
    """Another throttle or priority, from the next items on."""
    stored = _led(turn, command)
    if stored is None:
        return None
    asked: Change = command.value
    try:
        _check_pace(asked.throttle, asked.priority)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    _change(turn, command.key, stored, asked)
    told = Change(command.key, asked.throttle, asked.priority)
    _tell(turn, command, _others(turn, command.key, stored), told)
    return None


def follow_change(turn: Turn[EngineState], command: Record) -> None:
    """The leader was asked to CHANGE an operation."""
    asked: Change = command.value
    stored = _allowed(turn, command, asked.operation)
    if stored is not None:
        _change(turn, asked.operation, stored, asked)


def _change(turn: Turn[EngineState], key: int, stored: StoredOperation, asked: Change) -> None:
    operation = stored.operation
    throttle = operation.throttle if asked.throttle is None else asked.throttle
    priority = operation.priority if asked.priority is None else asked.priority
    turn.event(BATCH_OPERATION, _I.CHANGED, key, Change(key, throttle, priority))
    turn.effect_once(BatchesChanged(turn.partition))


def _enter(turn: Turn[EngineState], key: int, intent: BatchOperationIntent) -> None:
    turn.event(BATCH_OPERATION, _EVENTS[intent], key, OperationRef(key))
    turn.effect_once(BatchesChanged(turn.partition))
    if intent is _I.CANCEL:
        report_if_done(turn, key)


def _others(turn: Turn[EngineState], key: int, stored: StoredOperation) -> list[int]:
    """The partitions that are not done with an operation."""
    is_reported = turn.state.batches.is_reported
    return [each for each in stored.operation.partitions if not is_reported(key, each)]


def _tell(
    turn: Turn[EngineState], command: Record, others: list[int], value: OperationRef | Change
) -> None:
    told = Command(BATCH_OPERATION, _I(command.intent), turn.new_key(), value, command.claims)
    distribute(turn, told, to=others, in_queue=QUEUE)


def _led(turn: Turn[EngineState], command: Record) -> StoredOperation | None:
    """The operation that this partition leads, if what is asked can be done; else rejects it."""
    if not turn.state.batches.leads(command.key):
        _unknown(turn, command, command.key)
        return None
    return _allowed(turn, command, command.key)


def _allowed(turn: Turn[EngineState], command: Record, key: int) -> StoredOperation | None:
    stored = turn.state.batches.operations.get(key)
    intent = _I(command.intent)
    if stored is None or stored.state is _S.CANCELED:
        _unknown(turn, command, key)
    elif stored.state not in ALLOWED[intent]:
        states = " or ".join(sorted(ALLOWED[intent]))
        reason = f"Expected operation {key} to be {states}, but it is {stored.state}"
        turn.reject(command, Code.INVALID_STATE, reason)
    else:
        return stored
    return None


def _unknown(turn: Turn[EngineState], command: Record, key: int) -> None:
    reason = f"There is no batch operation with key {key} that has not ended"
    turn.reject(command, Code.NOT_FOUND, reason)
