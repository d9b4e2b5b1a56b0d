"""The tables of the batch operations room."""

from holdfast.engine.batch import commands, events, executing, initializing, needs, reporting
from holdfast.engine.batch.values import (
    BATCH_OPERATION_VALUES,
    CHUNK_VALUES,
    EXECUTION_VALUES,
    BatchesChanged,
    BatchOperationChunkIntent,
    BatchOperationEnded,
    BatchOperationExecutionIntent,
    BatchOperationIntent,
)
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Distributed, Domain
from holdfast.engine.needs import with_every
from holdfast.records import ValueType

_I = BatchOperationIntent
BATCH_OPERATION: Domain = Domain(
    value_type=ValueType.BATCH_OPERATION,
    intents=BatchOperationIntent,
    values=BATCH_OPERATION_VALUES,
    commands={
        _I.CREATE: Distributed(
            commands.create, commands.follow_create, reporting.partitions_given_up
        ),
        _I.START: initializing.start,
        _I.CONTINUE_INITIALIZATION: initializing.go_on,
        _I.FAIL: initializing.fail,
        _I.SUSPEND: Distributed(commands.control, commands.follow_control),
        _I.RESUME: Distributed(commands.control, commands.follow_control),
        _I.CANCEL: Distributed(commands.control, commands.follow_cancel),
        _I.CHANGE: Distributed(commands.change, commands.follow_change),
        _I.COMPLETE_PARTITION: reporting.end_partition,
        _I.FAIL_PARTITION: reporting.end_partition,
    },
    appliers={
        _I.CREATED: events.created,
        _I.STARTED: events.started,
        _I.INITIALIZATION_CONTINUED: events.initialization_continued,
        _I.FAILED: events.failed,
        _I.SUSPENDED: events.suspended,
        _I.RESUMED: events.resumed,
        _I.CANCELED: events.canceled,
        _I.CHANGED: events.changed,
        _I.PARTITION_COMPLETED: events.partition_ended,
        _I.PARTITION_FAILED: events.partition_ended,
        _I.COMPLETED: events.completed,
    },
    needs={
        _I.CREATE: needs.create,
        **dict.fromkeys(
            (_I.SUSPEND, _I.RESUME, _I.CANCEL, _I.CHANGE),
            with_every(ResourceType.BATCH, Permission.UPDATE),
        ),
    },
    followed=(BatchesChanged, BatchOperationEnded),
)
BATCH_OPERATION_CHUNK: Domain = Domain(
    value_type=ValueType.BATCH_OPERATION_CHUNK,
    intents=BatchOperationChunkIntent,
    values=CHUNK_VALUES,
    commands={BatchOperationChunkIntent.CREATE: initializing.add_chunk},
    appliers={BatchOperationChunkIntent.CREATED: events.chunk_created},
)
BATCH_OPERATION_EXECUTION: Domain = Domain(
    value_type=ValueType.BATCH_OPERATION_EXECUTION,
    intents=BatchOperationExecutionIntent,
    values=EXECUTION_VALUES,
    commands={BatchOperationExecutionIntent.EXECUTE: executing.execute},
    appliers={BatchOperationExecutionIntent.EXECUTED: events.executed},
    answers={BatchOperationExecutionIntent.EXECUTE: int},
)
