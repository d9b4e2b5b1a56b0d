"""Reading the log ahead of the imports, by a bounded number of bytes."""

import asyncio
from collections import deque
from collections.abc import Callable

from holdfast.content.messages import Package
from holdfast.content.ports import ContentLog, TopicEntries
from holdfast.content.subscriber.shared import SharedPackages
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.errors import InvalidState
from holdfast.limits import CONTENT_POLL_MS, CONTENT_PREFETCH_BYTES


class Fetcher:
    """The packages that come next, and how the log goes on behind them."""

    def __init__(
        self, log: ContentLog, shared: SharedPackages, arrived: Callable[[], None]
    ) -> None:
        self.waiting: deque[tuple[int, Package]] = deque()
        self.next = 0  # where to read on
        self.end = 0  # of the log, as it was seen last
        self.earliest = 0
        self.unkept: int | None = None  # the log no longer keeps what is before this offset
        self._log = log
        self._shared = shared
        self._arrived = arrived
        self._reading: asyncio.Task[TopicEntries] | None = None

    @property
    def lag(self) -> int:
        """How many offsets of the log are still to be looked at."""
        return len(self.waiting) + max(self.end - self.next, 0)

    def restart(self, offset: int) -> None:
        """Reads again from an offset on."""
        self.cancel()
        self.waiting.clear()
        self.next = offset
        self.unkept = None

    async def fill(self) -> bool:
        """Gets what comes next, without waiting for more of it; False at the end of the log."""
        if self._reading is not None:
            if not self._reading.done() and self.next >= self.end:
                return False
            reading, self._reading = self._reading, None
            page = await reading
        else:
            page = await self._read(0)
        return self._take(page)

    def read_ahead(self) -> None:
        """Begins to read what comes next while something else goes on."""
        if self._reading is None and self.next < self.end:
            self._reading = asyncio.create_task(self._read(0))

    def poll(self) -> None:
        """Begins to wait for more at the end of the log."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(CONTENT_POLL_MS))
            self._reading.add_done_callback(lambda _: self._arrived())

    def cancel(self) -> None:
        """Does not wait any longer."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read(self, wait_ms: int) -> TopicEntries:
        return await self._log.read(
            ContentTopic.PACKAGES, PARTITION, self.next,
            bytes_max=CONTENT_PREFETCH_BYTES, wait_ms=wait_ms,
        )  # fmt: skip

    def _take(self, page: TopicEntries) -> bool:
        if page.end < self.next:
            raise InvalidState(
                f"Expected the log of packages to continue at offset {self.next}, but it ends at"
                f" {page.end}: it is not the log that this store was filled from; use the right"
                " node, or begin with an empty store"
            )
        if page.earliest > self.next:
            self.unkept = page.earliest
        package = self._shared.package
        self.waiting.extend([(entry.offset, package(entry)) for entry in page.entries])
        self.next, self.end, self.earliest = page.next, page.end, page.earliest
        return bool(page.entries) or self.next < self.end
