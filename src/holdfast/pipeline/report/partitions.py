"""Partitions: what each did, and how long it took."""

from typing import TYPE_CHECKING

from holdfast.pipeline.report import declare
from holdfast.pipeline.report.declare import Report, count, span
from holdfast.pipeline.report.latency import PARTS, percentiles
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import INCIDENTS, JOBS, PROCESS_INSTANCES, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def partitions(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """A line for each partition, the one with the slowest jobs first."""
    from pyspark.sql import functions as f

    del spark
    since_ms = tables.since_ms
    is_done = (f.col("state") == "COMPLETED") & (f.unix_millis("ended") >= since_ms)
    records = tables[RECORDS].where(f.unix_millis("timestamp") >= since_ms)
    written = records.groupBy("partition_id").agg(f.count("*").alias("records"))
    jobs = _done(tables[JOBS], is_done, "created", "job").withColumnsRenamed(
        {"done": "jobs", "unended": "open_jobs"}
    )
    instances = _done(tables[PROCESS_INSTANCES], is_done, "started", "instance").withColumnsRenamed(
        {"done": "instances", "unended": "running_instances"}
    )
    stuck = (
        tables[INCIDENTS]
        .groupBy("partition_id")
        .agg(f.count_if(f.col("state") == "OPEN").alias("open_incidents"))
    )
    counts = ("records", "jobs", "instances", "open_jobs", "running_instances", "open_incidents")
    return (
        written.join(jobs, "partition_id", "full")
        .join(instances, "partition_id", "full")
        .join(stuck, "partition_id", "full")
        .fillna(0, list(counts))
        .orderBy(
            f.desc_nulls_last("job_p90_ms"), f.desc_nulls_last("instance_p90_ms"), "partition_id"
        )
    )


def _done(frame: "DataFrame", is_done: "Column", begin: str, name: str) -> "DataFrame":
    """By partition: how many are done, how many have not ended, and how long the done ones took."""
    from pyspark.sql import functions as f

    took_ms = f.when(is_done, f.unix_millis("ended") - f.unix_millis(begin))
    counted = frame.groupBy("partition_id").agg(
        f.count_if(is_done).alias("done"),
        f.count_if(f.col("ended").isNull()).alias("unended"),
        percentiles(took_ms).alias("p"),
    )
    return counted.select(
        "partition_id",
        "done",
        "unended",
        *(f.col("p")[at].alias(f"{name}_p{part}_ms") for at, part in enumerate(PARTS)),
    )


PARTITIONS = Report(
    "partitions",
    "Partitions",
    "the work of each partition, and how long it took; the slowest first",
    "Is the work spread evenly, and is one partition slower than the others?",
    "for each partition, the one with the slowest jobs first",
    "a line for each partition, at most 12: its records, its jobs, and how long jobs took.",
    "records that were written and what was completed since; what is open counts in any case.",
    (
        declare.ReportColumn("partition_id", "int", "the partition"),
        count("records", "written to its log", "records"),
        count("jobs", "completed", "jobs"),
        count("instances", "of processes, completed", "instances"),
        count("open_jobs", "that have not ended", "jobs"),
        count("running_instances", "of processes", "instances"),
        count("open_incidents", "that are open", "incidents"),
        span("job_p50_ms", "the median time of jobs from creation to completion"),
        span("job_p90_ms", "the 90th percentile of jobs"),
        span("job_p99_ms", "the 99th percentile of jobs"),
        span("instance_p50_ms", "the median time of instances from start to completion"),
        span("instance_p90_ms", "the 90th percentile of instances"),
        span("instance_p99_ms", "the 99th percentile of instances"),
    ),
    partitions,
)
