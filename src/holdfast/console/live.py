"""Live numbers: one producer for all tabs that show the same, which works while any is open.

A tab holds one stream of server-sent events. What it shows is made once for all of them, and a tab
that does not read in time gets the latest, never a queue: fifty tabs cost fifty small writes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import HoldfastError
from holdfast.limits import CONSOLE_PING_MS
from holdfast.logs import log

T = TypeVar("T")

Produce = Callable[[], Awaitable[bytes | None]]
"""Makes the next event for all that listen; None where nothing has changed."""

_PING = b": still there\n\n"  # a client that is gone is noticed by a write


def event(name: str, html: str) -> bytes:
    """A server-sent event with a piece of a page."""
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {name}\n{lines}\n".encode()


class LiveFeed:
    """Events that are made every so often, while somebody listens."""

    def __init__(
        self, produce: Produce, every_ms: int, forget: Callable[[], object] | None = None
    ) -> None:
        self._produce = produce
        self._forget = forget  # called when the last listener goes
        self._every_s = every_ms / 1_000
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._is_ended = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    @property
    def is_working(self) -> bool:
        return self._ticking is not None

    async def listen(self) -> AsyncIterator[bytes]:
        """The events from now on, until the feed or the listener ends."""
        mailbox: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._listeners.add(mailbox)
        if self._ticking is None and not self._is_ended:
            # in nobody's name: what is shown to all is not bounded by what the first may see
            tick = self._tick()
            self._ticking = asyncio.get_running_loop().create_task(tick, context=Context())
        try:
            while not self._is_ended:
                try:
                    found = await asyncio.wait_for(mailbox.get(), CONSOLE_PING_MS / 1_000)
                except TimeoutError:
                    found = _PING
                if found is None:
                    return
                yield found
        finally:
            self._listeners.discard(mailbox)
            if not self._listeners and self._ticking is not None:
                self._ticking.cancel()
                self._ticking = None
            if not self._listeners and self._forget is not None:
                self._forget()

    def end(self) -> None:
        """Ends all streams."""
        self._is_ended = True
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        for each in self._listeners:
            _put(each, None)

    async def _tick(self) -> None:
        while True:
            try:
                made = await self._produce()
            except HoldfastError:  # a partition is away, say: the next tick may have it
                made = None
            except Exception as error:
                log.error("live numbers of the console failed", exc_info=error)
                made = None
            if made is not None:
                for each in self._listeners:
                    _put(each, made)
            await asyncio.sleep(self._every_s)


def _put(mailbox: "asyncio.Queue[bytes | None]", item: bytes | None) -> None:
    with contextlib.suppress(asyncio.QueueEmpty):
        mailbox.get_nowait()
    mailbox.put_nowait(item)


class LiveFeeds:
    """The feeds of a console, by name."""

    def __init__(self) -> None:
        self._feeds: dict[str, LiveFeed] = {}
        self._kept: dict[type[Any], Any] = {}

    def feed(
        self, name: str, produce: Callable[[], Produce], every_ms: int, *, is_kept: bool = True
    ) -> LiveFeed:
        """The feed of a name; `produce` makes its producer when it is asked for first.

        One that is not kept is forgotten when nobody listens: there may be one for each thing.
        """
        found = self._feeds.get(name)
        if found is None:
            forget = None if is_kept else partial(self._feeds.pop, name, None)
            found = self._feeds[name] = LiveFeed(produce(), every_ms, forget)
        return found

    def kept(self, kind: type[T]) -> T:
        """What a feed and its page remember together, made when it is asked for first."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        return self._kept[kind]

    @property
    def names(self) -> list[str]:
        """Of all feeds that somebody asked for and that are not forgotten."""
        return list(self._feeds)

    def known(self, name: str) -> LiveFeed | None:
        """The feed of a name, if somebody has asked for it."""
        return self._feeds.get(name)

    def end(self) -> None:
        for each in self._feeds.values():
            each.end()
