"""The words of batch operations."""

from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from holdfast.engine.processes.values import Migration, Modification
from holdfast.records import Value, partition_of

QUEUE = "batch_operation"  # what is asked of operations arrives in the order it was asked in


class BatchOperationIntent(IntEnum):
    """Commands and events of batch operations. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    START = 2  # a partition is about to select its items
    STARTED = 3
    CONTINUE_INITIALIZATION = 4  # how far the selection has come, behind the chunk that it gave
    INITIALIZATION_CONTINUED = 5
    FAIL = 6  # a page of items could not be read
    FAILED = 7  # ... and is retried later, or not at all
    SUSPEND = 8
    SUSPENDED = 9
    RESUME = 10
    RESUMED = 11
    CANCEL = 12
    CANCELED = 13
    CHANGE = 14  # a new throttle or priority
    CHANGED = 15
    COMPLETE_PARTITION = 16  # to the leader: a partition is done
    PARTITION_COMPLETED = 17  # on that partition, and on the leader
    FAIL_PARTITION = 18  # to the leader: a partition could not select its items
    PARTITION_FAILED = 19
    COMPLETED = 20  # every partition is done: how it ended, with all counts


class BatchOperationChunkIntent(IntEnum):
    """Items that were selected. The numbers are on disk."""

    CREATE = 0
    CREATED = 1


class BatchOperationExecutionIntent(IntEnum):
    """Items and their outcomes. The numbers are on disk."""

    EXECUTE = 0
    EXECUTED = 1


class BatchOperationType(StrEnum):
    """What is done with each item."""

    CANCEL_PROCESS_INSTANCE = "CANCEL_PROCESS_INSTANCE"
    MODIFY_PROCESS_INSTANCE = "MODIFY_PROCESS_INSTANCE"
    MIGRATE_PROCESS_INSTANCE = "MIGRATE_PROCESS_INSTANCE"
    DELETE_PROCESS_INSTANCE = "DELETE_PROCESS_INSTANCE"  # an ended instance
    RESOLVE_INCIDENT = "RESOLVE_INCIDENT"
    RETRY_TASK = "RETRY_TASK"  # one with an incident
    DISCARD_TASK = "DISCARD_TASK"  # one with an incident


class BatchOperationState(StrEnum):
    """The state of an operation. The last four are final."""

    CREATED = "CREATED"  # its items are not being selected yet
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    PARTIALLY_COMPLETED = "PARTIALLY_COMPLETED"  # items or whole partitions failed
    FAILED = "FAILED"  # every partition did
    CANCELED = "CANCELED"


class PartitionErrorType(StrEnum):
    """Why a partition has no items."""

    QUERY_FAILED = "QUERY_FAILED"
    RESULT_BUFFER_SIZE_EXCEEDED = "RESULT_BUFFER_SIZE_EXCEEDED"
    UNKNOWN = "UNKNOWN"


class Selection(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stable snapshot that an operation works on, the same for all its partitions."""

    name: str = ""  # "" with CREATE: named after the operation
    positions: dict[int, int] = {}  # by partition: how far of its log the snapshot has to be


