"""Reading a log in Kafka for the tables: from the broker itself, and through a member.

Without Spark, which is the same around both: each side makes all records into rows as the table of
records has them.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec

from bench.harness import Figure, Run, remove
from bench.ours.kafka_cluster import OurKafkaCluster
from holdfast.client.remote import RemoteApi
from holdfast.gateway.tasks.shapes import NewTask

RECORDS = 200_000
BATCH = 5_000
PARTITIONS = 2
LOG = "bench"


def tables(run: Run) -> Iterator[Figure]:
    folder = run.folder("kafka-tables")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        options = ("--partitions", str(PARTITIONS))
        cluster = stack.enter_context(OurKafkaCluster(folder, LOG, ("a",), options))
        (url,) = cluster.urls
        asyncio.run(_fill(url, run.scaled(RECORDS)))
        yield Figure(
            name="rows of a log in Kafka, from the broker",
            against="the same through a member",
            goal=">= 1",
            unit="records/s",
            ours=lambda: rows_per_second(f"{cluster.broker.url}/{LOG}"),
            peer=lambda: rows_per_second(url),
        )


async def _fill(url: str, records: int) -> None:
    """Tasks that wait, of two records each."""
    api = RemoteApi(url)
    try:
        for _ in range(0, records, 2 * BATCH):
            await api.tasks.submit(
                [NewTask("later", msgspec.Raw(b'{"n":%d}' % n)) for n in range(BATCH)]
            )
    finally:
        await api.close()


def rows_per_second(address: str) -> float:
    """Makes all records of a log into rows."""
    from holdfast.pipeline.log import open_log
    from holdfast.pipeline.schema import RECORDS as TABLE
    from holdfast.pipeline.source_rows import records_as_arrow
    from holdfast.pipeline.wanted import Wanted

    log = open_log(address)
    bounds = log.bounds()
    log.close()
    begun, rows = time.perf_counter(), 0
    for partition, (earliest, end) in bounds.items():
        for batch in records_as_arrow(address, TABLE, Wanted(), partition, earliest, end):
            rows += batch.num_rows
    return rows / (time.perf_counter() - begun)
