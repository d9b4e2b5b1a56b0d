"""What a subscriber tells: what became of packages, and how far it is."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from holdfast.clock import Clock
from holdfast.content.messages import Discovery, PackageStatus
from holdfast.content.ports import ContentLog
from holdfast.errors import HoldfastError
from holdfast.limits import CONTENT_ANNOUNCE_MS, CONTENT_ANNOUNCE_MS_MIN, CONTENT_WAIT_MS
from holdfast.logs import log as logger


class Teller:
    """Reports statuses after their commit, at least once, and announces how far the store is.

    It does so after each commit, but not more often than each CONTENT_ANNOUNCE_MS_MIN, and at
    least each CONTENT_ANNOUNCE_MS. Statuses go first: a reader that sees an offset can see what
    became of all packages up to it.
    """

    def __init__(
        self,
        log: ContentLog,
        clock: Clock,
        discovery: Callable[[], Discovery],
        due_seconds: Callable[[], float],
    ) -> None:
        self.statuses: list[PackageStatus] = []  # committed, and not reported yet
        self.trouble = ""  # why the log could not be told the last time
        self._log = log
        self._clock = clock
        self._discovery = discovery
        self._due_seconds = due_seconds  # until there is something new to say without a commit
        self._wake = asyncio.Event()
        self._told_at = float("-inf")

    def tell(self, statuses: Sequence[PackageStatus] = ()) -> None:
        """Something was committed."""
        self.statuses += statuses
        self._wake.set()

    async def run(self) -> None:
        """Tells for as long as it is not cancelled."""
        while True:
            interval = CONTENT_ANNOUNCE_MS / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(interval, self._due_seconds())):
                    await self._wake.wait()
            gap = self._told_at + CONTENT_ANNOUNCE_MS_MIN / 1000 - self._clock.monotonic()
            if gap > 0:
                await asyncio.sleep(gap)
            self._wake.clear()
            if not await self.send():
                await asyncio.sleep(CONTENT_WAIT_MS / 1000)
                self._wake.set()

    async def send(self) -> bool:
        """Reports what is waiting, and announces; False if the log could not be reached."""
        discovery = self._discovery()
        reporting = list(self.statuses)
        try:
            if reporting:
                await self._log.report(reporting)
                sent = set(reporting)
                self.statuses = [each for each in self.statuses if each not in sent]
            await self._log.announce(discovery)
        except HoldfastError as error:
            self.trouble = error.message
            logger.warning("content.subscriber.untold", reason=error.message)
            return False
        self._told_at = self._clock.monotonic()
        return True
