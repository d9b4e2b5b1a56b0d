"""What is written beside the work: what subscribers said, what is distributed, what is known."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from holdfast.content.blobs import NoSharedStore
from holdfast.content.messages import Discovery, RememberedSubscribers
from holdfast.content.publisher.opening import ReadBack
from holdfast.content.topics import ContentTopic
from holdfast.errors import HoldfastError
from holdfast.limits import (
    CONTENT_GATHER_MS,
    CONTENT_LOOK_MS,
    CONTENT_REMEMBER_ENTRIES,
    CONTENT_REMEMBER_MS,
    MIB,
)
from holdfast.logs import log

if TYPE_CHECKING:
    from holdfast.content.publisher.running import RunningContent

_REMEMBERED_BYTES = 1 * MIB  # of one message: a quarter of what an entry may have


class ContentUpkeep:
    """Two tasks of a node that distributes content: one that writes, one that cleans up."""

    def __init__(self, running: "RunningContent", found: ReadBack) -> None:
        self._running = running
        self._state = running.state
        self._said: dict[str, Discovery] = {}  # not on the log yet
        self._woken = asyncio.Event()
        self._remembered = found.remembered  # where everything was remembered last
        self._remembered_ms = running.now_ms()
        self._remembered_ends: list[int] = []
        self.recovery = _recovery(found.remembered, found.marks)  # what a start reads of the topics
        self._tasks = [
            asyncio.create_task(self._write_regularly()),
            asyncio.create_task(self._clean_regularly()),
        ]

    def wake(self) -> None:
        """Looks at once whether there is something to write."""
        self._woken.set()

    def said(self, discovery: Discovery) -> None:
        """A subscriber said how far it is; it is written together with what others say."""
        self._said[discovery.subscriber] = discovery
        self._woken.set()

    async def forget(self, subscriber: str) -> None:
        """Nothing is written of a subscriber any more, and a start does not find it."""
        self._said.pop(subscriber, None)
        await self.remember()
        self._woken.set()

    async def _write_regularly(self) -> None:
        """Writes what was gathered, at once and then in intervals, and looks at what ages."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CONTENT_LOOK_MS / 1_000):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self.flush()
            except HoldfastError as error:  # it is tried again, with what comes next
                log.warning("content: not written", error=error.message)
            except Exception as error:
                log.error("content: upkeep failed", exc_info=error)
            await asyncio.sleep(CONTENT_GATHER_MS / 1_000)

    async def _clean_regularly(self) -> None:
        """Removes the blobs that nobody refers to any more, every twelve hours."""
        while True:
            await asyncio.sleep(CONTENT_LOOK_MS / 1_000)
            try:
                done = await self._running.keeper.clean_if_due()
                if done is not None:
                    log.info("content: blobs cleaned up", seen=done.seen, removed=done.removed)
            except NoSharedStore:
                return  # then there are none
            except HoldfastError as error:  # it is tried again
                log.warning("content: blobs not cleaned up", error=error.message)
            except Exception as error:
                log.error("content: blobs not cleaned up", exc_info=error)

    async def flush(self) -> None:
        """Writes what subscribers said and what follows from it."""
        running, now_ms = self._running, self._running.now_ms()
        said, self._said = self._said, {}
        if said:
            try:
                await running.discoveries.append(list(said.values()))
            except BaseException:
                self._said = said | self._said
                raise
        self._state.errors.drop_before(running.statuses.earliest)
        has_aged = self._state.age(now_ms, running.packages.earliest)
        await self._distribute()
        is_due = now_ms - self._remembered_ms >= CONTENT_REMEMBER_MS and self._is_new()
        is_long = running.discoveries.end - self._remembered >= CONTENT_REMEMBER_ENTRIES
        if has_aged or is_due or is_long:
            await self.remember()

    async def _distribute(self) -> None:
        """Says which packages every subscriber has now."""
        for publisher in list(self._state.publishers.values()):
            done = self._state.topology.slowest_offset(publisher.name)
            while done is not None and publisher.distributed < done:
                events = await self._running.queues.distributed(publisher, done)
                if not events:
                    break
                await self._running.events.append(list(events))

    def _is_new(self) -> bool:
        """Whether something was written since everything was remembered."""
        return self._remembered_ends != self._ends()

    def _ends(self) -> list[int]:
        return [each.end for each in self._running.logs.values()]

    async def remember(self) -> None:
        """Writes all that is known, so that a start need not read what is older."""
        running = self._running
        self._remembered_ms = running.now_ms()
        messages = self._state.remembered(
            running.packages.end, running.events.end, running.statuses.end, _REMEMBERED_BYTES
        )
        self._remembered = await running.discoveries.append(list(messages))
        self.recovery = _recovery(self._remembered, messages[0])
        self._remembered_ends = self._ends()

    async def stop(self) -> None:
        """Ends its tasks and writes what is only in memory."""
        self.cancel()
        await asyncio.wait(self._tasks)
        try:
            await self.flush()
            if self._is_new():
                await self.remember()
        except Exception as error:  # subscribers say it again
            log.warning("content: not written", error=str(error))

    def cancel(self) -> None:
        """Ends its tasks; nothing is written."""
        for task in self._tasks:
            task.cancel()


def _recovery(remembered: int, marks: RememberedSubscribers) -> dict[str, int]:
    """By topic, where a start begins to read."""
    return {
        ContentTopic.DISCOVERIES.topic: max(remembered, 0),
        ContentTopic.PACKAGES.topic: max(marks.packages, 0),
        ContentTopic.EVENTS.topic: max(marks.events, 0),
    }
