"""What a subscriber is at, and who waits for it to be at something else."""

import asyncio
from enum import Enum


class SubscriberCondition(Enum):
    """The condition of a subscriber."""

    STARTING = "STARTING"  # it has not reached the log yet
    RUNNING = "RUNNING"
    IDLE = "IDLE"  # it has all there is
    WAITING = "WAITING"  # a precondition holds the next package back
    RETRYING = "RETRYING"  # the next package fails, and is tried again later
    NEEDS_SEEDING = "NEEDS_SEEDING"  # the log no longer has what comes next for this store
    STUMBLING = "STUMBLING"  # the log or the store cannot be used
    CLOSED = "CLOSED"


# What somebody has to look at: the reason is announced.
TROUBLED = frozenset({SubscriberCondition.NEEDS_SEEDING, SubscriberCondition.STUMBLING})


class CurrentCondition:
    """The condition of one subscriber, with the reason for it."""

    def __init__(self) -> None:
        self.value = SubscriberCondition.STARTING
        self.reason = ""
        self._changed: set[asyncio.Future[None]] = set()

    def be(self, value: SubscriberCondition, reason: str = "") -> bool:
        """It is so from now on; whether it was not before."""
        if value is self.value and reason == self.reason:
            return False
        self.value, self.reason = value, reason
        changed, self._changed = self._changed, set()
        for each in changed:
            if not each.done():
                each.set_result(None)
        return True

    async def until(self, *values: SubscriberCondition) -> SubscriberCondition:
        """Returns when it is one of these, or closed."""
        while self.value not in values and self.value is not SubscriberCondition.CLOSED:
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.add(changed)
            try:
                await changed
            finally:
                self._changed.discard(changed)
        return self.value
