"""What is known of a partition, in memory: how far it reaches, and how large its entries are."""

import asyncio

from holdfast.journal.api import Bounds, Entry
from holdfast.limits import KAFKA_RECENT_BYTES


class Recent:
    """The last entries of a partition that is followed, for all that follow it."""

    def __init__(self, start: int) -> None:
        self.start = start  # from here on, up to the end, all entries are here
        self.followers = 0
        self._entries: list[Entry] = []
        self._bytes = 0

    def add(self, entries: list[Entry]) -> None:
        """Entries came; the oldest may have to go."""
        if entries and entries[0].offset < self.start:  # a flight that had begun before
            self.start = entries[0].offset
        self._entries += entries
        self._bytes += sum(len(each.payload) for each in entries)
        dropped = 0
        while self._bytes > KAFKA_RECENT_BYTES and dropped < len(self._entries) - 1:
            self._bytes -= len(self._entries[dropped].payload)
            dropped += 1
        if dropped:
            self.start = self._entries[dropped].offset
            del self._entries[:dropped]

    def after(self, offset: int) -> list[Entry] | None:
        """The entries from an offset on; None if not all of them are here."""
        if offset < self.start:
            return None
        if not self._entries or self._entries[-1].offset < offset:
            return []
        return [each for each in self._entries if each.offset >= offset]


class Known:
    """How far a partition reaches, as far as this process knows; it only goes up."""

    def __init__(self, earliest: int, following: int) -> None:
        self.earliest = earliest
        self.next = following
        self.entry_bytes = 0.0  # the mean of those that were seen
        self.recent: Recent | None = None  # while somebody follows
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.earliest, self.next)

    def reaches(self, following: int) -> None:
        """The log has entries up to an offset."""
        if following > self.next:
            self.next = following
            self.wake()

    def begins(self, earliest: int) -> None:
        """Entries below an offset are gone."""
        self.earliest = max(self.earliest, earliest)
        self.next = max(self.next, self.earliest)

    def weigh(self, count: int, size_bytes: int) -> None:
        """Entries were seen; the mean follows slowly what they weigh."""
        if count:
            mean = size_bytes / count
            share = min(count / 64, 1.0) if self.entry_bytes else 1.0
            self.entry_bytes += (mean - self.entry_bytes) * share

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def change(self) -> None:
        """Waits until there is something new."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting
