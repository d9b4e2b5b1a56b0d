"""The log of a node whose partitions are in several journals, read as one."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from holdfast.journal.api import Bounds, Entry, Start
from holdfast.journal.local.reader import JournalReader


class SpreadReader:
    """Reads partition n in the journal that has it: they take turns."""

    def __init__(self, journals: Sequence[Path]) -> None:
        self._readers = [JournalReader.open(str(each)) for each in journals]

    def _of(self, partition: int) -> JournalReader:
        return self._readers[(partition - 1) % len(self._readers)]

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        return self._readers[0].topics()

    def bounds(self, topic: str, partition: int) -> Bounds:
        return self._of(partition).bounds(topic, partition)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return self._of(partition).offset_at(topic, partition, timestamp_ms)

    def read_now(self, topic: str, partition: int, offset: int) -> list[Entry]:
        return self._of(partition).read_now(topic, partition, offset)

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        return self._of(partition).stream(topic, partition, start)

    def let_go(self) -> None:
        """Lets go of the files."""
        for reader in self._readers:
            reader.let_go()
