"""What has to hold for batch operations, told from the logs alone."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from batch_cluster import BATCH, EXECUTION, BatchCluster
from distribution_cluster import Node

from holdfast.engine.batch.values import (
    BatchOperationChunkIntent,
    BatchOperationExecutionIntent,
    BatchOperationIntent,
    BatchOperationState,
    Counts,
)
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.records import Record, RecordKind, ValueType, partition_of

_I, _S = BatchOperationIntent, BatchOperationState
CHUNK = ValueType.BATCH_OPERATION_CHUNK
_ENDED = {IncidentIntent.RESOLVED, IncidentIntent.DISCARDED}


class Told:
    """What one partition's log says of one operation."""

    def __init__(self) -> None:
        self.selected: list[int] = []
        self.outcomes: dict[int, str] = {}
        self.is_suspended = self.is_canceled = self.is_created = False
        self.has_failed = False  # its items could not be selected

    def take(self, record: Record) -> None:
        """One event, in the order of the log."""
        intent, value = record.intent, record.value
        if record.value_type == CHUNK and intent == BatchOperationChunkIntent.CREATED:
            assert not self.is_suspended and not self.is_canceled, "selected though stopped"
            self.selected += value.items
        elif record.value_type == EXECUTION:
            assert intent == BatchOperationExecutionIntent.EXECUTED
            self._execute(value)
        elif intent == _I.CREATED:
            assert not self.is_created, "created twice"
            self.is_created = True
        elif intent in (_I.SUSPENDED, _I.RESUMED):
            assert self.is_suspended is (intent == _I.RESUMED) and not self.is_canceled
            self.is_suspended = intent == _I.SUSPENDED
        elif intent == _I.CANCELED:
            assert not self.is_canceled, "canceled twice"
            self.is_suspended, self.is_canceled = False, True
        elif intent == _I.FAILED and not value.due_ms:
            self.has_failed = True

    def _execute(self, value: Any) -> None:
        assert not self.is_suspended, "items were done while it was suspended"
        done = [
            *((key, "completed") for key in value.completed),
            *((failure.key, "failed") for failure in value.failed),
            *((key, "skipped") for key in value.skipped),
            *((key, "canceled") for key in value.canceled),
        ]
        assert done, "a step did nothing"
        for key, outcome in done:
            assert key not in self.outcomes, f"item {key} has two outcomes"
            is_over = self.is_canceled or self.has_failed
            assert is_over is (outcome == "canceled"), f"{outcome} though canceled is {is_over}"
            self.outcomes[key] = outcome

    def counts(self) -> Counts:
        found = Counter(self.outcomes.values())
        return Counts(
            len(self.selected), found["completed"], found["failed"], found["skipped"],
            found["canceled"],
        )  # fmt: skip


def told_by(node: Node) -> dict[int, Told]:
    """What a log says of every operation."""
    found: dict[int, Told] = {}
    for record in node.records():
        if record.kind is RecordKind.EVENT and record.value_type in (BATCH, CHUNK, EXECUTION):
            found.setdefault(record.key, Told()).take(record)
    return found


def check_operations(
    cluster: BatchCluster, wanted: Mapping[bytes, Mapping[int, Iterable[int]]]
) -> dict[int, Any]:
    """Every operation ended once, with every item once, and all counts are those of the logs.

    `wanted` has by filter and partition the items that there were. Returns the ends by key.
    """
    told = {number: told_by(node) for number, node in cluster.nodes.items()}
    ends: dict[int, Any] = {}
    for node in cluster.nodes.values():
        for record in node.records():
            is_created = (record.value_type, record.intent) == (BATCH, _I.CREATED)
            if is_created and partition_of(record.key) == node.number:
                operation, key = record.value, record.key
                ends[key] = end = cluster.end_of(key)
                assert end is not None, f"operation {key} has not ended"
                parts = {each: told[each].get(key, Told()) for each in operation.partitions}
                _check_items(end, parts, wanted[operation.filter])
                _check_end(end, parts)
    for node in cluster.nodes.values():
        _check_done(node, told[node.number])
    return ends


def _check_items(end: Any, parts: dict[int, Told], wanted: Mapping[int, Iterable[int]]) -> None:
    for partition, part in parts.items():
        items = list(wanted.get(partition, ()))
        assert part.selected == items[: len(part.selected)], "items got lost or doubled"
        if not part.is_canceled and not part.has_failed and end.state is not _S.CANCELED:
            assert part.selected == items, "not all items were selected"
        assert part.outcomes.keys() == set(part.selected), "an item has no outcome"


def _check_end(end: Any, parts: dict[int, Told]) -> None:
    assert {report.partition: report.counts for report in end.reports} == {
        partition: part.counts() for partition, part in parts.items()
    }
    total = Counts()
    for report in end.reports:
        total = total.plus(report.counts)
        assert (report.error is not None) == parts[report.partition].has_failed
    assert end.counts == total
    assert total.left == 0, "the outcomes do not add up"
    failures = sum(part.has_failed for part in parts.values())
    if end.state is _S.CANCELED:
        return
    assert not any(part.is_canceled for part in parts.values())
    if failures == len(parts):
        assert end.state is _S.FAILED
    else:
        is_whole = not failures and not total.failed
        assert end.state is (_S.COMPLETED if is_whole else _S.PARTIALLY_COMPLETED)


def _check_done(node: Node, told: dict[int, Told]) -> None:
    """What was done is what the outcomes say: each completed item once, and nothing else."""
    ended = Counter(
        record.value.job_key
        for record in node.records()
        if record.kind is RecordKind.EVENT
        and record.value_type == ValueType.INCIDENT
        and record.intent in _ENDED
    )
    completed = Counter(
        key
        for part in told.values()
        for key, outcome in part.outcomes.items()
        if outcome == "completed"
    )
    assert ended == completed
