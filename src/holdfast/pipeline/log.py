"""Where the pipeline reads the log: the files of a node on this machine."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import InvalidArgument, NotFound
from holdfast.journal import Bounds, Entry
from holdfast.journal.local import JournalReader

READ_BYTES = 1 << 20


class Log(Protocol):
    """The log of a node, to be read."""

    def partitions(self) -> int: ...

    def bounds(self, partition: int) -> Bounds: ...

    def read(self, partition: int, position: int) -> list[Entry]: ...

    def close(self) -> None: ...


class FileLog:
    """The log in a node's folder, read without disturbing whoever writes it."""

    def __init__(self, folder: Path) -> None:
        self._reader = JournalReader.open(str(folder / "journal"))
        self._count = self._reader.topics().get(TOPIC)
        if self._count is None:
            raise NotFound(
                f"Expected the folder of a node, but {folder} has no log", path=str(folder)
            )

    def partitions(self) -> int:
        assert self._count is not None
        return self._count

    def bounds(self, partition: int) -> Bounds:
        return self._reader.bounds(TOPIC, partition)

    def read(self, partition: int, position: int) -> list[Entry]:
        return self._reader.read(TOPIC, partition, position, READ_BYTES)

    def close(self) -> None:
        asyncio.run(self._reader.close())


def open_log(address: str) -> Log:
    """The log at an address, which is a folder."""
    if "://" in address:
        raise InvalidArgument(f"Expected the folder of a node, but found {address!r}")
    return FileLog(Path(address))


def entries_between(log: Log, partition: int, start: int, end: int) -> Iterator[list[Entry]]:
    """The entries of a range, in pieces that fit into memory."""
    position = start
    while position < end:
        entries = log.read(partition, position)
        if not entries:
            raise NotFound(
                f"Expected the log of partition {partition} to reach to {end}, but it ends at"
                f" {position}"
            )
        if entries[-1].offset >= end:
            entries = [entry for entry in entries if entry.offset < end]
        yield entries
        position = entries[-1].offset + 1
