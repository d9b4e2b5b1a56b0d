"""Time cut into pieces of one length, of which there are enough to see and not too many to read."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

POINTS_MAX = 120
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
# Each is at most 3.5 times the one before: a report with too many points gets at least 34.
_STEPS_MS = (
    100, 200, 500,
    _SECOND, 2 * _SECOND, 5 * _SECOND, 10 * _SECOND, 30 * _SECOND,
    _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY, 364 * _DAY,
)  # fmt: skip


class Buckets(msgspec.Struct, frozen=True):
    """Pieces of time that begin at round moments and cover all from the first to the last."""

    first_ms: int  # what is looked at begins here, inside the first piece
    last_ms: int  # ... and ends here, inside the last
    step_ms: int

    @property
    def start_ms(self) -> int:
        return self.first_ms - self.first_ms % self.step_ms

    @property
    def count(self) -> int:
        return (self.last_ms - self.start_ms) // self.step_ms + 1

    def number(self, moment_ms: "Column") -> "Column":
        """The number of the piece that a moment is in; moments outside are in the outermost."""
        from pyspark.sql import functions as f

        number = f.floor((moment_ms - self.start_ms) / self.step_ms)
        return f.least(f.greatest(number, f.lit(0)), f.lit(self.count - 1))

    def all(self, spark: "SparkSession") -> "DataFrame":
        """Every piece: its number, where it begins, where it ends, if we know all of it."""
        from pyspark.sql import functions as f

        start = f.col("bucket") * self.step_ms + self.start_ms
        end = start + self.step_ms
        return (
            spark.range(self.count, numPartitions=1)
            .withColumnRenamed("id", "bucket")
            .withColumn("start_ms", start)
            .withColumn("end_ms", f.least(end, f.lit(self.last_ms)))
            .withColumn("is_whole", (start >= self.first_ms) & (end <= self.last_ms))
        )


def buckets_of(first_ms: int, last_ms: int) -> Buckets:
    """The finest pieces that are few enough."""
    for step_ms in _STEPS_MS:
        buckets = Buckets(first_ms, last_ms, step_ms)
        if buckets.count <= POINTS_MAX:
            return buckets
    return Buckets(first_ms, last_ms, (last_ms - first_ms) // (POINTS_MAX // 2))
