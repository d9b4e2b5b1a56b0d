"""`holdfast` as a data source of Spark: the log as rows, in batches and as a stream.

    holdfast.pipeline.register(spark)
    spark.read.format("holdfast").load("./data")
    spark.readStream.format("holdfast").load("http://127.0.0.1:8080")

Rows travel as Arrow batches. The option `columns` says which columns are made, and the options of
`wanted` which records are: by partition, position, kind, value type, intent, key and time. What is
written to the format becomes tasks, instances or messages: see `sink`.

Filters of a DataFrame are applied by Spark, on the rows. They could be handed to the reader
(`pushFilters`), but Spark 4.3 keeps what it was handed with what was loaded, not with the query: of
`log.where(a).union(log.where(b))` both sides then show b, and `log.count()` counts b afterwards.
"""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.errors import InvalidArgument
from holdfast.journal import Bounds
from holdfast.pipeline.log import Log, open_log
from holdfast.pipeline.schema import RANGES, RECORDS, Table
from holdfast.pipeline.spark_types import ddl_of
from holdfast.pipeline.wanted import Wanted, wanted_of

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.pipeline.sink import LogWriter

ROWS_PER_TRIGGER = 200_000  # by default: some seconds of work
NEWS_SECONDS_MAX = 2.0  # how long to look for news before it is said that there are none
_LOOK_SECONDS_MIN = 0.005
_LOOK_SECONDS_MAX = 0.25
_SINCE_SLACK_MS = 60_000


class Range(InputPartition):
    """Some positions of one partition's log."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__(partition)
        self.partition = partition
        self.start = start
        self.end = end


class HoldfastSource(DataSource):
    """The log of a node: `path` is its folder, its URL, or the URL of a log in Kafka."""

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> str:
        return ddl_of(self._table().columns)

    def reader(self, schema: Any) -> DataSourceReader:
        return LogReader(self._address(), self._table(), wanted_of(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        rows = self._number("maxRowsPerTrigger", ROWS_PER_TRIGGER, 1)
        return LogStreamReader(self._address(), self._table(), wanted_of(self.options), rows)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        return self._writer(schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        from holdfast.pipeline.sink import LogStreamWriter

        return LogStreamWriter(self._writer(schema, overwrite))

    def _writer(self, schema: Any, overwrite: bool) -> "LogWriter":
        # As with reading: few processes write.
        from holdfast.pipeline.sink import PATIENCE_MS, LogWriter, check_url
        from holdfast.pipeline.sink_rows import plan_of

        if overwrite:
            raise InvalidArgument("Expected mode append, but found overwrite: a log only grows")
        columns = {each.name: each.dataType.simpleString() for each in schema.fields}
        patience_ms = self._number("patienceMs", PATIENCE_MS, 0)
        return LogWriter(check_url(self._address()), plan_of(self.options, columns), patience_ms)

    def _number(self, name: str, default: int, low: int) -> int:
        told = self.options.get(name, str(default))
        if not (told.isascii() and told.isdigit()) or int(told) < low:
            raise InvalidArgument(
                f"Expected {name} of {low} or more, but found {told!r}", field=name
            )
        return int(told)

    def _address(self) -> str:
        address = self.options.get("path")
        if not address:
            raise InvalidArgument(
                "Expected the folder or the URL of a node as path, but found none"
            )
        return address

    def _table(self) -> Table:
        """The records with the columns that are wanted; or only which of them there are."""
        if self.options.get("ranges", "false") == "true":
            return RANGES
        wanted = self.options.get("columns")
        if not wanted:
            return RECORDS
        names = [name.strip() for name in wanted.split(",")]
        unknown = [name for name in names if RECORDS.column(name) is None]
        if unknown:
            raise InvalidArgument(
                f"Expected some of {', '.join(RECORDS.names)}, but found {unknown[0]!r}",
                field="columns",
            )
        columns = tuple(each for each in RECORDS.columns if each.name in names)
        return Table(RECORDS.name, RECORDS.about, columns, is_history=True)


class LogReader(DataSourceReader):
    """What is in the log when a DataFrame is first used."""

    def __init__(self, address: str, table: Table, wanted: Wanted) -> None:
        self._address = address
        self._table = table
        self._wanted = wanted

    def partitions(self) -> list[Range]:
        log = open_log(self._address)
        try:
            return _ranges(_bounds(log, self._wanted), self._wanted)
        finally:
            log.close()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _batches(self._address, self._table, partition, self._wanted)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What comes into the log. It waits for news, so that the loop around it need not be fast."""

    def __init__(self, address: str, table: Table, wanted: Wanted, rows_per_trigger: int) -> None:
        self._address = address
        self._table = table
        self._wanted = wanted
        self._rows_per_trigger = rows_per_trigger
        self._log: Log | None = None
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        bounds = _bounds(self._open(), self._wanted) | self._streams()
        return {str(partition): found.earliest for partition, found in bounds.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._ends()

    def reportLatestOffset(self) -> dict[str, int]:
        return self._ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        ends = self._until or self._news(start)
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return _admitted(start, ends, rows_max)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        spans = {int(name): (start.get(name, 0), end[name]) for name in end}
        return _ranges(spans, self._wanted)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _batches(self._address, self._table, partition, self._wanted)

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _news(self, start: dict[str, int]) -> dict[str, int]:
        """How far the log is; while it has not moved, ever longer looks, but not for ever."""
        deadline = time.monotonic() + NEWS_SECONDS_MAX
        pause = _LOOK_SECONDS_MIN
        while (ends := self._ends()) == start and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.5, _LOOK_SECONDS_MAX)
        return ends

    def _ends(self) -> dict[str, int]:
        bounds = self._open().bounds() | self._streams()
        return {
            str(number): max(self._wanted.ended(number, each.next), each.earliest)
            for number, each in bounds.items()
        }

    def _streams(self) -> dict[int, Bounds]:
        """The topics beside the records, for the stream that fills their tables."""
        return self._open().stream_bounds() if self._table.name == RANGES.name else {}

    def _open(self) -> Log:
        if self._log is None:
            self._log = open_log(self._address)
        return self._log

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_log": None}


