"""How far the tables are behind the log."""

from collections.abc import Mapping

import msgspec

from holdfast.journal import Bounds
from holdfast.pipeline.tables.progress import TableProgress


class PartitionLag(msgspec.Struct, frozen=True):
    """How far the tables are behind one partition's log."""

    partition: int
    position: int  # the first that is not in the tables
    end: int  # of the log
    records: int


class Lag(msgspec.Struct, frozen=True):
    """How far the tables are behind the log."""

    records: int
    seconds: float  # between now and the last record in the tables; 0 when nothing is missing
    partitions: list[PartitionLag]


def lag_of(progress: TableProgress, ends: Mapping[int, Bounds], now_ms: int) -> Lag:
    """Compares the tables with the log."""
    partitions: list[PartitionLag] = []
    for partition, bounds in ends.items():
        position = max(progress.positions.get(partition, 0), bounds.earliest)
        partitions.append(PartitionLag(partition, position, bounds.next, bounds.next - position))
    records = sum(each.records for each in partitions)
    seconds = (now_ms - progress.timestamp_ms) / 1000 if records and progress.timestamp_ms else 0.0
    return Lag(records, max(seconds, 0.0), partitions)
