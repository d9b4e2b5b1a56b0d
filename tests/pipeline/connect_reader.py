"""Reads a log and its tables through Spark Connect, and says what it found.

`python connect_reader.py SERVER FOLDER TABLES`: a process has one session, so this one is not the
process of the tests.
"""

import sys
from pathlib import Path

import msgspec

from holdfast.config import Config
from holdfast.logs import configure
from holdfast.pipeline import register
from holdfast.pipeline.reading import read_log
from holdfast.pipeline.schema import JOBS
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.selection import select
from holdfast.pipeline.session import open_session


class Found(msgspec.Struct):
    """What was read."""

    positions: list[tuple[int, int]]  # of every record: its partition and its position
    failed: int  # records that say that a job failed
    whole_log: int  # records in the tables and in the log behind them
    mail: list[int]  # keys of the jobs that a selection found, in their order


def main(server: str, folder: str, tables: Path) -> None:
    """Reads by the source, by a filter of Spark's, with the tables, and by a selection."""
    configure(json=False, level="error")
    spark = open_session(Config(spark_master=server), tables / "_spark")
    register(spark)
    log = spark.read.format("holdfast").load(folder)
    positions = [tuple(row) for row in log.select("partition_id", "position").collect()]
    failed = log.where("value_type = 'JOB' and intent = 'FAILED'").count()
    mail = select(spark, tables, JOBS, read_filter(JOBS, {"type": "mail"}), {}, 0)
    keys = [key for partition in mail.manifest.runs for key in mail.page(partition).keys]
    found = Found(sorted(positions), failed, read_log(spark, folder, tables).count(), keys)
    sys.stdout.buffer.write(msgspec.json.encode(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
