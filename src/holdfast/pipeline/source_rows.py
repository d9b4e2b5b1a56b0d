"""What a process of Spark reads of the log, as Arrow batches."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from holdfast.pipeline.changes.fold import Unreadable, decoded
from holdfast.pipeline.changes.records import row_of
from holdfast.pipeline.log import entries_between, open_log
from holdfast.pipeline.schema import RANGES, Table
from holdfast.pipeline.tables.arrow import rows_as_arrow
from holdfast.pipeline.wanted import Wanted
from holdfast.records import Record


def range_as_arrow(partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Which positions there are, for a reader that reads them in another way."""
    row = {"partition_id": partition, "start": start, "end": end}
    yield from rows_as_arrow(RANGES, [row]).to_batches()


def records_as_arrow(
    address: str, table: Table, wanted: Wanted, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """The records of a range that are wanted, with the columns of a table."""
    make = row_of if table.column("value") is not None else _row_without_value
    log = open_log(address)
    try:
        for entries in entries_between(log, partition, start, end):
            rows = [
                make(partition, record)
                for record in decoded(entries)
                if not isinstance(record, Unreadable) and wanted.takes(record)
            ]
            if rows:
                yield from rows_as_arrow(table, rows).to_batches()
    finally:
        log.close()


def _row_without_value(partition: int, record: Record) -> dict[str, Any]:
    """A record as a row for those that do not want its value, which is most of the work."""
    return row_of(partition, msgspec.structs.replace(record, value=None))
