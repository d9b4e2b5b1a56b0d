"""Latency: processes, their elements, and jobs, waiting and running."""

from functools import reduce
from typing import TYPE_CHECKING

from holdfast.pipeline.report.declare import Report, count, span, text
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import ELEMENT_INSTANCES, JOBS, PROCESS_INSTANCES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SUBJECTS = ("process", "element", "waiting", "running")
PARTS = (50, 90, 99)  # of 100, that take no longer
ACCURACY = 10_000  # a percentile is off by at most one in so many


def percentiles(spent_ms: "Column") -> "Column":
    """The spans that so many PARTS do not exceed, each one that was measured."""
    from pyspark.sql import functions as f

    return f.percentile_approx(spent_ms, [part / 100 for part in PARTS], ACCURACY)


def latency(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """A line for each process, element and type of job; in each group the slowest first."""
    from pyspark.sql import functions as f

    del spark
    spans = reduce(lambda one, other: one.unionAll(other), _spans(tables))
    return (
        spans.where(f.col("until") >= tables.since_ms)
        .groupBy("rank", "process_id", "name")
        .agg(
            f.count("*").alias("count"),
            percentiles(f.col("until") - f.col("since")).alias("p"),
            f.max(f.col("until") - f.col("since")).alias("max_ms"),
        )
        .select(
            "*",
            f.element_at(f.array(*map(f.lit, SUBJECTS)), f.col("rank") + 1).alias("subject"),
            *(f.col("p")[at].alias(f"p{part}_ms") for at, part in enumerate(PARTS)),
        )
        .orderBy("rank", f.desc("p99_ms"), f.desc("max_ms"), "process_id", "name")
    )


def _spans(tables: Tables) -> "list[DataFrame]":
    """Each subject's spans: whose they are, since when and until when."""
    from pyspark.sql import functions as f

    none = f.lit(None).cast("string")
    is_done = f.col("state") == "COMPLETED"
    instances = tables[PROCESS_INSTANCES].where(is_done)
    elements = tables[ELEMENT_INSTANCES].where(is_done)
    jobs = tables[JOBS].where(f.col("activated").isNotNull())
    found = [
        (instances, f.col("process_id"), none, "started", "ended"),
        (elements, f.col("process_id"), f.col("element_id"), "started", "ended"),
        (jobs, none, f.col("type"), "created", "activated"),
        (jobs.where(is_done), none, f.col("type"), "activated", "ended"),
    ]
    return [
        frame.where(f.col(since).isNotNull() & f.col(until).isNotNull()).select(
            f.lit(rank).alias("rank"),
            process.alias("process_id"),
            name.alias("name"),
            f.unix_millis(since).alias("since"),
            f.unix_millis(until).alias("until"),
        )
        for rank, (frame, process, name, since, until) in enumerate(found)
    ]


LATENCY = Report(
    "latency",
    "Latency",
    "percentiles of the durations of processes, their elements and jobs",
    "How long does an order take, at which step does it spend the time, and do jobs wait for"
    " workers?",
    "for each process, each element and each type of job (waiting and running apart); in each"
    " subject the slowest first",
    "a line for each of the six slowest of a subject: a dot for the half, a bar to 9 of 10, a tick"
    " at 99 of 100, on a logarithmic axis.",
    "only what ended since; a job that waited: what a worker was given since.",
    (
        text(
            "subject",
            "process and element: from start to completion; waiting: a job, from its creation until"
            " a worker was last given it; running: from then until it was completed",
        ),
        text("process_id", "of the process or the element"),
        text("name", "the element's id or the job's type"),
        count("count", "the number of measurements", "spans"),
        span("p50_ms", "the median"),
        span("p90_ms", "the 90th percentile"),
        span("p99_ms", "the 99th percentile"),
        span("max_ms", "the maximum"),
    ),
    latency,
)
