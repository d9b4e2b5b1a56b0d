"""The journal of a node's folder, read without disturbing whoever writes it."""

import heapq
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import TABLES
from holdfast.errors import NotFound
from holdfast.journal.local import JournalReader
from holdfast.journal.local.names import SETTINGS

if TYPE_CHECKING:
    from holdfast.records import Record

Found = tuple[int, "Record"]  # a partition and a record of it


def journal_path(folder: Path) -> Path:
    """Where the journal is: in a node's folder, or the folder itself; NotFound if there is none."""
    for path in (folder / "journal", folder):
        if any(path.glob(f"*/{SETTINGS}")):
            return path
    raise NotFound(f"Expected a journal in {folder}, but there is none", path=str(folder))


def open_reader(folder: Path) -> JournalReader:
    """A reader of the folder's journal."""
    return JournalReader.open(str(journal_path(folder)))


def topic_bytes(folder: Path, topic: str) -> int:
    """The space that a topic's files take."""
    return sum(file.stat().st_size for file in (journal_path(folder) / topic).iterdir())


def partitions_of(reader: JournalReader, partition: int | None) -> list[int]:
    """All partitions of the records, or the one that was asked for."""
    count = reader.topics().get(TOPIC)
    if count is None:
        raise NotFound(f"Expected a topic {TOPIC}, but found {', '.join(reader.topics())}")
    if partition is not None and not 1 <= partition <= count:
        raise NotFound(f"Expected a partition from 1 to {count}, but found {partition}")
    return [partition] if partition is not None else list(range(1, count + 1))


def read_records(reader: JournalReader, partitions: list[int], start: int) -> Iterator[Found]:
    """The records that are there now, in the order of their times over all partitions."""
    streams = (_partition_records(reader, partition, start) for partition in partitions)
    return heapq.merge(*streams, key=lambda found: (found[1].timestamp_ms, found[0]))


def _partition_records(reader: JournalReader, partition: int, start: int) -> Iterator[Found]:
    decode = TABLES.codec.decode
    bounds = reader.bounds(TOPIC, partition)
    offset = max(start, bounds.earliest)
    while offset < bounds.next:
        for entry in reader.read(TOPIC, partition, offset):
            if entry.offset >= bounds.next:  # written since: it belongs to the next look
                return
            yield partition, decode(entry.payload)
            offset = entry.offset + 1


async def follow_records(
    reader: JournalReader, partitions: list[int], start: int
) -> AsyncGenerator[Found, None]:
    """The records from a position on, and those that come, as they come, for ever."""
    import asyncio

    decode = TABLES.codec.decode
    queue: asyncio.Queue[list[Found]] = asyncio.Queue(maxsize=16)

    async def pump(partition: int) -> None:
        offset = max(start, reader.bounds(TOPIC, partition).earliest)
        async for entries in reader.stream(TOPIC, partition, offset):
            await queue.put([(partition, decode(entry.payload)) for entry in entries])

    async with asyncio.TaskGroup() as group:
        for partition in partitions:
            group.create_task(pump(partition))
        while True:
            for found in await queue.get():
                yield found
