"""The data pipeline on Spark: the journal becomes tables that can be asked."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Makes `holdfast` a format that a session of yours reads, follows and writes."""
    from holdfast.pipeline.source import HoldfastSource  # it needs pyspark, which may be missing

    spark.dataSource.register(HoldfastSource)
