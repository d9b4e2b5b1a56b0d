"""The whole log as one DataFrame: what the tables have at Parquet's speed, the rest as it is."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.pipeline.schema import RECORDS
from holdfast.pipeline.spark_types import ddl_of
from holdfast.pipeline.tables.delta import files_at
from holdfast.pipeline.tables.progress import load_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_log(spark: "SparkSession", address: str, tables: Path | None = None) -> "DataFrame":
    """Every record of a node, as of now.

    The pipeline seals what it has read as the Parquet files of the table `records`; Spark reads
    those itself. Only what came since is read from the log and decoded in Python.
    """
    from holdfast.pipeline import register

    register(spark)
    root = Path(address) / "tables" if tables is None else tables
    progress = load_progress(root)
    tail = spark.read.format("holdfast").option("path", address)
    if progress.batch < 0:
        return tail.load()
    files = files_at(root, RECORDS, progress.versions[RECORDS.name])
    behind = ",".join(f"{partition}:{at}" for partition, at in progress.records().items())
    sealed = spark.read.schema(ddl_of(RECORDS.columns)).parquet(*(each.path for each in files))
    return sealed.unionByName(tail.option("behind", behind).load())
