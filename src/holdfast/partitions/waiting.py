"""What waits until a partition has an owner that takes it.

A partition that is taken over or moved has no owner for a moment. What reached no log meanwhile is
not refused: it waits here, for a bounded time and in a bounded number, and goes to the new owner.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from holdfast.engine.kernel import Command, Reply
from holdfast.errors import HoldfastError, ResourceExhausted, Unknown
from holdfast.limits import OWNER_RETRY_MS, OWNER_WAITING_COMMANDS_MAX

Replies = asyncio.Future[list[Reply]]


class Delayed(NamedTuple):
    """Commands that no log has, and the callers that wait for their replies."""

    partition: int
    commands: Sequence[Command]
    size_bytes: int
    future: "asyncio.Future[Any]"
    deadline: float  # of the loop
    error: HoldfastError  # what is said when it has passed
    only_here: bool = False  # asked by another member, which finds another owner itself


Again = Callable[[Delayed], None]
"""Hands waiting commands to the present owner of their partition."""


class WaitingRoom:
    """Commands by partition, in the order in which they came.

    They go out when something has changed for their partition, and every few milliseconds, because
    another member may be the one that learns of the change late.
    """

    def __init__(self, wait_ms: int, again: Again) -> None:
        self._seconds = wait_ms / 1_000
        self._again = again
        self._waiting: dict[int, list[Delayed]] = {}
        self._commands = 0
        self._timer: asyncio.TimerHandle | None = None
        self._changes: dict[int, list[asyncio.Future[None]]] = {}  # those who wait for one

    @property
    def commands(self) -> int:
        """How many wait now."""
        return self._commands

    def deadline(self) -> float:
        """Until when something that begins to wait now may do so."""
        return asyncio.get_running_loop().time() + self._seconds

    def add(self, waiting: Delayed) -> None:
        """Has commands wait; they fail if their time has passed, or if there are too many."""
        loop = asyncio.get_running_loop()
        if waiting.future.done():
            return
        if loop.time() >= waiting.deadline:
            waiting.future.set_exception(waiting.error)
            return
        if self._commands and self._commands + len(waiting.commands) > OWNER_WAITING_COMMANDS_MAX:
            is_unknown = isinstance(waiting.error, Unknown)
            waiting.future.set_exception(
                waiting.error if is_unknown else self._full(waiting.partition)
            )
            return
        self._commands += len(waiting.commands)
        self._waiting.setdefault(waiting.partition, []).append(waiting)
        if self._timer is None:
            self._timer = loop.call_later(OWNER_RETRY_MS / 1_000, self._tick)

    def changed(self, partition: int) -> None:
        """The partition may have an owner: what waits for it goes there in this turn."""
        for each in self._changes.pop(partition, ()):
            if not each.done():
                each.set_result(None)
        waiting = self._waiting.pop(partition, None)
        if waiting:
            self._commands -= sum(len(each.commands) for each in waiting)
            for each in waiting:
                self._again(each)

    async def change(self, partition: int, deadline: float) -> bool:
        """Waits for a change of a partition, or for a while; whether there is time for more."""
        loop = asyncio.get_running_loop()
        left = deadline - loop.time()
        if left <= 0:
            return False
        changed: asyncio.Future[None] = loop.create_future()
        self._changes.setdefault(partition, []).append(changed)
        timer = loop.call_later(min(left, OWNER_RETRY_MS / 1_000), partial(_settle, changed))
        try:
            await changed
        finally:
            timer.cancel()
            waiting = self._changes.get(partition)
            if waiting and changed in waiting:
                waiting.remove(changed)
        return True

    def close(self) -> None:
        """Nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting, self._commands = self._waiting, {}, 0
        for each in [one for some in waiting.values() for one in some]:
            if not each.future.done():
                each.future.set_exception(each.error)

    def _tick(self) -> None:
        self._timer = None
        for partition in list(self._waiting):
            self.changed(partition)

    def _full(self, partition: int) -> ResourceExhausted:
        return ResourceExhausted(
            f"{self._commands} commands wait for partitions that have no owner at the moment; no"
            f" more than {OWNER_WAITING_COMMANDS_MAX} (OWNER_WAITING_COMMANDS_MAX) do",
            limit="OWNER_WAITING_COMMANDS_MAX", partition=partition, retry_after_ms=OWNER_RETRY_MS,
        )  # fmt: skip


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
