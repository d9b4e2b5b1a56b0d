"""The process from which Spark forks its Python workers, with what they need imported.

A worker imports the engine, Arrow and pandas before its first row, which is a second of processor
time. Spark starts several at once; forked from here they have it all. Spark runs this module in
place of `pyspark.daemon` (`spark.python.daemon.module`), with the worker's module as its argument.
"""

import pandas  # noqa: F401
from pyspark.daemon import manager
from pyspark.sql import conversion, datasource, types  # noqa: F401
from pyspark.sql.pandas import serializers  # noqa: F401

from holdfast.pipeline import project, source, source_rows  # noqa: F401
from holdfast.pipeline.select import selection  # noqa: F401

if __name__ == "__main__":
    manager()