def _bounds(log: Log, wanted: Wanted) -> dict[int, Bounds]:
    """What has to be looked at; the log knows where a time is."""
    if wanted.since_ms is None:
        return log.bounds()
    # A record's time is that of its step, the log's that of the writing: not quite the same clock.
    return log.bounds_since(max(0, int(wanted.since_ms) - _SINCE_SLACK_MS))


def _admitted(start: dict[str, int], ends: dict[str, int], rows_max: int | None) -> dict[str, int]:
    """As far as a limit allows, every partition with a fair share of it."""
    if rows_max is None:
        return ends
    waiting = {name: ends[name] - start.get(name, 0) for name in ends}
    total = sum(waiting.values())
    if total <= rows_max:
        return ends
    return {
        name: start.get(name, 0) + max(1, waiting[name] * rows_max // total)
        if waiting[name]
        else ends[name]
        for name in ends
    }


def _ranges(spans: Mapping[int, tuple[int, int]], wanted: Wanted) -> list[Range]:
    """What has to be read of each partition."""
    return [
        Range(partition, *narrowed)
        for partition, span in spans.items()
        if (narrowed := wanted.narrowed(partition, *span)) is not None
    ]


def _batches(
    address: str, table: Table, part: InputPartition, wanted: Wanted
) -> "Iterator[pa.RecordBatch]":
    # Every process of Spark loads this module; those that only plan need nothing of the engine,
    # which is most of what there is to import.
    from holdfast.pipeline.source_rows import range_as_arrow, records_as_arrow

    if not isinstance(part, Range):  # so Spark asks where there is nothing to read
        return iter(())
    if table.name == RANGES.name:
        return range_as_arrow(part.partition, part.start, part.end)
    return records_as_arrow(address, table, wanted, part.partition, part.start, part.end)
