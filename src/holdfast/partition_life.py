"""What a node keeps beside one partition lives where that partition is open.

It starts where the partition is opened, from what its topics say, and stops where it is closed.
Callers that wait there are told to ask again, and find it at the next owner.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.logs import log

HOME_PARTITION = 1  # beside which the topics of content and of groups are


class Resident(Protocol):
    """What lives beside the partition."""

    def begin(self) -> None:
        """It is here, from now on."""
        ...

    async def start(self) -> None:
        """The same as `begin`, in its turn."""
        ...

    def leave(self, reason: str) -> None:
        """It is at another member from now on; `stop` follows."""
        ...

    async def stop(self) -> None:
        """Lets go of everything."""
        ...


class PartitionLife:
    """Starts and stops a resident, one after the other, as the partition comes and goes."""

    def __init__(self, what: str, resident: Resident, runner: Runner[EngineState]) -> None:
        self._what = what
        self._resident = resident
        self._runner = runner
        self._epoch: int | None = None  # in which the partition was opened, if the resident runs
        self._to_do: deque[Callable[[], Awaitable[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        resident.leave("the partition that has them has not been opened here")

    def begin(self) -> None:
        """The node runs. A partition that could not be opened for a bug is still at this member."""
        if HOME_PARTITION in self._runner.stopped:
            self._resident.begin()

    def opened(self, partition: int) -> None:
        """A partition is open here, perhaps again."""
        epoch = self._runner.epoch(partition)
        if partition != HOME_PARTITION or epoch == self._epoch:
            return
        if self._epoch is not None:  # what is known is of a former epoch
            self.stopped(partition)
        self._epoch = epoch
        if self._task is None:
            self._resident.begin()
        else:  # once it has stopped
            self._do(self._resident.start)

    def stopped(self, partition: int) -> None:
        """A partition is not open here any more."""
        is_gone = partition not in self._runner.stopped  # else it failed, and nobody else has it
        if partition == HOME_PARTITION and self._epoch is not None and is_gone:
            self._epoch = None
            self._resident.leave("the partition that has them was closed here")
            self._do(self._resident.stop)

    def _do(self, what: Callable[[], Awaitable[None]]) -> None:
        self._to_do.append(what)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=self._what)

    async def _work(self) -> None:
        while self._to_do:
            try:
                await self._to_do.popleft()()
            except Exception as error:  # the node goes on
                log.error(f"{self._what}: not started or stopped", exc_info=error)
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
