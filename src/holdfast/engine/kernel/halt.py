"""A runner that stands still: while its state is rebuilt, or for a moment that a copy is of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.errors import DataLoss, Unavailable
from holdfast.limits import REBUILD_RETRY_MS


class Halt:
    """Says whether a runner is to stand still, and lets it wait until it may go on."""

    def __init__(self) -> None:
        self.reason = ""  # none: it runs
        self.undelivered: list[list[Any]] = []  # effects of durable steps, for afterwards
        self._stands = asyncio.Event()
        self._over = asyncio.Event()

    def begin(self, reason: str) -> None:
        """From now on no step begins."""
        self.reason = self.reason or reason

    def end(self) -> list[list[Any]]:
        """The runner may go on; the effects that it has to deliver first."""
        self.reason = ""
        self._stands.clear()
        self.wake()
        undelivered, self.undelivered = self.undelivered, []
        return undelivered

    def wake(self) -> None:
        """The runner is to look again what it has to do, as when it is closed."""
        self._over.set()

    async def stand(self) -> None:
        """The runner stands: no step is under way."""
        self._over.clear()
        self._stands.set()
        await self._over.wait()

    async def stands(self) -> None:
        """Returns when no step is under way: the log has all that was acknowledged."""
        await self._stands.wait()

    def check(self) -> None:
        """Unavailable while the state is being rebuilt."""
        if self.reason:
            raise _rebuilding(self.reason)

    def told(self, damage: DataLoss) -> Unavailable:
        """What callers are told while the state is rebuilt; raises if nobody rebuilds it."""
        if not self.reason:
            raise damage
        return _rebuilding(damage.message)

    def meets_damage(self, do: Callable[[], None]) -> bool:
        """Whether what is done meets damage in a state that is rebuilt, and is to be done again."""
        try:
            do()
        except DataLoss:
            if not self.reason:  # nobody rebuilds it
                raise
            return True
        return False


class Hold:
    """Keeps a runner from beginning steps. Commands are accepted, and wait."""

    def __init__(self, settled: Callable[[], Awaitable[None]], look: Callable[[], None]) -> None:
        self.is_on = False
        self._settled = settled
        self._look = look

    async def begin(self) -> None:
        """No step begins until `end`; returns when none is under way."""
        self.is_on = True
        await self._settled()

    def end(self) -> None:
        """The runner goes on."""
        self.is_on = False
        self._look()


def _rebuilding(reason: str) -> Unavailable:
    """Nothing was done: what met the damage was undone, and what came later did not begin."""
    message = f"The state is being rebuilt; try again: {reason}"
    return Unavailable(message, retry_after_ms=REBUILD_RETRY_MS)