class Visible(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the creator of an operation may see; `*` among them: all."""

    processes: tuple[str, ...]
    task_types: tuple[str, ...]


class BatchOperation(Value, frozen=True, tag=96):
    """An operation: CREATE(D). Its key carries the partition that leads it."""

    type: BatchOperationType
    filter: bytes  # JSON; which items
    modification: Modification | None = None
    migration: Migration | None = None
    retries: int = 0  # further retries after the next attempt, for operations that resolve or retry
    throttle: int = 0  # items per second over all partitions; 0: no limit, live work goes first
    priority: int = 0  # higher goes first
    partitions: tuple[int, ...] = ()  # () with CREATE: all
    selection: Selection = Selection()
    repeats: int = 0  # the operation whose failed items or partitions are retried
    claims: dict[str, Any] | None = None  # CREATED: of the user or client that asked for it
    visible: Visible | None = None  # CREATED: items of others are not selected; None: none are


class OperationRef(Value, frozen=True, tag=97):
    """Only the operation itself: START(ED), SUSPEND(ED), RESUME(D), CANCEL(ED)."""

    operation: int = 0  # where a command is distributed: its own key names the distribution


class Change(Value, frozen=True, tag=98):
    """A new throttle or priority: CHANGE(D)."""

    operation: int = 0  # where it is distributed
    throttle: int | None = None  # None: unchanged
    priority: int | None = None


class Initialization(Value, frozen=True, tag=99):
    """How far a selection has come: CONTINUE_INITIALIZATION, INITIALIZATION_CONTINUED."""

    cursor: str  # where the page began
    next_cursor: str
    chunks: int  # how many there are, that of this page included
    page_items: int  # the page size from now on
    is_last: bool  # every item is known


class InitializationFailure(Value, frozen=True, tag=100):
    """A page could not be read: FAIL(ED)."""

    cursor: str
    type: PartitionErrorType
    code: str
    message: str
    attempts: int = 0  # FAILED: so far
    due_ms: int = 0  # FAILED: when it is retried; 0: never


class Counts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Items by outcome; in the end they add up to the total."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0  # what they name is gone
    canceled: int = 0

    @property
    def left(self) -> int:
        """Those without an outcome."""
        return self.total - self.completed - self.failed - self.skipped - self.canceled

    def plus(self, other: "Counts") -> "Counts":
        return Counts(
            self.total + other.total,
            self.completed + other.completed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.canceled + other.canceled,
        )


class PartitionError(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a partition failed."""

    type: PartitionErrorType
    message: str


class PartitionReport(Value, frozen=True, tag=101):
    """The outcomes of a partition's items: (COMPLETE|FAIL)_PARTITION, PARTITION_*."""

    partition: int
    counts: Counts = Counts()
    error: PartitionError | None = None


class OperationEnd(Value, frozen=True, tag=102):
    """How an operation ended: COMPLETED."""

    state: BatchOperationState
    counts: Counts
    reports: tuple[PartitionReport, ...]


class Chunk(Value, frozen=True, tag=103):
    """Items of a partition, one page of them: CHUNK CREATE(D)."""

    number: int  # from 0
    cursor: str  # where the page began
    items: tuple[int, ...]
    instances: tuple[int, ...] = ()  # whose items they are; (): they are instances, or of none
    type: BatchOperationType | None = None  # CREATED: what is done with them


class Execute(Value, frozen=True, tag=104):
    """Executes the next items of an operation: EXECUTE."""

    limit: int = 0  # the maximum; 0: as many as fit in a step


class ItemFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item whose command was refused."""

    key: int
    code: str
    message: str


class Executed(Value, frozen=True, tag=105):
    """Items by outcome: EXECUTED. What their commands led to stands before it."""

    completed: tuple[int, ...] = ()
    failed: tuple[ItemFailure, ...] = ()
    skipped: tuple[int, ...] = ()
    canceled: tuple[int, ...] = ()
    next_us: int = 0  # by the throttle: when the next items may be executed

    @property
    def count(self) -> int:
        """How many items it is about."""
        return len(self.completed) + len(self.failed) + len(self.skipped) + len(self.canceled)


_I = BatchOperationIntent
BATCH_OPERATION_VALUES: dict[BatchOperationIntent, type[msgspec.Struct]] = {
    _I.CREATE: BatchOperation,
    _I.CREATED: BatchOperation,
    _I.START: OperationRef,
    _I.STARTED: OperationRef,
    _I.CONTINUE_INITIALIZATION: Initialization,
    _I.INITIALIZATION_CONTINUED: Initialization,
    _I.FAIL: InitializationFailure,
    _I.FAILED: InitializationFailure,
    _I.SUSPEND: OperationRef,
    _I.SUSPENDED: OperationRef,
    _I.RESUME: OperationRef,
    _I.RESUMED: OperationRef,
    _I.CANCEL: OperationRef,
    _I.CANCELED: OperationRef,
    _I.CHANGE: Change,
    _I.CHANGED: Change,
    _I.COMPLETE_PARTITION: PartitionReport,
    _I.PARTITION_COMPLETED: PartitionReport,
    _I.FAIL_PARTITION: PartitionReport,
    _I.PARTITION_FAILED: PartitionReport,
    _I.COMPLETED: OperationEnd,
}
CHUNK_VALUES: dict[BatchOperationChunkIntent, type[msgspec.Struct]] = {
    BatchOperationChunkIntent.CREATE: Chunk,
    BatchOperationChunkIntent.CREATED: Chunk,
}
EXECUTION_VALUES: dict[BatchOperationExecutionIntent, type[msgspec.Struct]] = {
    BatchOperationExecutionIntent.EXECUTE: Execute,
    BatchOperationExecutionIntent.EXECUTED: Executed,
}


# --- effects ----------------------------------------------------------------------------------


class BatchesChanged(msgspec.Struct, frozen=True, gc=False):
    """What a partition wants done for its operations may have changed."""

    partition: int

    @property
    def about(self) -> int:
        return self.partition


class BatchOperationEnded(msgspec.Struct, frozen=True, gc=False):
    """Every partition is done with an operation, and nothing of it is in the state any more."""

    key: int
    operation: BatchOperation
    end: OperationEnd
    ended_ms: int

    @property
    def about(self) -> int:
        return self.key

    @property
    def partition(self) -> int:
        return partition_of(self.key)
