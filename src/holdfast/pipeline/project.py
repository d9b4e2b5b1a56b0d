"""The stream that keeps the tables fresh: the log becomes rows, exactly once.

Spark hands each micro-batch's ranges of positions to its executors. An executor reads its range,
folds it into the rows that changed, and writes the files that those rows are in anew. The driver
then names the files in the tables' logs, each table in one transaction that carries the number of
the micro-batch: one that is run again after a crash finds its number there and changes nothing.

A small micro-batch the driver does itself: a job of Spark takes several times as long to begin.
With Spark Connect the server is where micro-batches are taken: a `Projection` travels there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from holdfast.clock import Clock
from holdfast.errors import DataLoss, InvalidState
from holdfast.pipeline.changes.content import fold_content
from holdfast.pipeline.changes.fold import fold
from holdfast.pipeline.changes.rows import KnownDefinition, Rows, add
from holdfast.pipeline.log import entries_between, open_log
from holdfast.pipeline.offsets import Span, planned_ends, spans_of
from holdfast.pipeline.schema import INCIDENTS, PROCESS_INSTANCES, TABLES, Table
from holdfast.pipeline.source import HoldfastSource
from holdfast.pipeline.streams import ONLY_PARTITION, STREAMS
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import (
    Part,
    WrittenFile,
    add_history,
    look_up,
    merge_changes,
    part_of,
)
from holdfast.pipeline.tables.progress import TableProgress, load_progress, store_progress
from holdfast.pipeline.tables.upkeep import KEEP_HOURS, compacted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_REPORT = "report binary"
_THREADS = 4
TRIGGER = "200 milliseconds"  # from one micro-batch to the next: what comes meanwhile is one
CHECKPOINT = "_checkpoint"  # where Spark keeps how far it is
READER = "pipeline.json"  # in a node's folder of readers: what the log has to keep for us
TIDY_INTERVAL_MS = 600_000

Definitions = dict[int, KnownDefinition]
Parts = dict[str, list[Part]]  # the files of each table
Layout = dict[str, dict[Part, int]]  # ... with the number of their rows


class ExecutorReport(msgspec.Struct, frozen=True, array_like=True):
    """What one executor did for one partition."""

    partition: int
    end: int  # the position after the last that it read
    timestamp_ms: int  # of the last entry
    files: list[WrittenFile]
    deployed: Definitions


_encode_report = msgspec.msgpack.Encoder().encode
_decode_report = msgspec.msgpack.Decoder(ExecutorReport).decode


class Projection:
    """The tables of one node in one folder, and what the next micro-batch has to know of them.

    Whatever fails while it takes a micro-batch, it is not used again: another one is opened, which
    looks at what was committed.
    """

    def __init__(self, address: str, root: Path, clock: Clock, small_records: int = 0) -> None:
        self._address = address
        self._root = root
        self._clock = clock
        self._small_records = small_records  # of a micro-batch that the driver does itself
        root.mkdir(parents=True, exist_ok=True)
        self.logs = {name: DeltaLog(root, table) for name, table in TABLES.items()}
        self.progress = load_progress(root)
        self._layout: Layout = {name: log.rows_by_part() for name, log in self.logs.items()}
        self._working = ThreadPoolExecutor(_THREADS, "tables")
        self._writing = ThreadPoolExecutor(_THREADS, "files")
        self._tidied_ms = clock.now_ms()

    def __reduce__(self) -> tuple[type["Projection"], tuple[str, Path, Clock, int]]:
        """It travels as what it was opened with: where it arrives the tables are opened anew."""
        return Projection, (self._address, self._root, self._clock, self._small_records)

    def start(
        self,
        spark: "SparkSession",
        *,
        rows_per_trigger: int | None = None,
        available_now: bool = False,
        upto: Mapping[int, int] | None = None,
    ) -> "StreamingQuery":
        """Begins to follow the log; or, with `available_now`, takes what is there and ends.

        With positions it takes what is before them, and InvalidState if the tables are further.
        """
        self._check_checkpoint()
        spark.dataSource.register(HoldfastSource)
        stream = spark.readStream.format("holdfast").option("path", self._address)
        stream = stream.option("ranges", "true")
        if rows_per_trigger is not None:
            stream = stream.option("maxRowsPerTrigger", str(rows_per_trigger))
        if upto is not None:
            self._check_not_beyond(upto)
            pairs = ",".join(f"{number}:{at}" for number, at in upto.items())
            stream = stream.option("upTo", pairs)

        writer = stream.load().writeStream.foreachBatch(self.advance).queryName("holdfast")
        writer = writer.option("checkpointLocation", str(self._root / CHECKPOINT))
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=TRIGGER).start()

    def _check_checkpoint(self) -> None:
        """The tables and the checkpoint belong together: one without the other cannot go on."""
        offsets = self._root / CHECKPOINT / "offsets"
        if self.progress.batch >= 0 and not offsets.is_dir():
            raise DataLoss(
                f"Expected the checkpoint of the tables in {offsets.parent}, but it is gone;"
                f" remove {self._root} to rebuild the tables from the log",
                path=str(offsets.parent),
            )

    def _check_not_beyond(self, upto: Mapping[int, int]) -> None:
        planned = planned_ends(self._root / CHECKPOINT)  # a batch that was begun is finished first
        for number, position in {**self.progress.positions, **planned}.items():
            if position > upto.get(number, 0):
                raise InvalidState(
                    f"Expected tables that end before the cut, but those in {self._root} have"
                    f" partition {number} up to {position}, and the cut is at"
                    f" {upto.get(number, 0)}; name another folder with --tables, or a later cut",
                    path=str(self._root),
                )

    def advance(self, batch: "DataFrame", number: int) -> None:
        """One micro-batch, and what is due after it."""
        self.take(batch, number)
        self._say_what_is_needed()
        self.tend()
        if self._clock.now_ms() - self._tidied_ms > TIDY_INTERVAL_MS:
            self._tidied_ms = self._clock.now_ms()
            self.tidy()

    def take(self, batch: "DataFrame", number: int) -> None:
        """One micro-batch: executors write, or the driver itself if it is small; it commits."""
        spans = spans_of(self._root / CHECKPOINT, number) if self._small_records else None
        if spans is not None and sum(end - start for _, start, end in spans) <= self._small_records:
            reports = list(self._working.map(self._project, spans))
        else:
            task = _task(self._address, self._root, self._parts(), self.progress.definitions)
            rows = batch.mapInArrow(task, _REPORT).collect()
            reports = [_decode_report(row.report) for row in rows]
        if reports:
            self._commit(reports, number)

    def _project(self, span: Span) -> ExecutorReport:
        return project_range(
            self._address, self._root, self._parts(), self.progress.definitions, *span,
            at_once=self._writing.map,
        )  # fmt: skip

    def _parts(self) -> Parts:
        """The files that executors may have to write anew."""
        return {
            name: list(self._layout[name])
            for name, log in self.logs.items()
            if not log.table.is_history
        }

    def _commit(self, reports: list[ExecutorReport], number: int) -> None:
        """Each table in a transaction of its own, several at once: most of it is waiting."""

        def commit(name: str) -> None:
            files = [each for report in reports for each in report.files if each.table == name]
            if files and self.logs[name].last_batch() < number:
                self.logs[name].commit(files, number)
                self._placed(name, files)

        list(self._working.map(commit, self.logs))
        definitions = dict(self.progress.definitions)
        for report in reports:
            definitions.update(report.deployed)
        self.progress = TableProgress(
            number,
            self.progress.positions | {report.partition: report.end for report in reports},
            {name: log.version for name, log in self.logs.items()},
            max(self.progress.timestamp_ms, *(report.timestamp_ms for report in reports)),
            self._clock.now_ms(),
            definitions,
        )
        store_progress(self._root, self.progress)

    def _placed(self, name: str, files: list[WrittenFile]) -> None:
        """Files are in a table now, in the place of others."""
        layout = self._layout[name]
        for each in files:
            for path in each.replaces:
                del layout[part_of(path)]
            layout[part_of(each.path)] = each.rows

    def _say_what_is_needed(self) -> None:
        """A node on this machine keeps its log until we have it."""
        folder = Path(self._address)
        if folder.is_dir():
            positions = self.progress.positions
            _leave_word(folder / "readers", self.progress.records())
            for number, stream in STREAMS.items():
                if number in positions:
                    word = {ONLY_PARTITION: positions[number]}
                    _leave_word(folder / "readers" / stream.topic, word)

    def tend(self) -> None:
        """Puts small files of a table together, of the one that has the most where it is due."""
        for name in sorted(self._layout, key=lambda name: -len(self._layout[name])):
            log = self.logs[name]
            written = compacted(self._root, log.table, self._layout[name])
            if written:
                log.commit(written, None, changes=False)
                self._placed(name, written)
                versions = self.progress.versions | {name: log.version}
                self.progress = msgspec.structs.replace(self.progress, versions=versions)
                store_progress(self._root, self.progress)
                return

    def tidy(self) -> None:
        """Removes files that nobody needs any more."""
        for log in self.logs.values():
            log.tidy(KEEP_HOURS)


def _leave_word(readers: Path, positions: dict[int, int]) -> None:
    """Says in a folder of readers what has not been read yet."""
    readers.mkdir(parents=True, exist_ok=True)
    draft = readers / f"{READER}.draft"
    draft.write_bytes(msgspec.json.encode(positions))
    draft.replace(readers / READER)


def _task(
    address: str, root: Path, layout: Parts, definitions: Definitions
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does with the ranges that it is given."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # It travels to the executors with what it names: one function that they can import.
        return project_ranges(address, root, layout, definitions, batches)

    return run


def project_ranges(
    address: str,
    root: Path,
    layout: Parts,
    definitions: Definitions,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """A report for each range."""
    for batch in batches:
        for row in batch.to_pylist():
            report = project_range(
                address, root, layout, definitions,
                row["partition_id"], row["start"], row["end"],
            )  # fmt: skip
            yield pa.record_batch({"report": pa.array([_encode_report(report)], pa.binary())})


def project_range(
    address: str,
    root: Path,
    layout: Parts,
    definitions: Definitions,
    partition: int,
    start: int,
    end: int,
    at_once: Callable[..., Iterable[list[WrittenFile]]] = map,
) -> ExecutorReport:
    """Reads a range of the log and writes the files that change by it; nothing is committed.

    `at_once` is a `map` that may write the files of several tables in parallel: half of the time
    to write a file is spent waiting for the disk.
    """
    rows = Rows(partition, definitions)
    timestamp_ms = 0
    log = open_log(address)
    try:
        stream = STREAMS.get(partition)
        if stream is not None:  # what its retention has dropped is not in the tables
            start = max(start, log.stream_bounds()[partition].earliest)
        for entries in entries_between(log, partition, start, end):
            if stream is None:
                fold(entries, rows)
            else:
                fold_content(stream, entries, rows)
            timestamp_ms = entries[-1].timestamp_ms
    finally:
        log.close()
    parts = {
        name: [part for part in found if part.partition == partition]
        for name, found in layout.items()
    }
    _close_incidents(root, rows, parts[INCIDENTS.name])

    def write(table: Table) -> list[WrittenFile]:
        if table.is_history:
            return add_history(root, table, partition, rows.history[table.name])
        return merge_changes(root, table, partition, rows.changed[table.name], parts[table.name])

    due = [
        table
        for name, table in TABLES.items()
        if (rows.history[name] if table.is_history else rows.changed[name])
    ]
    files = [file for written in at_once(write, due) for file in written]
    return ExecutorReport(partition, end, timestamp_ms, files, rows.deployed)


def _close_incidents(root: Path, rows: Rows, parts: list[Part]) -> None:
    """Incidents that ended and began in an earlier micro-batch: the table knows whose they were."""
    if not rows.ended_incidents:
        return
    column = PROCESS_INSTANCES.keys[0]
    instances = look_up(root, INCIDENTS, rows.ended_incidents, parts, column)
    for incident in rows.ended_incidents:
        instance = instances.get(incident)
        if instance is not None:
            changed = rows.changed[PROCESS_INSTANCES.name]
            row: dict[str, Any] = changed.setdefault(instance, {"partition_id": rows.partition})
            position = rows.changed[INCIDENTS.name][incident]["position"]
            row["position"] = max(row.get("position", -1), position)
            add(row, "incidents", -1)
