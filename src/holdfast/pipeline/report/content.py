"""Content: the lag of each subscriber, and what it fails at."""

from typing import TYPE_CHECKING

from holdfast.pipeline.report.declare import Report, count, flag, span, text, time
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import CONTENT_DELIVERIES, CONTENT_PACKAGES, CONTENT_SUBSCRIBERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_MAX = 1_000  # as many subscribers as a node knows
_BY = ("publisher", "subscriber")


def content(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """A line for each subscriber of each publisher; first those that are furthest behind."""
    from pyspark.sql import functions as f

    del spark
    published = (
        tables[CONTENT_PACKAGES].groupBy("publisher").agg(f.max("number").alias("last_number"))
    )
    imported_ms = f.col("import_ms") / f.col("imported")
    return (
        _last_said(tables)
        .join(published, "publisher", "full")
        .join(_failed(tables), list(_BY), "left")
        .withColumn("published", f.greatest("last_number", "number"))
        .withColumn("lag", f.col("published") - f.col("number"))
        .withColumn("import_mean_ms", f.when(f.col("imported") > 0, f.round(imported_ms)))
        .withColumn("failed", f.when(f.col("subscriber").isNotNull(), f.ifnull("failed", f.lit(0))))
        .orderBy(f.desc_nulls_last("lag"), f.desc_nulls_last("failed"), *_BY)
        .limit(ROWS_MAX)
    )


def _last_said(tables: Tables) -> "DataFrame":
    """What each subscriber said last, of each publisher."""
    from pyspark.sql import functions as f

    said = ("number", "retries", "reason", "ready", "imported", "import_ms", "host", "heard")
    heard = tables[CONTENT_SUBSCRIBERS].where(f.unix_millis("heard") >= tables.since_ms)
    return (
        heard.groupBy(*_BY)
        .agg(f.max_by(f.struct(*said), "position").alias("last"))
        .select(*_BY, *(f.col(f"last.{name}") for name in said))
    )


def _failed(tables: Tables) -> "DataFrame":
    """How many packages subscribers gave up on and did not import since, and why the last one."""
    from pyspark.sql import functions as f

    last = f.max_by(f.struct("outcome", "reason", "position"), "position")
    return (
        tables[CONTENT_DELIVERIES]
        .groupBy(*_BY, "package_position")
        .agg(last.alias("last"))
        .where(f.col("last.outcome") == "REMOVED_FAILED")
        .groupBy(*_BY)
        .agg(
            f.count("*").alias("failed"),
            f.max_by("last.reason", "last.position").alias("failed_reason"),
        )
    )


CONTENT_REPORT = Report(
    "content",
    "Content",
    "the lag of each subscriber, how long an import takes, and what fails",
    "Which subscribers lag, by how much, and which packages did they reject, and why?",
    "for each subscriber of each publisher, those first that are furthest behind; at most 1,000;"
    " a publisher without subscribers has a row of its own",
    "a bar for each of the eight subscribers that come first: how many packages it is behind, with"
    " what it fails at.",
    "subscribers that were heard of since; their lag and what they refused count in any case.",
    (
        text("publisher", "whose packages"),
        text("subscriber", "who takes them"),
        count("published", "the number of the publisher's last package", "packages"),
        count("number", "of the last package that the subscriber has done with", "packages"),
        count("lag", "that it has still to take", "packages"),
        count("retries", "of the package that it is at", "attempts"),
        text("reason", "why the next package fails"),
        count("failed", "that it gave up on and did not import since", "packages"),
        text("failed_reason", "why it gave up on the last of them"),
        flag("ready", "whether it has caught up since it started"),
        count("imported", "since it started, of all publishers", "packages"),
        span("import_mean_ms", "how long it took to import one, on average"),
        text("host", "where it runs"),
        time("heard", "the time of its last announcement"),
    ),
    content,
)
