"""What can be asked of the batch operations of a partition."""

import msgspec

from holdfast.engine.batch.commands import visible_to
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationState,
    PartitionReport,
    Visible,
)
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.records import ValueType, partition_of

_S = BatchOperationState
_REPORTS = (BatchOperationIntent.COMPLETE_PARTITION, BatchOperationIntent.FAIL_PARTITION)
_decode_report = msgspec.msgpack.Decoder(PartitionReport).decode


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


class LedOperation(_Answer, frozen=True):
    """An operation that has not ended, as its leader knows it."""

    key: int
    operation: BatchOperation
    state: BatchOperationState
    reports: list[PartitionReport] = []  # of partitions that are done


class ListLed(Query[list[LedOperation]], frozen=True):
    """The operations that a partition leads, the newest first."""


def list_led(reader: Reader, query: ListLed) -> list[LedOperation]:
    batches = reader.state.batches
    if not batches.led():
        return []
    return [
        LedOperation(key, stored.operation, stored.state, list(batches.reports(key)))
        for key, stored in reversed(list(batches.operations.scan()))
        if partition_of(key) == reader.partition
    ]


class FindLed(Query[LedOperation | None], frozen=True):
    """One of them by its key."""

    key: int


def find_led(reader: Reader, query: FindLed) -> LedOperation | None:
    batches = reader.state.batches
    stored = batches.operations.get(query.key)
    if stored is None:
        return None
    reports = list(batches.reports(query.key))
    return LedOperation(query.key, stored.operation, stored.state, reports)


class FoundPart(_Answer, frozen=True):
    """What a partition has done of an operation, whether or not it has told the leader."""

    key: int
    report: PartitionReport
    state: BatchOperationState = _S.CREATED
    is_selected: bool = False
    is_known: bool = True  # False: it has not heard of the operation, or the leader has its report


class FindParts(Query[list[FoundPart]], frozen=True):
    """The parts that a partition has of some operations, in the order of the keys."""

    keys: tuple[int, ...]


def find_parts(reader: Reader, query: FindParts) -> list[FoundPart]:
    return [_part(reader, key) for key in query.keys]


def _part(reader: Reader, key: int) -> FoundPart:
    batches = reader.state.batches
    part, stored = batches.parts.get(key), batches.operations.get(key)
    if part is None:
        # It has not heard of the operation, or its report is on its way to the leader.
        report = _posted(reader, key)
        if report is None:
            return FoundPart(key, PartitionReport(reader.partition), is_known=False)
        how = _S.COMPLETED if report.error is None else _S.FAILED
        return FoundPart(key, report, how if report.counts.total else _S.CREATED)
    report = PartitionReport(reader.partition, part.counts, part.error)
    how = _S.CREATED if stored is None or not part.is_started else stored.state
    return FoundPart(key, report, how, part.is_selected)


def _posted(reader: Reader, key: int) -> PartitionReport | None:
    for parcel in reader.state.parcels.open(partition_of(key)):
        if (parcel.value_type, parcel.key) == (ValueType.BATCH_OPERATION, key) and (
            parcel.intent in _REPORTS
        ):
            return _decode_report(parcel.value)
    return None


class FindVisible(Query[Visible | None], frozen=True):
    """What the asker may see; None: everything."""


def find_visible(reader: Reader, query: FindVisible) -> Visible | None:
    return visible_to(reader.state, reader.asker)


QUERIES = questions(list_led, find_led, find_parts, find_visible)
