"""Follows the order of a cluster from outside: every cut in etcd, and when it was seen."""

import asyncio
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from holdfast.errors import HoldfastError
from holdfast.sequence.api import Coordination, Cut, LogKey
from holdfast.sequence.opening import open_coordination

RETRY_SECONDS = 0.05


class CutFollower:
    """Reads cuts in a thread, from the first on; a context manager."""

    def __init__(self, etcd: str) -> None:
        self._etcd = etcd
        self.cuts: list[Cut] = []
        self.seen_s: list[float] = []  # by the monotonic clock, of each of them
        self.missed = 0  # etcd had given them up before they were read
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._ready = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> "CutFollower":
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    @property
    def writer(self) -> str:
        """Who wrote the last cut: the member that writes now."""
        return self.cuts[-1].writer

    def gap_around(self, moment_s: float) -> float:
        """Seconds from the last cut that was seen before a moment to the first one after it."""
        after = next(at for at, seen in enumerate(self.seen_s) if seen > moment_s)
        return self.seen_s[after] - self.seen_s[after - 1]

    def wait_past(self, number: int, seconds_max: float = 10.0) -> None:
        """Returns when a cut behind this number was seen."""
        deadline = time.monotonic() + seconds_max
        while not self.cuts or self.cuts[-1].number <= number:
            assert time.monotonic() < deadline, f"no cut follows {number}"
            time.sleep(0.005)

    def positions_seen(self, keys: Sequence[LogKey]) -> dict[LogKey, list[tuple[int, float]]]:
        """By log, where it stood behind each cut in which it grew, and when that cut was seen."""
        found: dict[LogKey, list[tuple[int, float]]] = {key: [] for key in keys}
        at = dict.fromkeys(keys, 0)
        for cut, seen in zip(self.cuts, self.seen_s, strict=True):
            for key in keys:
                if grown := cut.grown.get(key, 0):
                    at[key] += grown
                    found[key].append((at[key], seen))
        return found

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._follow())
        self._ready.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        coordination = open_coordination(self._etcd, "follower")
        try:
            while True:
                try:
                    async for name in coordination.changes():
                        if name == "latest":
                            await self._read(coordination)
                except HoldfastError:
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            await coordination.close()

    async def _read(self, coordination: Coordination) -> None:
        latest = await coordination.latest()
        known = self.cuts[-1].number if self.cuts else 0
        if latest is None or latest.number <= known:
            return
        found = [latest]
        if latest.number > known + 1:
            found = list(await coordination.cuts(known + 1, latest.number))
        now = time.monotonic()
        self.missed += found[0].number - known - 1
        self.cuts += found
        self.seen_s += [now] * len(found)
