"""A pipeline of ours: a backlog that it takes, and how soon it shows what comes."""

import asyncio
import threading
import time
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from bench.harness import remove
from holdfast.client.remote import RemoteApi
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.node import LocalNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 5_000
MEGABYTE = 1_000_000
LOOK_SECONDS = 0.005
WAIT_SECONDS = 60


class Backlog:
    """A log of so many records, which is made into tables again and again.

    It is written when it is first needed: that takes minutes.
    """

    def __init__(self, folder: Path, records: int) -> None:
        self.folder = folder
        self.records = records
        self.peak_bytes = 0

    def make_tables(self, spark: "SparkSession") -> None:
        """Tables of it, if there are none."""
        if not (self.folder / "tables").exists():
            self.microseconds_per_record(spark)

    def microseconds_per_record(self, spark: "SparkSession") -> float:
        from holdfast.pipeline.project import Projection

        if not self.folder.exists():
            asyncio.run(_write_log(self.folder, self.records))
        tables = self.folder / "tables"
        remove(tables)
        projection = Projection(str(self.folder), tables, SystemClock())
        with _Watch() as watch:
            begun = time.perf_counter()
            projection.start(spark, available_now=True).awaitTermination()
            seconds = time.perf_counter() - begun
        self.peak_bytes = max(self.peak_bytes, watch.peak_bytes)
        return seconds / sum(projection.progress.positions.values()) * 1e6


class _Watch:
    """The most memory that this process and all below it hold: Spark's Java and its workers."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.5):
            self.peak_bytes = max(self.peak_bytes, memory_bytes(psutil.Process()))


def memory_bytes(process: psutil.Process) -> int:
    """What a process and all below it hold of their own."""
    found = 0
    for each in (process, *process.children(recursive=True)):
        try:
            found += each.memory_full_info().uss
        except psutil.Error:
            continue  # it is gone meanwhile
    return found


async def _write_log(folder: Path, records: int) -> None:
    """Tasks that are submitted, leased and completed, about five records each."""
    node = await LocalNode.open(folder, Config(log_level="error"))
    request = ActivationRequest(["nothing"], jobs_max=BATCH, wait_ms=1_000)
    partitions = node.runner.processors
    while sum(node.journal.bounds("records", each).next for each in partitions) < records:
        tasks = [NewTask("nothing", msgspec.Raw(b'{"n":%d}' % n)) for n in range(BATCH)]
        await node.gateway.tasks.submit(tasks)
        jobs = await node.gateway.jobs.activate(request)
        await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
    await node.close()


class Freshness:
    """How long it takes from the acknowledgement of tasks until the tables have them."""

    def __init__(self, url: str, tables: Path) -> None:
        self._url = url
        self._tables = tables

    def spans(self, tasks_per_second: int, seconds: float) -> list[float]:
        """In seconds, of each submission."""
        return asyncio.run(self._spans(tasks_per_second, seconds))

    async def _spans(self, tasks_per_second: int, seconds: float) -> list[float]:
        api = RemoteApi(self._url)
        try:
            before = await self._settled()
            seen: list[tuple[int, float]] = []
            watching = asyncio.create_task(self._watch(seen))
            times = await _submit(api, tasks_per_second, seconds)
            after = await self._settled()
            watching.cancel()
        finally:
            await api.close()
        each = (after - before) / len(times)
        totals = [total for total, _ in seen]
        ends = [before + each * number for number in range(1, len(times) + 1)]
        found = [seen[bisect_left(totals, end)][1] for end in ends]
        return [shown - sent for shown, sent in zip(found, times, strict=True)]

    async def _watch(self, seen: list[tuple[int, float]]) -> None:
        """Notes when the tables have how many records."""
        while True:
            total = self._total()
            if not seen or total > seen[-1][0]:
                seen.append((total, time.perf_counter()))
            await asyncio.sleep(LOOK_SECONDS)

    async def _settled(self) -> int:
        """How many records the tables have once no more come."""
        total, since = -1, time.monotonic()
        deadline = since + WAIT_SECONDS
        while time.monotonic() - since < 3:
            if (now := self._total()) != total:
                total, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise TimeoutError("expected the tables to settle, but they do not")
            await asyncio.sleep(LOOK_SECONDS)
        return total

    def _total(self) -> int:
        from holdfast.pipeline.tables.progress import load_progress

        return sum(load_progress(self._tables).positions.values())


async def _submit(api: RemoteApi, tasks_per_second: int, seconds: float) -> list[float]:
    """Submits evenly; returns when each was acknowledged."""
    interval = 0.05
    tasks = [NewTask("later", msgspec.Raw(b"[1]")) for _ in range(int(tasks_per_second * interval))]
    begun, times = time.perf_counter(), []
    for number in range(int(seconds / interval)):
        await api.tasks.submit(tasks)
        times.append(time.perf_counter())
        await asyncio.sleep(max(0.0, begun + (number + 1) * interval - time.perf_counter()))
    return times
