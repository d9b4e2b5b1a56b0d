"""Our source of Spark as it would be without Arrow: every row a tuple."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from holdfast.pipeline.source import HoldfastSource


class RowSource(HoldfastSource):
    @classmethod
    def name(cls) -> str:
        return "holdfast-rows"

    def reader(self, schema: StructType) -> DataSourceReader:
        return RowReader(super().reader(schema))


class RowReader(DataSourceReader):
    def __init__(self, reader: DataSourceReader) -> None:
        self._reader = reader

    def partitions(self) -> Any:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        batches: Any = self._reader.read(partition)
        for batch in batches:
            for row in batch.to_pylist():
                yield tuple(row.values())
