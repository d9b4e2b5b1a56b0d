"""`holdfast` as a data source of Spark: the log as rows, in batches and as a stream.

    holdfast.pipeline.register(spark)
    spark.read.format("holdfast").load("./data")
    spark.readStream.format("holdfast").load("http://127.0.0.1:8080")

Rows travel as Arrow batches. Filters on partition, position, kind, value type, intent, key and time
are applied where the log is read, and only the columns of the option `columns` are made. What is
written to the format becomes tasks, instances or messages: see `sink`.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.errors import InvalidArgument
from holdfast.pipeline.changes.fold import Unreadable, decoded
from holdfast.pipeline.changes.records import row_of
from holdfast.pipeline.log import Log, entries_between, open_log
from holdfast.pipeline.schema import RECORDS, Column, Table
from holdfast.pipeline.sink import PATIENCE_MS, LogStreamWriter, LogWriter, check_url
from holdfast.pipeline.sink_rows import plan_of
from holdfast.pipeline.spark_types import ddl_of
from holdfast.pipeline.tables.arrow import rows_as_arrow

ROWS_PER_TRIGGER = 200_000  # by default: some seconds of work
NEWS_SECONDS_MAX = 2.0  # how long to look for news before it is said that there are none
_LOOK_SECONDS_MIN = 0.005
_LOOK_SECONDS_MAX = 0.25

_RANGES = Table(
    "ranges",
    "which positions of which partition are new",
    (
        Column("partition_id", RECORDS.columns[1].kind, "the partition"),
        Column("start", RECORDS.columns[0].kind, "the first position"),
        Column("end", RECORDS.columns[0].kind, "the position after the last"),
    ),
)

Test = tuple[str, str, Any]  # column, comparison, value


class Range(InputPartition):
    """Some positions of one partition's log."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__(partition)
        self.partition = partition
        self.start = start
        self.end = end


class HoldfastSource(DataSource):
    """The log of a node: `path` is its folder, or its URL if it is on another machine."""

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> str:
        return ddl_of(self._table().columns)

    def reader(self, schema: Any) -> DataSourceReader:
        return LogReader(self._address(), self._table())

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        rows = int(self.options.get("maxRowsPerTrigger", str(ROWS_PER_TRIGGER)))
        return LogStreamReader(self._address(), self._table(), rows)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        return self._writer(schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return LogStreamWriter(self._writer(schema, overwrite))

    def _writer(self, schema: Any, overwrite: bool) -> LogWriter:
        if overwrite:
            raise InvalidArgument("Expected mode append, but found overwrite: a log only grows")
        columns = {each.name: each.dataType.simpleString() for each in schema.fields}
        patience_ms = int(self.options.get("patienceMs", str(PATIENCE_MS)))
        return LogWriter(check_url(self._address()), plan_of(self.options, columns), patience_ms)

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
            return _RANGES
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
    """What is in the log now."""

    def __init__(self, address: str, table: Table) -> None:
        self._address = address
        self._table = table
        self._tests: list[Test] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes the filters that can be applied while reading; the others stay with Spark."""
        for each in filters:
            test = _test_of(each)
            if test is None:
                yield each
            else:
                self._tests.append(test)

    def partitions(self) -> list[Range]:
        log = open_log(self._address)
        try:
            narrowed = [_narrowed(found, self._tests) for found in _ranges(log)]
            return [found for found in narrowed if found is not None]
        finally:
            log.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return _batches(self._address, self._table, partition, self._tests)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What comes into the log. It waits for news, so that the loop around it need not be fast."""

    def __init__(self, address: str, table: Table, rows_per_trigger: int) -> None:
        self._address = address
        self._table = table
        self._rows_per_trigger = rows_per_trigger
        self._log: Log | None = None
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        return {str(n): bounds.earliest for n, bounds in self._open().bounds().items()}

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
        found = [Range(int(name), start.get(name, 0), end[name]) for name in end]
        return [each for each in found if each.start < each.end]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return _batches(self._address, self._table, partition, [])

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
        return {str(n): bounds.next for n, bounds in self._open().bounds().items()}

    def _open(self) -> Log:
        if self._log is None:
            self._log = open_log(self._address)
        return self._log

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_log": None}


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


def _ranges(log: Log) -> Iterator[Range]:
    for partition, bounds in log.bounds().items():
        if bounds.earliest < bounds.next:
            yield Range(partition, bounds.earliest, bounds.next)


def _narrowed(found: Range, tests: list[Test]) -> Range | None:
    """The part of a range that tests on partition and position leave."""
    start, end = found.start, found.end
    for column, comparison, value in tests:
        if column == "partition_id" and not _COMPARE[comparison](found.partition, value):
            return None
        if column == "position":
            match comparison:
                case "=":
                    start, end = max(start, value), min(end, value + 1)
                case ">" | ">=":
                    start = max(start, value + (comparison == ">"))
                case "<" | "<=":
                    end = min(end, value + (comparison == "<="))
                case _:
                    start, end = max(start, min(value)), min(end, max(value) + 1)
    return Range(found.partition, start, end) if start < end else None


def _batches(
    address: str, table: Table, part: Range, tests: list[Test]
) -> Iterator[pa.RecordBatch]:
    if table is _RANGES or table.name == _RANGES.name:
        row = {"partition_id": part.partition, "start": part.start, "end": part.end}
        yield from rows_as_arrow(_RANGES, [row]).to_batches()
        return
    log = open_log(address)
    try:
        for entries in entries_between(log, part.partition, part.start, part.end):
            rows = [
                row
                for record in decoded(entries)
                if not isinstance(record, Unreadable)
                and _passes(row := row_of(part.partition, record), tests)
            ]
            if rows:
                yield from rows_as_arrow(table, rows).to_batches()
    finally:
        log.close()


_COMPARE = {
    "=": lambda left, right: left == right,
    ">": lambda left, right: left is not None and left > right,
    ">=": lambda left, right: left is not None and left >= right,
    "<": lambda left, right: left is not None and left < right,
    "<=": lambda left, right: left is not None and left <= right,
    "in": lambda left, right: left in right,
}
_COMPARISONS: dict[type[Filter], str] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    In: "in",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PUSHED = frozenset(
    {"partition_id", "position", "kind", "value_type", "intent", "key", "timestamp"}
)


def _test_of(filter_: Filter) -> Test | None:
    comparison = _COMPARISONS.get(type(filter_))
    if comparison is None:
        return None
    path: tuple[str, ...] = filter_.attribute  # pyright: ignore[reportAttributeAccessIssue]
    value: Any = filter_.value  # pyright: ignore[reportAttributeAccessIssue]
    if len(path) != 1 or path[0] not in _PUSHED:
        return None
    if path[0] == "timestamp":
        value = tuple(map(_ms_of, value)) if comparison == "in" else _ms_of(value)
    return path[0], comparison, value


def _ms_of(moment: datetime) -> float:
    """A time as the log has it; exact, as it may be compared for equality."""
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) / 1000


def _passes(row: dict[str, Any], tests: list[Test]) -> bool:
    return all(_COMPARE[how](row.get(column), value) for column, how, value in tests)
