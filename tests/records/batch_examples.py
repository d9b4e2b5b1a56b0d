"""Examples of the values of batch operations."""

from enum import IntEnum

import msgspec

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationChunkIntent,
    BatchOperationExecutionIntent,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
    Change,
    Chunk,
    Counts,
    Execute,
    Executed,
    Initialization,
    InitializationFailure,
    ItemFailure,
    OperationEnd,
    OperationRef,
    PartitionError,
    PartitionErrorType,
    PartitionReport,
    Selection,
)
from holdfast.engine.processes.values import Activate, Migration, Modification
from holdfast.records import ValueType

_I = BatchOperationIntent
OPERATION = BatchOperation(
    type=BatchOperationType.MODIFY_PROCESS_INSTANCE,
    filter=b'{"state":"ACTIVE"}',
    modification=Modification((Activate("ship", 0, b"{}"),), (7,), ("pay",), (("a", "b"),)),
    migration=Migration(9, (("a", "b"),)),
    retries=2,
    throttle=100,
    priority=5,
    partitions=(1, 2),
    selection=Selection("batch-9", {1: 17, 2: 4}),
    repeats=8,
    claims={"sub": "ada"},
)
COUNTS = Counts(10, 5, 2, 1, 2)
REPORT = PartitionReport(2, COUNTS)
FAILED_REPORT = PartitionReport(
    2, Counts(), PartitionError(PartitionErrorType.QUERY_FAILED, "no such column")
)
PAGE = Initialization("a", "b", 3, 10_000, False)
FAILURE = InitializationFailure("a", PartitionErrorType.UNKNOWN, "INTERNAL", "a bug", 2, 99)
CHUNK = Chunk(2, "a", (7, 8), (5, 5))

BATCH_EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.BATCH_OPERATION, intent): value
    for intent, value in {
        _I.CREATE: OPERATION,
        _I.CREATED: OPERATION,
        _I.START: OperationRef(9),
        _I.STARTED: OperationRef(9),
        _I.CONTINUE_INITIALIZATION: PAGE,
        _I.INITIALIZATION_CONTINUED: PAGE,
        _I.FAIL: FAILURE,
        _I.FAILED: FAILURE,
        _I.SUSPEND: OperationRef(9),
        _I.SUSPENDED: OperationRef(9),
        _I.RESUME: OperationRef(9),
        _I.RESUMED: OperationRef(9),
        _I.CANCEL: OperationRef(9),
        _I.CANCELED: OperationRef(9),
        _I.CHANGE: Change(9, 50),
        _I.CHANGED: Change(9, 50, 5),
        _I.COMPLETE_PARTITION: REPORT,
        _I.PARTITION_COMPLETED: REPORT,
        _I.FAIL_PARTITION: FAILED_REPORT,
        _I.PARTITION_FAILED: FAILED_REPORT,
        _I.COMPLETED: OperationEnd(
            BatchOperationState.PARTIALLY_COMPLETED, COUNTS, (REPORT, FAILED_REPORT)
        ),
    }.items()
} | {
    (ValueType.BATCH_OPERATION_CHUNK, BatchOperationChunkIntent.CREATE): CHUNK,
    (ValueType.BATCH_OPERATION_CHUNK, BatchOperationChunkIntent.CREATED): Chunk(
        2, "a", (7, 8), (5, 5), BatchOperationType.RESOLVE_INCIDENT
    ),
    (ValueType.BATCH_OPERATION_EXECUTION, BatchOperationExecutionIntent.EXECUTE): Execute(64),
    (ValueType.BATCH_OPERATION_EXECUTION, BatchOperationExecutionIntent.EXECUTED): Executed(
        (1, 2), (ItemFailure(3, "INVALID_STATE", "it runs"),), (4,), (5,), 99
    ),
}
