"""A node's log, walked from its first record on, or from where it is now."""

from abc import ABC, abstractmethod
from pathlib import Path

from holdfast.cli.journal.files import open_reader, partitions_of
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.records import Record


def ends_of(folder: Path) -> dict[int, int]:
    """How far the log is: by partition, the position of the next record."""
    reader = open_reader(folder)
    return {each: reader.bounds(TOPIC, each).next for each in partitions_of(reader, None)}


class LogWalk(ABC):
    """Takes up all records as far as they go, again and again; what for, a subclass knows."""

    def __init__(self, folder: Path, start: dict[int, int] | None = None) -> None:
        self._reader = open_reader(folder)
        self._offsets = (
            dict(start) if start else dict.fromkeys(partitions_of(self._reader, None), 0)
        )
        self.records = 0

    def read_on(self) -> None:
        """Takes up what was written since the last time."""
        decode = DISPATCH.codec.decode
        for partition, offset in self._offsets.items():
            while entries := self._reader.read_now(TOPIC, partition, offset):
                for entry in entries:
                    self.take_up(decode(entry.payload))
                self.records += len(entries)
                offset = self._offsets[partition] = entries[-1].offset + 1

    @abstractmethod
    def take_up(self, record: Record) -> None:
        """One record, in the order of its partition."""
