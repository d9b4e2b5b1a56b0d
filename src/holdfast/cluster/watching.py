"""Keeps what was read from etcd fresh: on hints, and every few seconds without one."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError
from holdfast.limits import CLUSTER_LOOK_MS, CLUSTER_READ_MS
from holdfast.logs import log
from holdfast.sequence.api import Coordination

Read = Callable[[str], Awaitable[None]]
"""Reads what a hint names; it is told the name."""


class Watching:
    """Reads again what may have changed, each thing once however many hints there were."""

    def __init__(
        self,
        coordination: Coordination,
        reads: dict[str, Read],
        told: dict[str, Callable[[], None]],
    ) -> None:
        """`reads` are by the first word of a hint: `chain` for `chain/7`.

        Parts that read by themselves are `told` at once.
        """
        self._coordination = coordination
        self._reads = reads
        self._told = told
        self._dirty: set[str] = set()
        self._something = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._hear()), loop.create_task(self._read())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hint(self, name: str) -> None:
        """This may have changed."""
        if name.partition("/")[0] in self._reads:
            self._dirty.add(name)
            self._something.set()

    async def _hear(self) -> None:
        while True:
            try:
                async for name in self._coordination.changes():
                    if (tell := self._told.get(name)) is not None:
                        tell()
                    self.hint(name)
            except (HoldfastError, OSError) as error:
                log.debug("changes of etcd cannot be watched", error=str(error))
            await asyncio.sleep(CLUSTER_LOOK_MS / 1_000)

    async def _read(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLUSTER_READ_MS / 1_000):
                    await self._something.wait()
            if not self._something.is_set():  # what a hint was lost for is found, too
                self._dirty |= {"registered", "live", "chains"} & self._reads.keys()
            self._something.clear()
            dirty, self._dirty = self._dirty, set()
            for name in sorted(dirty):
                try:
                    await self._reads[name.partition("/")[0]](name)
                except HoldfastError as error:
                    log.info("etcd not read", what=name, why=error.message)
                    self._dirty.add(name)
