"""One group of users' programs at its home: its sessions, its log, and what the log says.

All appends to the log come through here, so what was folded after the last one is the state.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, NotFound, ResourceExhausted
from holdfast.groups.api import Generation, MemberId
from holdfast.groups.journal_log import JournalSyncLog
from holdfast.groups.local import Hub
from holdfast.groups.observing import GroupObserver
from holdfast.groups.sessions import Sessions
from holdfast.groups.whole_log import read_whole
from holdfast.journal import Bounds, Entry
from holdfast.limits import (
    GROUP_JOIN_MS,
    GROUP_PROGRAMS_MAX,
    GROUP_RECENT_BYTES,
    GROUP_SESSION_MS,
)
from holdfast.logs import log


class HeardGeneration(NamedTuple):
    """A generation, with what its members say of themselves."""

    generation: Generation
    cards: Mapping[MemberId, bytes]


class KeptGroup:
    """A group that is open at its home."""

    def __init__(self, name: str, sync_log: JournalSyncLog, clock: Clock) -> None:
        self.name = name
        self.log = sync_log
        self.observer = GroupObserver()
        self._clock = clock
        self._end = sync_log.bounds().earliest
        self._taking = asyncio.Lock()
        self._recent: deque[Entry] = deque()
        self._recent_bytes = 0
        self._more: set[asyncio.Future[None]] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closed: HoldfastError | None = None
        self.hub = Hub()
        self._sessions = Sessions(name, self.hub)

    async def open(self) -> None:
        """Reads what the log says; members of its last generation have time to come back."""
        found = await read_whole(self.log)
        self._end = found.next
        self.observer.restore(found.entries, found.is_complete)
        generation = self.observer.generation
        self.hub = Hub(generation, GROUP_JOIN_MS)
        self._sessions = Sessions(self.name, self.hub)
        if generation.members:
            until = self._clock.monotonic() + GROUP_SESSION_MS / 1_000
            self._sessions.restore(generation.members, until)
        self._watch_expiry()

    # --- members ------------------------------------------------------------------------------

    def join(
        self, session: str, member: MemberId, card: bytes, known: int, session_ms: int
    ) -> None:
        """Begins a session of a member."""
        self.check_open()
        if member not in self.hub.members and len(self.hub.members) >= GROUP_PROGRAMS_MAX:
            raise ResourceExhausted(
                f"Group {self.name!r} has {GROUP_PROGRAMS_MAX} members and takes no more",
                group=self.name,
            )
        now = self._clock.monotonic()
        self._sessions.join(session, member, card, known, now, session_ms / 1_000)
        self._watch_expiry()

    async def heartbeat(self, session: str, known: int, wait_ms: int) -> HeardGeneration | None:
        """The generation, once it is another one than the member knows; None after the wait."""
        self.check_open()
        member = self._sessions.heard(session, self._clock.monotonic())
        deadline = self._clock.monotonic() + wait_ms / 1_000
        while True:
            generation = self.hub.generation
            if generation.number > known and member in generation.members:
                return HeardGeneration(generation, dict(self.hub.cards))
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return None
            await self.hub.change(left)
            self.check_open()

    def leave(self, session: str) -> None:
        """A member goes by itself."""
        self.check_open()
        self._sessions.leave(session)

    def _watch_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        end = self._sessions.next_end
        if end is not None and self._closed is None:
            left = max(end - self._clock.monotonic(), 0.001)
            self._expiry = asyncio.get_running_loop().call_later(left, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        for member in self._sessions.expire(self._clock.monotonic()):
            log.warning("group: a member is not heard any more", group=self.name, member=member)
        self._watch_expiry()

    # --- the log ------------------------------------------------------------------------------

    async def append(self, body: bytes) -> None:
        """Appends a message and wakes those who wait for it."""
        self.check_open()
        try:
            await self.log.append(body)
        finally:  # also if its outcome is unknown: it may be there
            with contextlib.suppress(NotFound):
                await self._take_up()

    async def _take_up(self) -> None:
        """Folds what is new in the log."""
        async with self._taking:
            found = False
            while self._end < self.log.bounds().next:
                entries = await self.log.read(self._end)
                if not entries:
                    break
                for entry in entries:
                    self.observer.read(entry)
                    self._recent.append(entry)
                    self._recent_bytes += len(entry.payload)
                self._end = entries[-1].offset + 1
                found = True
            while self._recent_bytes > GROUP_RECENT_BYTES and len(self._recent) > 1:
                self._recent_bytes -= len(self._recent.popleft().payload)
            if (before := self.observer.discardable) is not None:
                self.log.discard(before)
        if found:
            self._wake()

    async def read(self, offset: int, bytes_max: int, wait_ms: int) -> tuple[list[Entry], Bounds]:
        """Messages from an offset on; waits for some at the end. NotFound below `earliest`."""
        self.check_open()
        if offset >= self._end and wait_ms > 0:
            await self._wait(wait_ms / 1_000)
            self.check_open()
        bounds = self.log.bounds()
        if offset < 0 or offset >= bounds.next:
            return [], bounds
        if self._recent and offset >= self._recent[0].offset:
            return _some(self._recent, offset, bytes_max), bounds
        return await self.log.read(offset), bounds

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        more: asyncio.Future[None] = loop.create_future()
        self._more.add(more)
        timer = loop.call_later(seconds, _tell, more)
        try:
            await more
        finally:
            timer.cancel()
            self._more.discard(more)

    def _wake(self) -> None:
        for each in tuple(self._more):
            _tell(each)

    # --- its end ------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises what is said when it is closed."""
        if self._closed is not None:
            raise type(self._closed)(self._closed.message, **self._closed.fields)

    def shut(self, error: HoldfastError) -> None:
        """Takes nothing any more; waiting callers are told."""
        self._closed = error
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.hub.close()
        self._wake()


def _some(recent: deque[Entry], offset: int, bytes_max: int) -> list[Entry]:
    found: list[Entry] = []
    size_bytes = 0
    for entry in reversed(recent):  # readers are near the end
        if entry.offset < offset:
            break
        found.append(entry)
    found.reverse()
    for number, entry in enumerate(found):
        size_bytes += len(entry.payload)
        if size_bytes > bytes_max and number:
            return found[:number]
    return found


def _tell(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
