"""How partitions tell the leader that they are done, and how an operation ends."""

from functools import reduce

from holdfast.engine.batch.values import (
    BatchOperationEnded,
    BatchOperationIntent,
    BatchOperationState,
    Counts,
    OperationEnd,
    PartitionError,
    PartitionErrorType,
    PartitionReport,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.parcels.commands import send
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, ValueType, partition_of

BATCH_OPERATION = ValueType.BATCH_OPERATION
_I, _S = BatchOperationIntent, BatchOperationState


def report_if_done(turn: Turn[EngineState], key: int) -> None:
    """This partition is done with an operation once no item is left, and none is to come."""
    batches = turn.state.batches
    part = batches.parts.get(key)
    if part is None or part.counts.left or batches.selecting(key) is not None:
        return
    report = PartitionReport(turn.partition, part.counts, part.error)
    turn.event(BATCH_OPERATION, _told(report), key, report)
    if batches.leads(key):
        _end_if_all_done(turn, key)
    else:
        tell_leader(turn, key, report)


def tell_leader(turn: Turn[EngineState], key: int, report: PartitionReport) -> None:
    """The leader hears it once, after whatever this partition has told it before."""
    intent = _I.COMPLETE_PARTITION if report.error is None else _I.FAIL_PARTITION
    send(turn, partition_of(key), BATCH_OPERATION, intent, key, report)


def end_partition(turn: Turn[EngineState], command: Record) -> None:
    """On the leader: another partition is done. What has been told stays as it is."""
    report: PartitionReport = command.value
    batches = turn.state.batches
    stored = batches.operations.get(command.key)
    if stored is None or report.partition not in stored.operation.partitions:
        reason = (
            f"Expected operation {command.key} to wait for partition {report.partition},"
            " but it does not"
        )
        return turn.reject(command, Code.NOT_FOUND, reason)
    if batches.is_reported(command.key, report.partition):
        reason = (
            f"Expected the first report of partition {report.partition} about operation"
            f" {command.key}, but there is one"
        )
        return turn.reject(command, Code.ALREADY_EXISTS, reason)
    turn.event(BATCH_OPERATION, _told(report), command.key, report)
    _end_if_all_done(turn, command.key)


def partitions_given_up(turn: Turn[EngineState], key: int, partitions: tuple[int, ...]) -> None:
    """On the leader: a person skipped the creation of the operation at these partitions.

    They will never report, so they have failed, and the operation ends with what the others do.
    """
    message = "A person skipped the creation of the operation on this partition"
    error = PartitionError(PartitionErrorType.UNKNOWN, message)
    for partition in partitions:
        report = PartitionReport(partition, error=error)
        turn.command(BATCH_OPERATION, _I.FAIL_PARTITION, key, report)


def _told(report: PartitionReport) -> BatchOperationIntent:
    return _I.PARTITION_COMPLETED if report.error is None else _I.PARTITION_FAILED


def _end_if_all_done(turn: Turn[EngineState], key: int) -> None:
    stored = turn.state.batches.operations.get(key)
    assert stored is not None, "the leader keeps an operation until its end"
    if stored.reported < len(stored.operation.partitions):
        return
    reports = turn.state.batches.reports(key)
    counts = reduce(Counts.plus, (report.counts for report in reports))
    end = OperationEnd(_end_state(stored.state, counts, reports), counts, reports)
    turn.event(BATCH_OPERATION, _I.COMPLETED, key, end)
    turn.effect(BatchOperationEnded(key, stored.operation, end, turn.now_ms))


def _end_state(
    state: BatchOperationState, counts: Counts, reports: tuple[PartitionReport, ...]
) -> BatchOperationState:
    failures = sum(report.error is not None for report in reports)
    if state is _S.CANCELED:
        return _S.CANCELED
    if failures == len(reports):
        return _S.FAILED
    return _S.PARTIALLY_COMPLETED if failures or counts.failed else _S.COMPLETED
