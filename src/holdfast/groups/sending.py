"""Messages of one member on their way to the sync log: one after the other, in their order."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.groups.messages import SyncMessage, encode
from holdfast.limits import (
    GROUP_PAUSE_MS,
    GROUP_PAUSE_MS_MAX,
    GROUP_SENDS_MAX,
    GROUP_STALE_MS_MAX,
)
from holdfast.logs import log


class SyncSending:
    """Appends what it is given. After an error the same bytes are appended again."""

    def __init__(
        self, append: Callable[[bytes], Awaitable[None]], idle: Callable[[], None]
    ) -> None:
        self._append = append
        self._idle = idle  # told when there is room again
        self._waiting: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._task: asyncio.Task[None] | None = None
        self._failing_since: float | None = None

    def start(self) -> None:
        """Begins to append."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_full(self) -> bool:
        """Whether the log is behind: what is new should wait and share a message."""
        return len(self._waiting) >= GROUP_SENDS_MAX

    @property
    def is_stuck(self) -> bool:
        """Whether nothing could be appended for so long that the others may do without us."""
        since = self._failing_since
        if since is None:
            return False
        return (asyncio.get_running_loop().time() - since) * 1_000 > GROUP_STALE_MS_MAX

    def send(self, message: SyncMessage) -> None:
        """The message goes out after those before it."""
        self._waiting.append(encode(message))
        self._empty.clear()
        self._more.set()

    async def _run(self) -> None:
        while True:
            self._more.clear()
            while self._waiting:
                await self._append_one(self._waiting[0])
                self._waiting.popleft()
            self._empty.set()
            self._idle()
            await self._more.wait()

    async def _append_one(self, body: bytes) -> None:
        pause_ms = GROUP_PAUSE_MS
        while True:
            try:
                await self._append(body)
                self._failing_since = None
                return
            except InvalidArgument as error:
                log.error("group: a message was refused", size_bytes=len(body), why=error.message)
                return
            except HoldfastError as error:
                if self._failing_since is None:
                    self._failing_since = asyncio.get_running_loop().time()
                log.info("group: not appended, trying again", why=error.message)
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(2 * pause_ms, GROUP_PAUSE_MS_MAX)

    async def drained(self) -> None:
        """Returns when all is appended; a log that does not answer is not waited for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GROUP_STALE_MS_MAX / 1_000):
                await self._empty.wait()

    async def close(self) -> None:
        """Appends nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
