"""The shapes of the API about batch operations."""

from datetime import datetime
from enum import StrEnum

import msgspec

from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.engine.identity.values import OwnerType
from holdfast.gateway.numbers import Limit, Priority, Retries, Throttle
from holdfast.gateway.processes.shapes import NewMigration, NewModification
from holdfast.gateway.shapes import Question, Shape

# --- what is asked for ------------------------------------------------------------------------


class NewBatchOperation(Question, frozen=True, kw_only=True):
    """One command for each of the items that a filter chooses."""

    type: BatchOperationType
    filter: msgspec.Raw  # a JSON object with at least one condition
    modification: NewModification | None = None  # of MODIFY_PROCESS_INSTANCE
    migration: NewMigration | None = None  # of MIGRATE_PROCESS_INSTANCE
    retries: Retries = 0  # to resolve or retry: further retries after the next attempt
    throttle: Throttle = 0  # items per second over all partitions; 0: no limit
    priority: Priority = 0  # higher goes first
    dry_run: bool = False  # only count what would be selected


class BatchRequest(Question, frozen=True, kw_only=True):
    """Tasks to discard."""

    filter: msgspec.Raw  # which ones: a JSON object with at least one condition
    throttle: Throttle = 0  # items per second over all partitions; 0: no limit
    priority: Priority = 0  # higher goes first
    dry_run: bool = False  # only count what would be selected


class BatchResolution(Question, frozen=True, kw_only=True):
    """Tasks to retry."""

    filter: msgspec.Raw  # which ones: a JSON object with at least one condition
    retries: Retries = 0  # further retries after the next attempt
    throttle: Throttle = 0  # items per second over all partitions; 0: no limit
    priority: Priority = 0  # higher goes first
    dry_run: bool = False  # only count what would be selected


class BatchChange(Question, frozen=True):
    """A new throttle or priority for a running operation."""

    throttle: Throttle | None = None  # None: unchanged
    priority: Priority | None = None


class BatchFailures(StrEnum):
    """What of an operation is tried again."""

    ITEMS = "ITEMS"  # those that failed
    PARTITIONS = "PARTITIONS"  # those that could not select their items


class BatchRetry(Question, frozen=True):
    """A new operation that retries what failed in one that has ended."""

    failed: BatchFailures = BatchFailures.ITEMS
    retries: Retries | None = None  # None: as in the first operation
    throttle: Throttle = 0
    priority: Priority = 0
    dry_run: bool = False


# --- what is answered -------------------------------------------------------------------------


class BatchShare(Shape, frozen=True):
    """How many items a partition has."""

    partition_id: int
    items: int


class BatchPreview(Shape, frozen=True):
    """What a filter selects now."""

    items: int
    partitions: list[BatchShare]
    sample: list[str]  # keys of a few of them


class BatchOperationReceipt(Shape, frozen=True):
    """The operation is durable. A dry run has no operation."""

    batch_operation_type: BatchOperationType
    batch_operation_key: str | None = None
    preview: BatchPreview | None = None  # of a dry run


class BatchPartitionView(Shape, frozen=True):
    """The progress of an operation on one partition."""

    partition_id: int
    state: BatchOperationState
    operations_total_count: int = 0
    operations_completed_count: int = 0
    operations_failed_count: int = 0
    operations_skipped_count: int = 0
    operations_canceled_count: int = 0


class BatchErrorView(Shape, frozen=True):
    """Why a partition could not select its items."""

    partition_id: int
    type: str
    message: str


class BatchOperationView(Shape, frozen=True, kw_only=True):
    """An operation. While it runs, its counts are current."""

    batch_operation_key: str
    batch_operation_type: BatchOperationType
    state: BatchOperationState
    start_date: datetime | None = None
    end_date: datetime | None = None
    actor_id: str | None = None
    actor_type: OwnerType | None = None
    operations_total_count: int = 0  # selected so far
    operations_completed_count: int = 0
    operations_failed_count: int = 0
    operations_skipped_count: int = 0  # their target no longer existed
    operations_canceled_count: int = 0
    errors: list[BatchErrorView] = msgspec.field(default_factory=list)
    filter: msgspec.Raw  # the filter that selected its items
    throttle: int = 0
    priority: int = 0
    repeats: str | None = None  # the operation whose failures it retries
    is_selected: bool = False  # the selection is complete: the total is final
    partitions: list[BatchPartitionView] = msgspec.field(default_factory=list)
    items_per_second: float | None = None  # while it runs: over the last seconds
    estimated_end: datetime | None = None  # at that rate


class BatchPageQuery(Question, frozen=True):
    """Which page of a result to return."""

    limit: Limit = 100
    after: str | None = None  # the end cursor of the previous page


class BatchPageInfo(Shape, frozen=True):
    """The position of a page in the whole result."""

    total_items: int
    has_more_total_items: bool = False  # there are more than totalItems
    start_cursor: str | None = None
    end_cursor: str | None = None


class BatchOperationFilter(Question, frozen=True):
    """Which operations to list."""

    state: BatchOperationState | None = None
    operation_type: BatchOperationType | None = None


class BatchOperationQuery(Question, frozen=True):
    """Which operations to list, and which part of them."""

    filter: BatchOperationFilter = BatchOperationFilter()
    page: BatchPageQuery = BatchPageQuery()


class BatchOperationPage(Shape, frozen=True):
    """Running operations, then ended ones, the newest first."""

    items: list[BatchOperationView]
    page: BatchPageInfo


class BatchItemState(StrEnum):
    """Where an item stands. All but the first are final."""

    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"  # what it names was gone
    CANCELED = "CANCELED"


class BatchItemFilter(Question, frozen=True):
    """Which items to list."""

    batch_operation_key: str | None = None
    item_key: str | None = None
    process_instance_key: str | None = None
    state: BatchItemState | None = None


class BatchItemQuery(Question, frozen=True):
    """Which items to list, and which part of them."""

    filter: BatchItemFilter = BatchItemFilter()
    page: BatchPageQuery = BatchPageQuery()


class BatchItemView(Shape, frozen=True):
    """An item of an operation, as the tables have it."""

    operation_type: BatchOperationType
    batch_operation_key: str
    item_key: str
    process_instance_key: str | None
    state: BatchItemState
    processed_date: datetime | None = None
    error_code: str | None = None
    error_message: str | None = None


class BatchItemPage(Shape, frozen=True):
    """Items in the order of their keys."""

    items: list[BatchItemView]
    page: BatchPageInfo


class BatchFailureGroup(Shape, frozen=True):
    """Items that failed for one reason."""

    error_code: str | None
    reason: str  # the message; keys and other long numbers in it are #
    items: int
    example: str  # the message of one of them
    example_key: str  # the item


class BatchFailureGroups(Shape, frozen=True):
    """Why items of an operation failed, the most frequent reason first."""

    items: list[BatchFailureGroup]
    is_whole: bool = True  # every failed item was counted
