"""Waiting for the ends of tasks and process instances."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from holdfast.engine.jobs.queries import Standing
from holdfast.engine.jobs.values import JobEnded, Outcome
from holdfast.gateway.access.asking import Asked
from holdfast.partitions import EffectTopic
from holdfast.records import partition_of

Look = Callable[[Sequence[int]], Awaitable[dict[int, Standing]]]
"""Where tasks stand now."""


class TaskEnds:
    """Hears how some tasks end."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._stops: list[Callable[[], None]] = []
        self._news = asyncio.Event()
        self._has_missed = False
        self.outcomes: dict[int, Outcome] = {}

    def follow(self, keys: Iterable[int]) -> None:
        """From now on nothing is missed, or it is known that something was."""
        follow, tell = self._asked.follow, self._tell
        for key in keys:
            self._stops.append(follow(EffectTopic(JobEnded, key, partition_of(key)), tell))

    def stop(self) -> None:
        for stop in self._stops:
            stop()

    def _tell(self, effect: JobEnded | None) -> None:
        if effect is None:
            self._has_missed = True
        else:
            self.outcomes[effect.key] = effect.outcome
        self._news.set()

    async def wait(self, keys: Sequence[int], wait_ms: int, look: Look) -> None:
        """Until all have ended or the time is over."""
        left = set(keys)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while left := left - self.outcomes.keys():
                    await self._news.wait()
                    self._news.clear()
                    if self._has_missed:
                        self._has_missed = False
                        standing = await look(sorted(left))
                        left -= {key for key, each in standing.items() if each.is_over}
        except TimeoutError:
            return
