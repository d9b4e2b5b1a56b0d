"""Backlog: jobs that have not ended and running instances, over time."""

from functools import reduce
from typing import TYPE_CHECKING

from holdfast.pipeline.report.declare import Report, count, time
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import INCIDENTS, JOBS, PROCESS_INSTANCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEVELS = ("unended_jobs", "jobs_at_incident", "instances")


def backlog(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """The level at the end of each piece of time, in the order of time.

    Each beginning adds one and each end takes one away; the level is their sum so far.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    buckets = tables.buckets
    if buckets is None:
        return spark.createDataFrame([], BACKLOG.ddl)
    steps = reduce(lambda one, other: one.unionAll(other), _steps(tables))
    changes = steps.groupBy(buckets.number(f.col("at")).alias("bucket")).agg(
        *(f.sum(f.when(f.col("level") == name, f.col("step"))).alias(name) for name in LEVELS)
    )
    so_far = Window.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        buckets.all(spark)
        .join(changes, "bucket", "left")
        .select(
            "bucket",
            f.timestamp_millis("end_ms").alias("time"),
            *(f.coalesce(f.sum(name).over(so_far), f.lit(0)).alias(name) for name in LEVELS),
        )
        .withColumn("jobs", f.col("unended_jobs") - f.col("jobs_at_incident"))
        .orderBy("bucket")
    )


def _steps(tables: Tables) -> "list[DataFrame]":
    """When which level rises or falls."""
    from pyspark.sql import functions as f

    stuck = tables[INCIDENTS].where(f.col("job_key").isNotNull())
    found = (
        ("unended_jobs", tables[JOBS], "created"),
        ("jobs_at_incident", stuck, "created"),
        ("instances", tables[PROCESS_INSTANCES], "started"),
    )
    return [
        frame.where(f.col(begin).isNotNull() & f.col(moment).isNotNull()).select(
            f.lit(level).alias("level"),
            f.unix_millis(moment).alias("at"),
            f.lit(step).alias("step"),
        )
        for level, frame, begin in found
        for moment, step in ((begin, 1), ("ended", -1))
    ]


BACKLOG = Report(
    "backlog",
    "Backlog",
    "jobs that have not ended and running process instances, over time",
    "Do the workers keep up, and how much work is waiting?",
    "for each interval, with the values at its end, the earliest first; at most 120",
    "a strip each for jobs, for jobs at incidents if there were any, and for instances that run,"
    " over one axis of time, each with its peak.",
    "the intervals start then; earlier work counts in the first.",
    (
        time("time", "the moment"),
        count("jobs", "waiting, scheduled or active at that time", "jobs"),
        count("jobs_at_incident", "with an open incident at that time", "jobs"),
        count("instances", "of processes, running at that time", "instances"),
    ),
    backlog,
)
