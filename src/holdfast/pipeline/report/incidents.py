"""Incidents: the most frequent ones, and how soon they are resolved."""

from typing import TYPE_CHECKING

from holdfast.pipeline.report.declare import Report, count, span, text, time
from holdfast.pipeline.report.tables import Tables
from holdfast.pipeline.schema import INCIDENTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

GROUPS_MAX = 100
ERROR_CHARACTERS_MAX = 200
_BY = ("process_id", "element_id", "type", "reason", "error")


def incidents(spark: "SparkSession", tables: Tables) -> "DataFrame":
    """Incidents of one kind in a line; first those of which the most are open."""
    from pyspark.sql import functions as f

    del spark
    found = tables[INCIDENTS]
    lasted_ms = f.unix_millis("ended") - f.unix_millis("created")
    states = {"open": "OPEN", "resolved": "RESOLVED", "discarded": "DISCARDED"}
    return (
        found.where(f.col("ended").isNull() | (f.unix_millis("ended") >= tables.since_ms))
        .withColumn("error", _said(f.col("error")))
        .groupBy(*_BY)
        .agg(
            f.count("*").alias("total"),
            *(f.count_if(f.col("state") == state).alias(name) for name, state in states.items()),
            f.round(f.avg(f.when(f.col("state") == "RESOLVED", lasted_ms))).alias(
                "resolve_mean_ms"
            ),
            f.min(f.when(f.col("state") == "OPEN", f.col("created"))).alias("open_since"),
            f.max("created").alias("last"),
        )
        .orderBy(f.desc("open"), f.desc("total"), *_BY)
        .limit(GROUPS_MAX)
    )


def _said(error: "Column") -> "Column":
    """The line that says what is wrong: the first; of a traceback the last."""
    from pyspark.sql import functions as f

    whole = f.regexp_replace(error, r"^\s+|\s+$", "")
    is_traceback = whole.startswith("Traceback ")
    line = f.when(is_traceback, f.substring_index(whole, "\n", -1))
    return f.substring(line.otherwise(f.substring_index(whole, "\n", 1)), 1, ERROR_CHARACTERS_MAX)


INCIDENTS_REPORT = Report(
    "incidents",
    "Incidents",
    "by process, element, job type, reason and error, open and resolved",
    "Which incidents are open, which error causes most of them, and how soon are they resolved?",
    "for each kind of incident, those first of which the most are open; at most 100",
    "a bar for each of the eight kinds that come first, divided into open, resolved and discarded.",
    "incidents that are open, and those that ended since.",
    (
        text("process_id", "of the instance"),
        text("element_id", "the element with the incident"),
        text("type", "of the job, if it is about one"),
        text("reason", "the cause of the incident"),
        text("error", "the first line of the error, or the last of a traceback"),
        count("total", "the number of incidents", "incidents"),
        count("open", "the number of open incidents", "incidents"),
        count("resolved", "the number of resolved incidents", "incidents"),
        count("discarded", "the number of discarded incidents", "incidents"),
        span("resolve_mean_ms", "how long it took to resolve one, on average"),
        time("open_since", "the creation of the oldest open incident"),
        time("last", "the creation of the latest incident"),
    ),
    incidents,
)
