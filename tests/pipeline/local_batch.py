"""Micro-batches without Spark."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class LocalBatch:
    """A micro-batch whose executors are this process: what Spark's DataFrame does here."""

    def __init__(self, ranges: list[dict[str, int]]) -> None:
        self._ranges = ranges
        self._reports: list[Any] = []

    def mapInArrow(self, task: Task, schema: str) -> "LocalBatch":
        batches = iter([pa.RecordBatch.from_pylist([each]) for each in self._ranges])
        self._reports = [row for batch in task(batches) for row in batch.to_pylist()]
        return self

    def collect(self) -> list[Any]:
        return [msgspec.convert(row, _Row) for row in self._reports]


class _Row(msgspec.Struct):
    report: bytes
