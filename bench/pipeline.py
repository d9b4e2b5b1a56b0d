"""The pipeline: reading the log in Spark, keeping tables fresh, and what it costs when idle."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.node import OurNode
from bench.ours.triggers import our_trigger_ms, rate_trigger_ms
from bench.places import SPARK
from holdfast.config import Config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.ours.tables import Backlog

MANY, FEW = 10_000_000, 1_000_000
LONG_ROUNDS = 1  # of what takes minutes
COLUMNS = ("partition_id", "position", "key", "intent", "timestamp")
TASKS_PER_SECOND = 500  # of two records each
FRESH_SECONDS = 20.0
IDLE_SECONDS = 20.0
IDLE_SHARE_MAX = 0.05  # of a core


@benchmark("pipeline")
def pipeline(run: Run) -> Iterator[Figure]:
    from holdfast.pipeline.session import open_session

    folder = run.folder("pipeline")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        spark = open_session(Config(log_level="error"), SPARK, lasting=True)
        stack.callback(spark.stop)
        yield Figure(
            name="a micro-batch of one task, into all tables",
            against="one of Spark's rate source, into nothing",
            goal="<= 1.3",
            unit="ms",
            ours=lambda: our_trigger_ms(spark, folder / "small"),
            peer=lambda: rate_trigger_ms(spark, folder / "rate"),
        )
        yield from _backlog(run, spark, folder)
    yield from _beside_a_node(run)


def _beside_a_node(run: Run) -> Iterator[Figure]:
    """As a user has it: `holdfast start --pipeline`."""
    from bench.ours.tables import Freshness

    folder = run.folder("fresh")
    scale = 0.25 if run.quick else 1.0
    try:
        with OurNode(folder, pipeline=True) as node:
            fresh = Freshness(node.url, folder / "tables")
            yield Figure(
                name="from acknowledged to in the tables, 1,000 records/s, p99",
                against="a second",
                goal="<= 1",
                unit="s",
                ours=lambda: _p99(fresh.spans(TASKS_PER_SECOND, FRESH_SECONDS * scale)),
                peer=fixed(1.0),
            )
            yield Figure(
                name="an idle pipeline",
                against="5% of a core",
                goal="<= 1",
                unit="of a core",
                ours=lambda: _share_of_a_core(node.below(), IDLE_SECONDS * scale),
                peer=fixed(IDLE_SHARE_MAX),
            )
    finally:
        remove(folder)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[-1]


def _share_of_a_core(processes: list[psutil.Process], seconds: float) -> float:
    begun = sum(_processor_seconds(each) for each in processes)
    time.sleep(seconds)
    return (sum(_processor_seconds(each) for each in processes) - begun) / seconds


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _backlog(run: Run, spark: "SparkSession", folder: Path) -> Iterator[Figure]:
    from bench.ours.tables import MEGABYTE, Backlog

    few = Backlog(folder / "few", run.scaled(FEW))
    many = Backlog(folder / "many", run.scaled(MANY))
    yield Figure(
        name=f"cost of a record, backlog of {many.records:,}",
        against=f"a backlog of {few.records:,}",
        goal="<= 1.15",
        unit="us/record",
        ours=lambda: many.microseconds_per_record(spark),
        peer=lambda: few.microseconds_per_record(spark),
        warm_up=False,
        rounds_max=LONG_ROUNDS,
    )
    yield Figure(
        name=f"peak memory, backlog of {many.records:,}, Spark and its workers",
        against=f"a backlog of {few.records:,}",
        goal="<= 1.15",
        unit="MB",
        ours=lambda: many.peak_bytes / MEGABYTE,
        peer=lambda: few.peak_bytes / MEGABYTE,
        warm_up=False,
        rounds_max=1,
    )
    yield from _reading(spark, few)


def _reading(spark: "SparkSession", log: "Backlog") -> Iterator[Figure]:
    """The same rows and columns of the log, read in three ways."""
    from bench.ours.row_source import RowSource
    from holdfast.pipeline.reading import read_log
    from holdfast.pipeline.schema import RECORDS as TABLE
    from holdfast.pipeline.tables.delta import files_at
    from holdfast.pipeline.tables.progress import load_progress

    spark.dataSource.register(RowSource)
    root = log.folder / "tables"

    def native() -> "DataFrame":
        log.make_tables(spark)
        version = load_progress(root).versions[TABLE.name]
        return spark.read.parquet(*(each.path for each in files_at(root, TABLE, version)))

    def sealed() -> "DataFrame":
        log.make_tables(spark)
        return read_log(spark, str(log.folder))

    ours = _rate(sealed)
    yield Figure(
        name="reading the log",
        against="Spark's own scan of the same Parquet files",
        goal=">= 0.6",
        unit="records/s",
        ours=ours,
        peer=_rate(native),
    )
    yield Figure(
        name="reading the log, not row by row",
        against="the same source, row by row",
        goal=">= 6",
        unit="records/s",
        ours=ours,
        peer=_rate(lambda: spark.read.format(RowSource.name()).load(str(log.folder))),
    )


def _rate(frame: "Callable[[], DataFrame]") -> Callable[[], float]:
    def measure() -> float:
        data = frame().select(*COLUMNS)
        begun = time.perf_counter()
        data.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begun
        return data.count() / seconds

    return measure
