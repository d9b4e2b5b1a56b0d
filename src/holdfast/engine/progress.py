"""What can be asked of any partition, whatever its domains."""

import msgspec

from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.reader import Reader
from holdfast.journal import Entry


class FoundProgress(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a partition is."""

    next_position: int  # of the next record
    processed_position: int  # of the last command that was processed
    key_counter: int  # of the last key that was given out
    log_end: int | None = None  # behind the last entry, by the journal's count, which may have gaps


class FindProgress(Query[FoundProgress], frozen=True):
    """How far a partition is."""


def find_progress(reader: Reader, query: FindProgress) -> FoundProgress:
    processor = reader.processor
    progress = processor.progress
    return FoundProgress(
        processor.next_position, progress.processed_position, progress.key_counter,
        reader.journal.bounds(TOPIC, reader.partition).next,
    )  # fmt: skip


class FindBounds(Query[tuple[int, int]], frozen=True):
    """Where the log of a partition begins and ends; with a time, where what came since begins."""

    is_settled = is_fresh = False  # the journal tells only what is durable
    since_ms: int | None = None


def find_bounds(reader: Reader, query: FindBounds) -> tuple[int, int]:
    earliest, end = reader.journal.bounds(TOPIC, reader.partition)
    if query.since_ms is not None:
        earliest = reader.journal.offset_at(TOPIC, reader.partition, query.since_ms)
    return earliest, end


class ReadLog(Query[list[Entry]], frozen=True):
    """Entries of the log of a partition, from a position on."""

    is_settled = is_fresh = False
    position: int
    bytes_max: int


async def read_log(reader: Reader, query: ReadLog) -> list[Entry]:
    return await reader.journal.read(TOPIC, reader.partition, query.position, query.bytes_max)


QUERIES = questions(find_progress, find_bounds, read_log)
