"""The pipeline: reading the log in Spark, keeping tables fresh, and what it costs when idle."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.harness import Figure, Run, benchmark, remove
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.gateway.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.node import LocalNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = 2_000_000
COLUMNS = ("partition_id", "position", "key", "intent", "timestamp")
BATCH = 5_000
CACHE = Path("build/spark")


@benchmark("pipeline")
def pipeline(run: Run) -> Iterator[Figure]:
    from holdfast.pipeline.session import open_session

    folder = run.folder("pipeline")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        spark = open_session(Config(log_level="error"), CACHE.absolute())
        stack.callback(spark.stop)
        many, few = run.scaled(RECORDS), run.scaled(RECORDS) // 10
        asyncio.run(_write_log(folder / "few", few))
        asyncio.run(_write_log(folder / "many", many))
        yield Figure(
            name=f"cost of a record, backlog of {many:,}",
            against=f"a backlog of {few:,}",
            goal="<= 1.15",
            unit="us/record",
            ours=lambda: _project(spark, folder / "many") / many * 1e6,
            peer=lambda: _project(spark, folder / "few") / few * 1e6,
            warm_up=False,
        )
        yield from _reading(spark, folder / "many")


def _reading(spark: "SparkSession", folder: Path) -> Iterator[Figure]:
    """The same rows and columns of the log, read in three ways."""
    from holdfast.pipeline.reading import read_log
    from holdfast.pipeline.schema import RECORDS as TABLE
    from holdfast.pipeline.tables.delta import files_at
    from holdfast.pipeline.tables.progress import load_progress

    root = folder / "tables"
    version = load_progress(root).versions[TABLE.name]
    files = [each.path for each in files_at(root, TABLE, version)]
    log = _rate(lambda: read_log(spark, str(folder)))
    yield Figure(
        name="reading the log",
        against="Spark's own scan of the same Parquet files",
        goal=">= 0.6",
        unit="records/s",
        ours=log,
        peer=_rate(lambda: spark.read.parquet(*files)),
    )
    yield Figure(
        name="reading the log, sealed",
        against="decoding it in Python",
        goal=">= 6",
        unit="records/s",
        ours=log,
        peer=_rate(lambda: spark.read.format("holdfast").load(str(folder))),
    )


def _rate(frame: Any) -> Any:
    def measure() -> float:
        data: DataFrame = frame().select(*COLUMNS)
        begun = time.perf_counter()
        data.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begun
        return data.count() / seconds

    return measure


def _project(spark: "SparkSession", folder: Path) -> float:
    """Seconds until a log is in new tables."""
    from holdfast.pipeline.project import Projection

    remove(folder / "tables")
    projection = Projection(str(folder), folder / "tables", SystemClock())
    begun = time.perf_counter()
    projection.start(spark, available_now=True).awaitTermination()
    return time.perf_counter() - begun


async def _write_log(folder: Path, records: int) -> None:
    """Tasks that are submitted, leased and completed, about five records each."""
    node = await LocalNode.open(folder, Config(log_level="error"))
    request = ActivationRequest(["nothing"], jobs_max=BATCH, wait_ms=1_000)
    while (
        sum(node.journal.bounds("records", each).next for each in node.runner.processors) < records
    ):
        tasks = [NewTask("nothing", msgspec.Raw(b'{"n":%d}' % n)) for n in range(BATCH)]
        await node.gateway.submit(tasks)
        jobs = await node.gateway.activate(request)
        await node.gateway.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
    await node.close()
