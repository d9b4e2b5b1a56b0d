"""The journal of a node's folder, read without disturbing the node that writes it."""

import asyncio
import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import NotFound
from holdfast.journal.local import SpreadReader
from holdfast.journal.local.names import SETTINGS
from holdfast.layout import layout_of

if TYPE_CHECKING:
    from holdfast.records import Record

Found = tuple[int, "Record"]  # a partition and a record of it


class TakeRecord(Protocol):
    """Does something with a record, which may have a sequence id; whether more are wanted."""

    def __call__(
        self, partition: int, record: "Record", sequence_id: int | None = None
    ) -> bool: ...


def journal_paths(folder: Path) -> list[Path]:
    """Where the log is: in a node's folder, or the folder itself; NotFound if there is none."""
    for paths in (layout_of(folder).journals(), [folder]):
        if any(paths[0].glob(f"*/{SETTINGS}")):
            return paths
    raise NotFound(f"There is no journal in {folder}", path=str(folder))


def open_reader(folder: Path) -> SpreadReader:
    """A reader of the folder's log."""
    return SpreadReader(journal_paths(folder))


def topic_bytes(folder: Path, topic: str) -> int:
    """The space that a topic's files take."""
    return sum(
        file.stat().st_size for path in journal_paths(folder) for file in (path / topic).iterdir()
    )


def partitions_of(reader: SpreadReader, partition: int | None) -> list[int]:
    """All partitions of the records, or the one that was asked for."""
    count = reader.topics().get(TOPIC)
    if count is None:
        raise NotFound(f"Expected a topic {TOPIC}, but found {', '.join(reader.topics())}")
    if partition is not None and not 1 <= partition <= count:
        raise NotFound(f"Expected a partition from 1 to {count}, but found {partition}")
    return [partition] if partition is not None else list(range(1, count + 1))


def read_records(reader: SpreadReader, partitions: list[int], start: int) -> Iterator[Found]:
    """The records that are there now, in the order of their times over all partitions."""
    streams = (_partition_records(reader, partition, start) for partition in partitions)
    return heapq.merge(*streams, key=lambda found: (found[1].timestamp_ms, found[0]))


def _partition_records(reader: SpreadReader, partition: int, start: int) -> Iterator[Found]:
    decode = DISPATCH.codec.decode
    bounds = reader.bounds(TOPIC, partition)
    offset = max(start, bounds.earliest)
    while offset < bounds.next:
        for entry in reader.read_now(TOPIC, partition, offset):
            if entry.offset >= bounds.next:  # written since: it belongs to the next look
                return
            yield partition, decode(entry.payload)
            offset = entry.offset + 1


async def follow_records(
    reader: SpreadReader, partitions: list[int], start: int, take: TakeRecord
) -> None:
    """Hands out the records from a position on, and those that come, until one is not taken."""

    async def follow(partition: int) -> None:
        offset = max(start, reader.bounds(TOPIC, partition).earliest)
        async for entries in reader.stream(TOPIC, partition, offset):
            for entry in entries:
                if not take(partition, DISPATCH.codec.decode(entry.payload)):
                    return

    following = [asyncio.create_task(follow(partition)) for partition in partitions]
    ended, others = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in ended:
        task.result()
