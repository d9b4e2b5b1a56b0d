"""The commands that are for one subscriber, as they come."""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from holdfast.content.messages import ContentCommand, decode_command
from holdfast.content.ports import ContentLog
from holdfast.content.topics import ContentTopic
from holdfast.errors import HoldfastError
from holdfast.limits import CONTENT_POLL_MS, CONTENT_WAIT_MS, READ_BYTES_MAX
from holdfast.logs import log as logger


class CommandListener:
    """Follows the topic of commands."""

    def __init__(self, log: ContentLog, subscriber: str, wake: Callable[[], None]) -> None:
        self.commands: deque[tuple[int, ContentCommand]] = deque()  # with their offsets
        self.next = 0  # what is before it is done, or among the commands
        self._log = log
        self._subscriber = subscriber
        self._partition = ContentTopic.COMMANDS.partition_of(subscriber)
        self._wake = wake

    async def end(self) -> int:
        """Where the topic ends now: a new store has nothing to do with older commands."""
        page = await self._log.read(
            ContentTopic.COMMANDS, self._partition, 0, bytes_max=1, wait_ms=0
        )
        return page.end

    async def catch_up(self, start: int) -> None:
        """Hears all commands that were given while the subscriber was away."""
        self.commands.clear()
        self.next = start
        while not await self._listen(wait_ms=0):
            pass

    async def run(self) -> None:
        """Listens for as long as it is not cancelled."""
        while True:
            try:
                await self._listen(CONTENT_POLL_MS)
            except HoldfastError:
                await asyncio.sleep(CONTENT_WAIT_MS / 1000)
                continue
            if self.commands:
                self._wake()

    async def _listen(self, wait_ms: int) -> bool:
        """Hears the commands that come next; whether the topic ends behind them."""
        page = await self._log.read(
            ContentTopic.COMMANDS, self._partition, self.next,
            bytes_max=READ_BYTES_MAX, wait_ms=wait_ms,
        )  # fmt: skip
        for entry in page.entries:
            if entry.offset >= self.next:
                self._hear(entry.offset, entry.payload)
        self.next = max(page.next, self.next)
        return page.next >= page.end

    def _hear(self, offset: int, payload: bytes) -> None:
        try:
            command = decode_command(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("content.subscriber.unknown_command", offset=offset, reason=str(error))
            return
        if command.subscriber == self._subscriber:
            self.commands.append((offset, command))
