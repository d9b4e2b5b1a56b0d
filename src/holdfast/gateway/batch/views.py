"""How far operations are, asked of the partitions while they run."""

import asyncio
from collections.abc import Sequence
from functools import reduce

from holdfast.engine.asker import asker_of
from holdfast.engine.batch.queries import FindLed, FindParts, FoundPart, LedOperation, ListLed
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationState,
    Counts,
    OperationEnd,
    PartitionReport,
)
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.batch.shapes import (
    BatchErrorView,
    BatchOperationView,
    BatchPartitionView,
)
from holdfast.records import partition_of

_S = BatchOperationState
_Parts = dict[tuple[int, int], FoundPart]  # by operation and partition


class Live:
    """Operations that have not ended, all partitions taken together."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def led(self, key: int) -> LedOperation | None:
        """An operation as its leader knows it."""
        return await self._asked.ask(partition_of(key), FindLed(key))

    async def all(self) -> list[LedOperation]:
        """Those that have not ended, the newest of each partition first."""
        return [each for led in await self._asked.ask_all(ListLed()) for each in led]

    async def counts(self, operations: Sequence[LedOperation]) -> dict[int, Counts]:
        """The items of each by their outcomes; without those that end meanwhile."""
        operations, parts = await self._parts(operations)
        return {each.key: _sum(_reports(each, parts)) for each in operations}

    async def view(self, led: LedOperation) -> BatchOperationView | None:
        """How far an operation is; None if it ends meanwhile."""
        found, parts = await self._parts([led])
        if not found:
            return None
        [led] = found
        reports = _reports(led, parts)
        told = {each.partition for each in led.reports}
        partitions = [
            _partition(each, None if each.partition in told else parts[led.key, each.partition])
            for each in reports
        ]
        final = (_S.COMPLETED, _S.FAILED)
        return view_of(
            led.key,
            led.operation,
            led.state,
            _sum(reports),
            [each for each in reports if each.error is not None],
            is_selected=all(
                each.state in final or parts[led.key, each.partition_id].is_selected
                for each in partitions
            ),
            partitions=partitions,
        )

    async def _parts(self, operations: Sequence[LedOperation]) -> tuple[list[LedOperation], _Parts]:
        """What partitions have done that have not told the leader; one query for each of them.

        What a partition told in between it has forgotten: then the leader is asked again.
        """
        wanted: dict[int, list[int]] = {}
        for each in operations:
            told = {report.partition for report in each.reports}
            for partition in each.operation.partitions:
                if partition not in told:
                    wanted.setdefault(partition, []).append(each.key)
        asked = [self._asked.ask(each, FindParts(tuple(keys))) for each, keys in wanted.items()]
        found = await asyncio.gather(*asked)
        parts = {
            (part.key, partition): part
            for partition, of_partition in zip(wanted, found, strict=True)
            for part in of_partition
        }
        unknown = {key for (key, _), part in parts.items() if not part.is_known}
        led = [await self.led(each.key) if each.key in unknown else each for each in operations]
        return [each for each in led if each is not None], parts


def _reports(led: LedOperation, parts: _Parts) -> list[PartitionReport]:
    """What each partition has done so far, whether or not it has told the leader."""
    told = {each.partition: each for each in led.reports}
    return [told.get(each) or parts[led.key, each].report for each in led.operation.partitions]


def _partition(report: PartitionReport, part: FoundPart | None) -> BatchPartitionView:
    done = _S.COMPLETED if report.error is None else _S.FAILED
    how = done if part is None else part.state
    return BatchPartitionView(report.partition, how, *_numbers(report.counts))


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
