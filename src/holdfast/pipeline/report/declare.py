"""What a report is: a name, what it tells, its columns, and the Spark job that makes it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from holdfast.pipeline.report.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ReportColumn(msgspec.Struct, frozen=True):
    """One column of a report."""

    name: str
    type: str  # as Spark names it
    about: str
    unit: str = ""  # what its numbers count, where they count something


class Report(msgspec.Struct, frozen=True):
    """One report: a pure function of the tables."""

    name: str
    title: str  # in plain words, over the picture
    about: str
    asks: str  # the questions that it answers
    row: str  # what one of its rows stands for, after "one row"
    picture: str  # what its picture shows, in a sentence
    since: str  # what is left out when only what happened since a time is asked for
    columns: tuple[ReportColumn, ...]
    make: Callable[["SparkSession", Tables], "DataFrame"]

    @property
    def ddl(self) -> str:
        """The columns as a schema that Spark reads."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def frame(self, spark: "SparkSession", tables: Tables) -> "DataFrame":
        """The report over these tables, with the columns that are declared."""
        from pyspark.sql import functions as f

        made = self.make(spark, tables)
        return made.select(
            *(f.col(column.name).cast(column.type).alias(column.name) for column in self.columns)
        )


def time(name: str, about: str) -> ReportColumn:
    return ReportColumn(name, "timestamp", about)


def count(name: str, about: str, unit: str) -> ReportColumn:
    """How many there are of something."""
    return ReportColumn(name, "bigint", about, unit)


def span(name: str, about: str) -> ReportColumn:
    """How long something takes; its name ends in the unit."""
    return ReportColumn(name, "bigint", about, "ms")


def rate(name: str, about: str, unit: str) -> ReportColumn:
    return ReportColumn(name, "double", about, unit)


def text(name: str, about: str) -> ReportColumn:
    return ReportColumn(name, "string", about)


def flag(name: str, about: str) -> ReportColumn:
    return ReportColumn(name, "boolean", about)
