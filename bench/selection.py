"""Selection: the keys that a filter finds among very many instances, and their pages."""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.places import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.pipeline.select.snapshot import Snapshot

INSTANCES = 10_000_000
TENTH: dict[str, Any] = {"state": "ACTIVE"}
THOUSANDTH_SECONDS = 625  # of the starts: 4 a second in each of 4 partitions, of 10,000,000
BYTES_SHARE_MAX = 0.05
PAGE_MS_MAX = 20.0
WARM = 20  # selections before those that count: Java compiles what it has run often


@benchmark("selection")
def selection(run: Run) -> Iterator[Figure]:
    from bench.ours.instances import write_instances
    from holdfast.config import Config
    from holdfast.pipeline.session import open_session

    root = run.folder("selection")
    with ExitStack() as stack:
        stack.callback(remove, root)
        instances = run.scaled(INSTANCES)
        write_instances(root, instances)
        spark = open_session(Config(log_level="error"), SPARK, lasting=True)
        stack.callback(spark.stop)
        ours = _Selections(spark, root)
        for _ in range(WARM):
            ours.seconds(TENTH)
        yield Figure(
            name=f"selecting a tenth of {instances:,} instances",
            against="DuckDB on the same files",
            goal="<= 2.5",
            unit="s",
            ours=lambda: ours.seconds(TENTH),
            peer=lambda: _duckdb_seconds(root),
        )
        yield Figure(
            name="a page of 10,000 of the selection, p50",
            against="20 ms",
            goal="<= 1",
            unit="ms",
            ours=ours.page_ms,
            peer=fixed(PAGE_MS_MAX),
        )
        yield Figure(
            name="bytes that a filter of a thousandth reads",
            against="5% of the table",
            goal="<= 1",
            unit="of the table",
            ours=lambda: ours.bytes_share(_thousandth(run)),
            peer=fixed(BYTES_SHARE_MAX),
        )


class _Selections:
    """What is selected from one folder of tables, again and again."""

    def __init__(self, spark: "SparkSession", root: Path) -> None:
        self._spark = spark
        self._root = root
        self._names = (f"selection-{number}" for number in count())
        self._last: Snapshot | None = None
        java: Any = spark._jvm  # there is no other way to Spark's own process
        self._java = psutil.Process(java.java.lang.ProcessHandle.current().pid())

    def seconds(self, filter: dict[str, Any]) -> float:
        from holdfast.pipeline.schema import PROCESS_INSTANCES
        from holdfast.pipeline.select.filters import read_filter
        from holdfast.pipeline.select.selection import select

        condition = read_filter(PROCESS_INSTANCES, filter)
        begun = time.perf_counter()
        deadline = time.monotonic() + 60
        self._last = select(
            self._spark, self._root, PROCESS_INSTANCES, condition, {}, deadline,
            name=next(self._names),
        )  # fmt: skip
        return time.perf_counter() - begun

    def page_ms(self) -> float:
        """The median over all pages of the last selection, one after the other."""
        assert self._last is not None
        spans: list[float] = []
        for partition in self._last.manifest.runs:
            cursor: int | None = None
            while True:
                begun = time.perf_counter()
                page = self._last.page(partition, cursor)
                spans.append((time.perf_counter() - begun) * 1_000)
                cursor = page.next
                if cursor is None:
                    break
        return statistics.median(spans)

    def bytes_share(self, filter: dict[str, Any]) -> float:
        """What Spark and its workers read for a selection, by the size of the table's files."""
        table = self._root / "process_instances"
        total = sum(file.stat().st_size for file in table.glob("*.parquet"))
        before = self._bytes_read()
        self.seconds(filter)
        return (self._bytes_read() - before) / total

    def _bytes_read(self) -> int:
        """Also from the page cache, as the kernel counts it."""
        processes = [self._java, *self._java.children(recursive=True)]
        return sum(_rchar(each.pid) for each in processes)


def _rchar(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def _thousandth(run: Run) -> dict[str, Any]:
    from datetime import UTC, datetime, timedelta

    from bench.ours.instances import FIRST_START_US

    first = datetime.fromtimestamp(FIRST_START_US / 1e6, UTC) + timedelta(hours=1)
    last = first + timedelta(seconds=run.scaled(THOUSANDTH_SECONDS))
    return {"started": {"$gte": first.isoformat(), "$lt": last.isoformat()}}


def _duckdb_seconds(root: Path) -> float:
    """The same keys, in the same order, written to a file of the same page size."""
    import duckdb

    from holdfast.pipeline.schema import PROCESS_INSTANCES
    from holdfast.pipeline.tables.delta import files_at
    from holdfast.pipeline.tables.progress import load_progress

    version = load_progress(root).versions[PROCESS_INSTANCES.name]
    files = [file.path for file in files_at(root, PROCESS_INSTANCES, version)]
    query = (
        "SELECT partition_id, process_instance_key FROM read_parquet(?) WHERE state = 'ACTIVE'"
        " ORDER BY 1, 2"
    )
    with duckdb.connect() as database:
        begun = time.perf_counter()
        database.execute(
            f"COPY ({query}) TO '{root / 'duckdb.parquet'}' (ROW_GROUP_SIZE 10000)", [files]
        )
        return time.perf_counter() - begun
