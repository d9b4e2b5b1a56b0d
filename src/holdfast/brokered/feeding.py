"""Standbys whose log was cut begin with a snapshot of the blob store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.engine.kernel.standbys import Standbys
from holdfast.errors import HoldfastError, InvalidState
from holdfast.limits import BROKERED_FEED_MS
from holdfast.logs import log


class Feeding:
    """Brings states to standbys that lack them, and tries again where that fails.

    `restore` puts what the blob store has of a partition in the place of its rows.
    """

    def __init__(self, standbys: Standbys[Any], restore: Callable[[int], Awaitable[None]]) -> None:
        self._standbys = standbys
        self._restore = restore
        self._tasks: dict[int, asyncio.Task[None]] = {}
        standbys.on_missing.append(self._fetch)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fetch(self, partition: int) -> None:
        if partition not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._feed(partition))
            self._tasks[partition] = task
            task.add_done_callback(lambda _: self._tasks.pop(partition, None))

    async def _feed(self, partition: int) -> None:
        while partition in self._standbys.missing:
            try:
                with self._standbys.arriving(partition):
                    await self._restore(partition)
                return
            except InvalidState:  # it is open here, or about to be
                return
            except HoldfastError as error:
                log.warning("standby has no state", partition=partition, error=error.message)
            await asyncio.sleep(BROKERED_FEED_MS / 1_000)
