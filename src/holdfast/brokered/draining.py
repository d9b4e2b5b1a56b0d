"""A member gives its partitions away, one after the other, while it goes on answering.

Each is asked to move to the least loaded of the others; the group does the rest. A partition that
was moved stays where it is until members come or go.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from holdfast.brokered.keeping import token_of
from holdfast.errors import HoldfastError
from holdfast.groups.messages import Ask, AskKind
from holdfast.limits import BROKERED_DRAIN_MS
from holdfast.logs import log


class DrainView(Protocol):
    """What a member that drains has to know."""

    def owned(self) -> Sequence[int]:
        """The partitions that are open here."""
        ...

    def takers(self) -> Mapping[str, int]:
        """The others that may take partitions, each with how many it has."""
        ...

    async def ask(self, asks: Sequence[Ask]) -> None:
        """Asks the group for something."""
        ...


class HandingOver:
    """Moves everything away while it is on, also what comes later."""

    def __init__(self, view: DrainView, on_change: Callable[[], None]) -> None:
        self.is_on = False
        self._view = view
        self._on_change = on_change
        self._moved: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    async def set(self, is_on: bool) -> None:
        """Begins, or keeps partitions again: what was moved away may come back."""
        if is_on == self.is_on:
            return
        self.is_on = is_on
        self._on_change()
        if is_on:
            self._task = asyncio.get_running_loop().create_task(self._drain(), name="drain")
            return
        self.stop()
        moved, self._moved = self._moved, set()
        if moved:
            await self._view.ask([Ask(AskKind.MOVE, token_of(each)) for each in sorted(moved)])

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _drain(self) -> None:
        while True:
            asks = moves_of(self._view.owned(), self._view.takers())
            if asks:
                self._moved |= {int(each.token) for each in asks}
                try:
                    await self._view.ask(asks)
                except HoldfastError as error:
                    log.warning("partitions not moved", why=error.message)
            await asyncio.sleep(BROKERED_DRAIN_MS / 1_000)


def moves_of(owned: Sequence[int], takers: Mapping[str, int]) -> list[Ask]:
    """Each partition to the taker that has the fewest then; ties go by name."""
    loads = Counter(dict(takers))
    asks: list[Ask] = []
    for partition in owned if takers else ():
        to = min(takers, key=lambda each: (loads[each], each))
        loads[to] += 1
        asks.append(Ask(AskKind.MOVE, token_of(partition), to))
    return asks
