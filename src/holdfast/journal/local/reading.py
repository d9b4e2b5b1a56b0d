"""What writer and reader processes share: everything of a local journal that only reads."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from holdfast.errors import Unavailable
from holdfast.journal.api import Bounds, Entry, Start
from holdfast.journal.checks import start_offset
from holdfast.journal.local.view import TopicView, WrittenAppend
from holdfast.limits import READ_BYTES_MAX


class ReadableJournal(ABC):
    """Reads topics through their views; how a view comes to be, and is kept fresh, is left open."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._closed = False

    @abstractmethod
    def _view(self, topic: str) -> TopicView:
        """The fresh view of a topic; NotFound if there is no such topic."""

    @abstractmethod
    async def _wait_for_more(self, topic: str, partition: int, misses: int) -> None:
        """Returns when there may be more to read; `misses` times in a row there was not."""

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now."""
        return self._view(topic).bounds(partition)

    def bytes_used(self, topic: str) -> int:
        """How much space the topic's entries take."""
        return sum(each.summary.end for each in self._view(topic).segments)

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal; it waits for nothing but the disk."""
        return self.read_now(topic, partition, offset, bytes_max)

    def read_now(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """Durable entries from an offset on: about `bytes_max` of them, but one at least."""
        return self._view(topic).read(partition, offset, bytes_max)

    def read_shifted(
        self, topic: str, partition: int, offset: int, end: int, shift: int, bytes_max: int
    ) -> list[Entry]:
        """Durable entries below an end, given out with offsets that are shifted."""
        return self._view(topic).read(partition, offset, bytes_max, end, shift)

    def appends(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[WrittenAppend]:
        """Durable appends from an offset on, as they were written: for copying a log."""
        return self._view(topic).appends(partition, offset, bytes_max)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose entry was written at or after a time; `next` if there is none."""
        return self._view(topic).offset_at(partition, timestamp_ms)

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        bounds = self._view(topic).bounds(partition)
        return self._stream(topic, partition, start_offset(topic, partition, start, bounds))

    async def _stream(self, topic: str, partition: int, offset: int) -> AsyncIterator[list[Entry]]:
        misses = 0
        while True:
            entries = self.read_now(topic, partition, offset)
            if entries:
                misses = 0
                offset = entries[-1].offset + 1
                yield entries
                await asyncio.sleep(0)  # a stream that catches up must not keep the loop to itself
            else:
                await self._wait_for_more(topic, partition, misses)
                misses += 1

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(
                f"expected an open journal, but the one in {self._root} is closed", path=self._root
            )
