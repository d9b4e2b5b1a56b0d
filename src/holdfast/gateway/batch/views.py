"""How far operations are, read from the state of the partitions while they run."""

from functools import reduce

from holdfast.engine.batch.state import Batches as State
from holdfast.engine.batch.state import StoredOperation
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    Counts,
    OperationEnd,
    PartitionReport,
)
from holdfast.engine.identity.state import asker_of
from holdfast.engine.partition import TABLES
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.batch.shapes import (
    BatchErrorView,
    BatchOperationView,
    BatchPartitionView,
)
from holdfast.records import ValueType, partition_of

_S = BatchOperationState
_REPORTS = (BatchOperationIntent.COMPLETE_PARTITION, BatchOperationIntent.FAIL_PARTITION)


class Live:
    """Operations that have not ended, all partitions taken together."""

    def __init__(self, runner: Asked) -> None:
        self._runner = runner

    def stored(self, key: int) -> StoredOperation | None:
        """An operation as its leader knows it."""
        return self._state(partition_of(key)).operations.get(key)

    def all(self) -> dict[int, StoredOperation]:
        """Those that have not ended, the newest of each partition first."""
        return {
            key: stored
            for partition in self._runner.processors
            if self._state(partition).led()
            for key, stored in reversed(list(self._state(partition).operations.scan()))
            if partition_of(key) == partition
        }

    def done(self) -> dict[int, int]:
        """How many items of each have an outcome."""
        counts = {key: self.counts(key, stored) for key, stored in self.all().items()}
        return {key: each.total - each.left for key, each in counts.items()}

    def counts(self, key: int, stored: StoredOperation) -> Counts:
        """The items of one by their outcomes."""
        return _sum(self.reports(key, stored))

    def reports(self, key: int, stored: StoredOperation) -> list[PartitionReport]:
        """What each partition has done so far, whether or not it has told the leader."""
        told = {each.partition: each for each in self._state(partition_of(key)).reports(key)}
        return [
            told.get(partition) or self._report(key, partition)
            for partition in stored.operation.partitions
        ]

    def _report(self, key: int, partition: int) -> PartitionReport:
        part = self._state(partition).parts.get(key)
        if part is not None:
            return PartitionReport(partition, part.counts, part.error)
        # It has not heard of the operation, or its report is on its way to the leader.
        parcels = self._runner.processors[partition].view.parcels
        for parcel in parcels.open(partition_of(key)):
            if (parcel.value_type, parcel.key) == (ValueType.BATCH_OPERATION, key) and (
                parcel.intent in _REPORTS
            ):
                return TABLES.decode_value(parcel.value_type, parcel.intent, parcel.value)
        return PartitionReport(partition)

    def view(self, key: int, stored: StoredOperation) -> BatchOperationView:
        reports = self.reports(key, stored)
        reported = {each.partition for each in self._state(partition_of(key)).reports(key)}
        partitions = [self._partition(key, each, each.partition in reported) for each in reports]
        final = (_S.COMPLETED, _S.FAILED)
        return view_of(
            key,
            stored.operation,
            stored.state,
            _sum(reports),
            [each for each in reports if each.error is not None],
            is_selected=all(
                each.state in final or self._is_selected(key, each.partition_id)
                for each in partitions
            ),
            partitions=partitions,
        )

    def _is_selected(self, key: int, partition: int) -> bool:
        part = self._state(partition).parts.get(key)
        return part is not None and part.is_selected

    def _partition(self, key: int, report: PartitionReport, is_told: bool) -> BatchPartitionView:
        state = self._state(report.partition)
        part, stored = state.parts.get(key), state.operations.get(key)
        if is_told or (part is None and report.counts.total):
            how = _S.COMPLETED if report.error is None else _S.FAILED
        elif part is None or stored is None or not part.is_started:
            how = _S.CREATED
        else:
            how = stored.state
        return BatchPartitionView(report.partition, how, *_numbers(report.counts))

    def _state(self, partition: int) -> State:
        return self._runner.processors[partition].view.batches


def view_of(
    key: int,
    operation: BatchOperation,
    state: BatchOperationState,
    counts: Counts,
    failed: list[PartitionReport],
    *,
    is_selected: bool,
    partitions: list[BatchPartitionView],
    ended_ms: int = 0,
) -> BatchOperationView:
    """An operation as people see it."""
    total, completed, failures, skipped, canceled = _numbers(counts)
    actor = asker_of(operation.claims) if operation.claims else None
    return BatchOperationView(
        batch_operation_key=str(key),
        batch_operation_type=operation.type,
        state=state,
        end_date=checks.moment(ended_ms),
        actor_id=actor.sub if actor else None,
        actor_type=actor.type if actor else None,
        operations_total_count=total,
        operations_completed_count=completed,
        operations_failed_count=failures,
        operations_skipped_count=skipped,
        operations_canceled_count=canceled,
        errors=[
            BatchErrorView(each.partition, each.error.type, each.error.message)
            for each in failed
            if each.error is not None
        ],
        filter=checks.raw(operation.filter),
        throttle=operation.throttle,
        priority=operation.priority,
        repeats=str(operation.repeats) if operation.repeats else None,
        is_selected=is_selected,
        partitions=partitions,
    )


def ended_view(
    key: int, operation: BatchOperation, end: OperationEnd, ended_ms: int
) -> BatchOperationView:
    """An operation as it ended."""
    partitions = [
        BatchPartitionView(
            each.partition,
            _S.COMPLETED if each.error is None else _S.FAILED,
            *_numbers(each.counts),
        )
        for each in end.reports
    ]
    failed = [each for each in end.reports if each.error is not None]
    return view_of(
        key, operation, end.state, end.counts, failed,
        is_selected=True, partitions=partitions, ended_ms=ended_ms,
    )  # fmt: skip


def _sum(reports: list[PartitionReport]) -> Counts:
    return reduce(Counts.plus, (each.counts for each in reports), Counts())


def _numbers(counts: Counts) -> tuple[int, int, int, int, int]:
    return counts.total, counts.completed, counts.failed, counts.skipped, counts.canceled
