"""A subscriber: takes packages into a folder or a repository, on the loop of its app."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.client.expecting import Span, span_ms
from holdfast.client.portal import Portal
from holdfast.content.messages import SubscriberProgress
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Repository
from holdfast.content.repository.opening import open_repository
from holdfast.content.subscriber.conditions import SubscriberCondition
from holdfast.content.subscriber.decisions import Habits
from holdfast.content.subscriber.subscriber import Subscriber, SubscriberExtras
from holdfast.content.topics import ContentTopic
from holdfast.errors import DeadlineExceeded, InvalidState
from holdfast.limits import WHOLE_MAX

_LOOK_SECONDS = 0.01  # between looks at a subscriber that is about to hear of more

Invalidated = Callable[[Sequence[str]], None]


class ContentSubscriber:
    """A subscriber that runs until it is closed, or its app is."""

    def __init__(
        self,
        portal: Portal,
        log: ContentLog,
        into: str | Path | Repository,
        habits: Habits,
        extras: SubscriberExtras,
    ) -> None:
        self.name = habits.name
        self._portal = portal
        self._log = log
        is_theirs = not isinstance(into, str | Path)
        self.repository = open_repository(into)
        self._closes_repository = not is_theirs
        self._is_closed = False
        try:
            self._subscriber = portal.call(self._start(habits, extras))
        except BaseException:
            self._close_repository()
            raise

    async def _start(self, habits: Habits, extras: SubscriberExtras) -> Subscriber:
        store_id = secrets.token_hex(16)
        subscriber = Subscriber(self._log, self.repository, habits, extras, store_id=store_id)
        subscriber.start()
        return subscriber

    def __repr__(self) -> str:
        return f"ContentSubscriber({self.name!r}, {self.condition.value})"

    def __enter__(self) -> "ContentSubscriber":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "ContentSubscriber":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    # --- how it is ----------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether it has caught up once since it started; it stays true."""
        return self._subscriber.ready

    @property
    def lag(self) -> int:
        """How many entries of the log it has not read yet, as of its last read."""
        return self._subscriber.lag

    @property
    def condition(self) -> SubscriberCondition:
        """Its current condition."""
        return self._subscriber.condition

    @property
    def reason(self) -> str:
        """Why it is stopped; empty while it runs."""
        return self._subscriber.reason

    @property
    def imported(self) -> int:
        """The number of packages imported since it started."""
        return self._subscriber.imported

    @property
    def progress(self) -> list[SubscriberProgress]:
        """The progress of its store, by publisher."""
        return self._subscriber.progress

    def wait_until_idle(self, timeout: Span | None = None) -> None:
        """Waits until everything published so far is imported, or raises DeadlineExceeded."""
        self._portal.call(self._until_idle(timeout))

    async def wait_until_idle_async(self, timeout: Span | None = None) -> None:
        """Like `wait_until_idle`, for an event loop."""
        await self._portal.reach(self._until_idle(timeout))

    async def _until_idle(self, timeout: Span | None) -> None:
        seconds = None if timeout is None else span_ms(timeout, "timeout") / 1000
        try:
            async with asyncio.timeout(seconds):
                await self._until_taken()
        except TimeoutError:
            reason = f": {self.reason}" if self.reason else ""
            raise DeadlineExceeded(
                f"Expected subscriber {self.name} to be idle within {seconds:g} s, but it is"
                f" {self.condition.value}{reason}"
            ) from None

    async def _until_taken(self) -> None:
        """It may have been idle before it heard of what was published just now."""
        found = await self._log.read(ContentTopic.PACKAGES, 1, WHOLE_MAX, bytes_max=1, wait_ms=0)
        while True:
            condition = await self._subscriber.wait_until(SubscriberCondition.IDLE)
            if condition is not SubscriberCondition.IDLE:
                raise InvalidState(f"Expected {self.name} to be idle, but it was closed")
            if self._subscriber.idle_offset >= found.end:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Finishes the current package and stops."""
        if self._is_closed:
            return
        self._is_closed = True
        self._portal.call(self._subscriber.close())
        self._close_repository()

    async def close_async(self) -> None:
        """Like `close`, for an event loop."""
        await asyncio.to_thread(self.close)

    def _close_repository(self) -> None:
        if self._closes_repository:
            self.repository.close()
