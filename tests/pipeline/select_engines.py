"""The same filters over the same rows, by DuckDB, by Arrow and by Spark; many filters at once."""

from pathlib import Path
from typing import Any as Json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from tests.pipeline.select_reference import THINGS

from holdfast.pipeline.select.scan import keys_in
from holdfast.pipeline.select.spark import column_of
from holdfast.pipeline.select.sql import sql_of
from holdfast.pipeline.select.tree import Condition

Found = list[set[int]]  # by filter, the keys of the rows that meet it


def by_duckdb(rows: pa.Table, conditions: list[Condition]) -> Found:
    found: Found = []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("things", rows)
        for condition in conditions:
            where = sql_of(condition)
            query = f"SELECT thing_key FROM things WHERE {where.text}"
            keys = connection.execute(query, list(where.parameters)).fetchall()
            found.append({key for (key,) in keys})
    return found


def by_arrow(folder: Path, rows: pa.Table, conditions: list[Condition]) -> Found:
    """As a selection does it: from a file, of which groups of rows are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "things.parquet"
    pq.write_table(rows, path, row_group_size=4)
    return [set(keys_in(THINGS, [str(path)], each).to_pylist()) for each in conditions]


def by_spark(spark: Json, folder: Path, rows: pa.Table, conditions: list[Condition]) -> Found:
    """One job: a column for each filter."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "things.parquet"
    pq.write_table(rows, path)
    columns = [
        f.coalesce(column_of(condition), f.lit(False)).alias(f"met_{number}")
        for number, condition in enumerate(conditions)
    ]
    answers = spark.read.parquet(str(path)).select("thing_key", *columns).toArrow()
    keys = answers.column("thing_key").to_pylist()
    return [
        {key for key, met in zip(keys, answers.column(at + 1).to_pylist(), strict=True) if met}
        for at in range(len(conditions))
    ]


def by_spark_where(spark: Json, path: Path, condition: Condition) -> set[int]:
    """As a selection with a join does it: with the filter pushed down into the file."""
    rows = spark.read.parquet(str(path)).where(column_of(condition)).select("thing_key").collect()
    return {row.thing_key for row in rows}
