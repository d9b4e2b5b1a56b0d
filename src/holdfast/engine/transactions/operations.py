"""The operations of a transaction: done as the commands that they are, tried, or reserved."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.engine.jobs.values import Completion, NewJob
from holdfast.engine.kernel import Turn
from holdfast.engine.kernel.turn import FROM_OUTSIDE
from holdfast.engine.messages.values import NewMessage, id_of
from holdfast.engine.processes.instances import remembered_key
from holdfast.engine.processes.values import NewInstance
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import (
    COMPLETE,
    PROMISED,
    RESERVED_JOB,
    RESERVED_KEY,
    RESERVED_MESSAGE,
    PreparedPart,
    RefusedOperation,
    ReservedJob,
    TransactionOperation,
)
from holdfast.errors import Code
from holdfast.limits import BATCH_ERROR_CHARS_MAX
from holdfast.records import Record, RecordKind

Claims = dict[str, Any] | None

_encode = msgspec.msgpack.Encoder().encode
_replace = msgspec.structs.replace


class PartitionOperations(NamedTuple):
    """The operations of one partition, with their places in the transaction."""

    places: tuple[int, ...]
    operations: tuple[TransactionOperation, ...]


def part_of(operations: Sequence[TransactionOperation], partition: int) -> PartitionOperations:
    """What a partition has of a transaction."""
    found = [(at, each) for at, each in enumerate(operations) if each.partition == partition]
    return PartitionOperations(tuple([at for at, _ in found]), tuple([each for _, each in found]))


def do_all(
    turn: Turn[EngineState], part: PartitionOperations, claims: Claims = None
) -> tuple[tuple[int, ...], tuple[RefusedOperation, ...]]:
    """Does operations one after the other: their keys, and why some could not be done."""
    keys: list[int] = []
    refused: list[RefusedOperation] = []
    for place, operation in zip(part.places, part.operations, strict=True):
        reply = turn.tried(_command(turn, operation, claims))
        keys.append(reply.key)
        rejection = reply.rejection
        if rejection is not None:
            reason = rejection.reason[:BATCH_ERROR_CHARS_MAX]
            refused.append(RefusedOperation(place, rejection.code, reason, reply.key))
        elif _kind(operation) == COMPLETE and turn.state.jobs.jobs.get(operation.key) is not None:
            reason = f"Expected a result that job {operation.key} can end with, but it failed by it"
            code = Code.INVALID_ARGUMENT
            refused.append(RefusedOperation(place, code, reason, operation.key))
    return tuple(keys), tuple(refused)


def refusals(
    turn: Turn[EngineState], part: PartitionOperations, claims: Claims
) -> tuple[RefusedOperation, ...]:
    """Why operations could not be done now: they are done, and all of it is taken back."""
    mark = turn.mark()
    _, refused = do_all(turn, part, claims)
    turn.take_back(mark)
    return refused


def unreservable(
    turn: Turn[EngineState], part: PartitionOperations
) -> tuple[RefusedOperation, ...]:
    """Jobs that cannot be held for another partition: their process may end them at any time."""
    found: list[RefusedOperation] = []
    for place, operation in zip(part.places, part.operations, strict=True):
        if _kind(operation) != COMPLETE:
            continue
        job = turn.state.jobs.jobs.get(operation.key)
        if job is not None and job.submitted.element_key:
            reason = (
                f"Job {operation.key} belongs to process instance {job.submitted.instance_key}:"
                " a transaction completes such jobs on one partition only"
            )
            found.append(RefusedOperation(place, Code.INVALID_STATE, reason, operation.key))
    return tuple(found)


def reserved(turn: Turn[EngineState], part: PartitionOperations) -> PreparedPart:
    """What is to be kept so that operations that could be done now can be done later."""
    operations: list[TransactionOperation] = []
    names: dict[str, None] = {}
    held: list[ReservedJob] = []
    for operation in part.operations:
        key, value, name = operation.key, _value(turn, operation), None
        if isinstance(value, Completion):
            lease_key = turn.state.jobs.active.get(key)
            lease = turn.state.jobs.leases.get(value.lease)
            assert lease is not None and lease_key == value.lease, "it could be completed"
            by = turn.new_key()
            held.append(ReservedJob(key, value.lease, lease, by))
            name, value = f"{RESERVED_JOB}{key}", _replace(value, lease=by)
        else:
            key = turn.new_key()
            name, value = _pinned(turn, value)
            names[f"{PROMISED}{key}"] = None
        if name is not None:
            names[name] = None
        operations.append(_replace(operation, key=key, value=_encode(value)))
    return PreparedPart(tuple(operations), tuple(names), tuple(held), turn.last_key())


def _pinned(turn: Turn[EngineState], value: Any) -> tuple[str | None, Any]:
    """The name that nobody else may use, and the value as it will be."""
    if isinstance(value, NewInstance):
        definition = turn.state.processes.definition_of(value.process_id, value.version)
        stored = None if definition is None else turn.state.processes.definitions.get(definition)
        assert stored is not None, "it could be started"
        name = f"{RESERVED_KEY}{remembered_key(value)}" if value.idempotency_key else None
        return name, _replace(value, version=stored.version)
    if isinstance(value, NewMessage):
        return (f"{RESERVED_MESSAGE}{id_of(value)}" if value.message_id else None), value
    assert isinstance(value, NewJob)
    return (f"{RESERVED_KEY}{value.idempotency_key}" if value.idempotency_key else None), value


def _kind(operation: TransactionOperation) -> tuple[int, int]:
    return operation.value_type, operation.intent


def _value(turn: Turn[EngineState], operation: TransactionOperation) -> Any:
    return turn.tables.decode_value(operation.value_type, operation.intent, operation.value)


def _command(turn: Turn[EngineState], operation: TransactionOperation, claims: Claims) -> Record:
    """The command of an operation, asked for by somebody: it needs what it needs by itself."""
    return Record(
        turn.next_position, RecordKind.COMMAND, operation.value_type, operation.intent,
        operation.key, FROM_OUTSIDE, turn.now_ms, _value(turn, operation), claims,
    )  # fmt: skip
