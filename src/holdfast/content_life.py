"""Content distribution lives with one partition: where that is open, the topics are.

It starts where the partition is opened, from what the topics say, and stops where it is closed.
Callers that wait there are told to ask again, and find it at the next owner.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from holdfast.content.publisher import ContentService
from holdfast.content.publisher.retention import EVERYTHING, ContentNeeds
from holdfast.content.topics import PARTITION
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import HoldfastError
from holdfast.gateway.content.home import ContentHome
from holdfast.logs import log


class ContentLife:
    """Starts and stops the service, one after the other, as its partition comes and goes."""

    def __init__(self, service: ContentService, runner: Runner[EngineState]) -> None:
        self._service = service
        self._runner = runner
        self._epoch: int | None = None  # in which the partition was opened, if the service runs
        self._to_do: deque[Callable[[], Awaitable[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        service.leave("the partition that has them has not been opened here")

    def begin(self) -> None:
        """The node runs. A partition that could not be opened for a bug is still at this member."""
        if PARTITION in self._runner.stopped:
            self._service.begin()

    def opened(self, partition: int) -> None:
        """A partition is open here, perhaps again."""
        epoch = self._runner.epoch(partition)
        if partition != PARTITION or epoch == self._epoch:
            return
        if self._epoch is not None:  # what is known is of a former epoch
            self.stopped(partition)
        self._epoch = epoch
        if self._task is None:
            self._service.begin()
        else:  # once it has stopped
            self._do(self._service.start)

    def stopped(self, partition: int) -> None:
        """A partition is not open here any more."""
        is_gone = partition not in self._runner.stopped  # else it failed, and nobody else has it
        if partition == PARTITION and self._epoch is not None and is_gone:
            self._epoch = None
            self._service.leave("the partition that has them was closed here")
            self._do(self._service.stop)

    def _do(self, what: Callable[[], Awaitable[None]]) -> None:
        self._to_do.append(what)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="content")

    async def _work(self) -> None:
        while self._to_do:
            try:
                await self._to_do.popleft()()
            except Exception as error:  # the node goes on
                log.error("content: not started or stopped", exc_info=error)
        self._task = None

    async def settled(self) -> None:
        """Waits until it has started, or stopped."""
        while self._task is not None:
            await asyncio.shield(self._task)

    def abandon(self) -> None:
        """The process ends."""
        self._to_do.clear()
        if self._task is not None:
            self._task.cancel()

    async def needs(self, home: ContentHome) -> ContentNeeds:
        """What of the topics must not be dropped here; the member that has them tells."""
        if not self._service.is_used:
            return ContentNeeds({}, {})
        try:
            return await home.needs()
        except HoldfastError as error:
            log.info("content: not known what is needed", error=error.message)
            return EVERYTHING
