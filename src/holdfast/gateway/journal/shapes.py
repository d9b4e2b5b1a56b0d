"""The shapes of the API about the log itself."""

from holdfast.gateway.numbers import Partition, Position, ReadBytes, TimestampMs
from holdfast.gateway.shapes import Question, Shape
from holdfast.limits import READ_BYTES_MAX


class PartitionBounds(Shape, frozen=True):
    """The positions of a partition that can be read: earliest <= position < next."""

    partition_id: int
    earliest: int
    next: int


class JournalBounds(Shape, frozen=True):
    """What can be read of the log now, by partition."""

    partitions: list[PartitionBounds]


class JournalSince(Question, frozen=True):
    """Since when."""

    since_ms: TimestampMs  # since the epoch


class JournalQuery(Question, frozen=True):
    """Which part of the log to read."""

    partition: Partition
    position: Position
    bytes_max: ReadBytes = READ_BYTES_MAX  # about so much, but one entry at least
