"""Throughput: jobs and instances completed, records written, over time."""

from functools import reduce
from typing import TYPE_CHECKING

from holdfast.pipeline.report.declare import Report, count, flag, rate, time
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import JOBS, PROCESS_INSTANCES, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.pipeline.report.results import Rows

MEASURES = ("jobs", "instances", "records")


def shown_pieces(rows: "Rows") -> "Rows":
    """The pieces that text and pictures show: those that are known whole, if there are two.

    The first and the last piece are cut off somewhere: their rates would be too low.
    """
    whole = [row for row in rows if row["is_whole"]]
    return whole if len(whole) > 1 else rows


def peak_per_minute(rows: "Rows", measure: str) -> float:
    """The highest rate of the pieces that are shown."""
    return max((row[f"{measure}_per_minute"] for row in shown_pieces(rows)), default=0.0)


def throughput(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """Counts by piece of time, in the order of time; pieces in which nothing happened have 0."""
    from pyspark.sql import functions as f

    buckets = tables.buckets
    if buckets is None:
        return spark.createDataFrame([], THROUGHPUT.ddl)
    is_done = f.col("state") == "COMPLETED"
    moments = {
        "jobs": tables[JOBS].where(is_done).select(f.unix_millis("ended").alias("at")),
        "instances": (
            tables[PROCESS_INSTANCES].where(is_done).select(f.unix_millis("ended").alias("at"))
        ),
        "records": tables[RECORDS].select(f.unix_millis("timestamp").alias("at")),
    }
    happened = reduce(
        lambda one, other: one.unionAll(other),
        (each.withColumn("measure", f.lit(name)) for name, each in moments.items()),
    )
    counted = (
        happened.where(f.col("at").between(buckets.first_ms, buckets.last_ms))
        .groupBy(buckets.number(f.col("at")).alias("bucket"))
        .agg(*(f.count_if(f.col("measure") == name).alias(name) for name in MEASURES))
    )
    minutes = buckets.step_ms / 60_000
    counts = [f.coalesce(name, f.lit(0)) for name in MEASURES]
    return (
        buckets.all(spark)
        .join(counted, "bucket", "left")
        .select(
            "bucket",
            f.timestamp_millis("start_ms").alias("time"),
            f.lit(buckets.step_ms / 1_000).alias("seconds"),
            "is_whole",
            *(each.alias(name) for name, each in zip(MEASURES, counts, strict=True)),
            *(
                (each / minutes).alias(f"{name}_per_minute")
                for name, each in zip(MEASURES, counts, strict=True)
            ),
        )
        .orderBy("bucket")
    )


THROUGHPUT = Report(
    "throughput",
    "Throughput",
    "jobs and process instances completed and records written, over time",
    "What is the throughput, when is the peak, and did work stop at some time?",
    "for each interval, the earliest first; at most 120, including those in which nothing happened",
    "three strips over one axis of time, for jobs, instances and records, each with its peak."
    " Text and picture omit incomplete intervals, if there are two complete ones.",
    "the intervals start then.",
    (
        time("time", "the start of the interval"),
        rate("seconds", "its length", "s"),
        flag("is_whole", "whether the whole interval is within the reported time"),
        count("jobs", "completed in the interval", "jobs"),
        count("instances", "of processes, completed in the interval", "instances"),
        count("records", "written in the interval", "records"),
        rate("jobs_per_minute", "as a rate", "jobs/min"),
        rate("instances_per_minute", "as a rate", "instances/min"),
        rate("records_per_minute", "as a rate", "records/min"),
    ),
    throughput,
)
