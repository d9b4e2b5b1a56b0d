"""A group's membership and its log as a program reaches them: through the API of a node."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from holdfast.errors import (
    DeadlineExceeded,
    HoldfastError,
    Moved,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.gateway.api import Api
from holdfast.gateway.groups.shapes import GenerationView, Heartbeat, NewSession, SyncQuery
from holdfast.groups.api import Bounds, Entry, Generation, MemberId
from holdfast.limits import GROUP_PAUSE_MS, GROUP_PAUSE_MS_MAX, GROUP_STALE_MS_MAX
from holdfast.logs import log

_PASSING = (Unavailable, Moved, Unknown, ResourceExhausted, DeadlineExceeded)
_POLL_MS = GROUP_STALE_MS_MAX // 2  # a read that waits at the log's end, and proves it is there
_decode = msgspec.msgpack.Decoder(tuple[list[tuple[int, int, bytes]], int, int]).decode


class NodeMembership:
    """Keeps the port `Membership` by a session at the node."""

    def __init__(
        self,
        api: Api,
        group: str,
        member: MemberId,
        session_ms: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._group = group
        self._member = member
        self._session_ms = session_ms
        self._now = now
        self._session = ""
        self._known = 0
        self._card = b""
        self._held_until = 0.0
        self._is_left = False
        self.cards: Mapping[MemberId, bytes] = {}

    async def join(self, card: bytes) -> None:
        """Begins a session."""
        self._card = card
        began = self._now()
        new = NewSession(self._member, card, self._known, self._session_ms)
        self._session = (await self._api.groups.join(self._group, new)).session_id
        self._held_until = began + self._session_ms / 1_000

    @property
    def is_held(self) -> bool:
        """Whether the node has heard of this member within the session's time."""
        return self._now() < self._held_until

    async def generations(self) -> AsyncIterator[Generation]:
        """Each new generation that has this member; keeps the session while it waits."""
        pause_ms = GROUP_PAUSE_MS
        while not self._is_left:
            try:
                found = await self._beat()
            except NotFound:  # the session ran out, or the home has moved
                await self._join_again()
                continue
            except (TimeoutError, *_PASSING) as error:
                if isinstance(error, TimeoutError):
                    _turn_away(self._api)
                log.info("group: not heard", group=self._group, why=str(error))
                await asyncio.sleep(pause_ms / 1_000)
                pause_ms = min(2 * pause_ms, GROUP_PAUSE_MS_MAX)
                continue
            pause_ms = GROUP_PAUSE_MS
            if found is not None:
                self._known = found.number
                self.cards = {each.member: each.card for each in found.members}
                yield Generation(found.number, found.leader, tuple(self.cards))

    async def _beat(self) -> GenerationView | None:
        began = self._now()
        wait_ms = self._session_ms // 3
        async with asyncio.timeout(2 * wait_ms / 1_000):  # in time for another attempt
            beat = Heartbeat(self._known, wait_ms)
            found = await self._api.groups.heartbeat(self._group, self._session, beat)
        self._held_until = max(self._held_until, began + self._session_ms / 1_000)
        return found.generation

    async def _join_again(self) -> None:
        try:
            await self.join(self._card)
        except _PASSING as error:
            log.info("group: not joined", group=self._group, why=error.message)
            await asyncio.sleep(GROUP_PAUSE_MS / 1_000)

    async def leave(self) -> None:
        """Ends the session."""
        self._is_left = True
        if self._session:
            try:
                await self._api.groups.leave(self._group, self._session)
            except HoldfastError as error:  # then it runs out
                log.info("group: not left", group=self._group, why=error.message)


class NodeSyncLog:
    """Keeps the port `SyncLog` over the API. The node discards what is not needed any more."""

    def __init__(self, api: Api, group: str) -> None:
        self._api = api
        self._group = group
        self._bounds = Bounds(0, 0)

    async def look(self) -> None:
        """Learns what can be read now."""
        await self._read(-1, 0)

    async def append(self, body: bytes) -> None:
        """Appends a message. Raises Unknown where it may be in the log, or get there later."""
        await self._api.groups.append(self._group, body)

    def bounds(self) -> Bounds:
        """What could be read when the node was asked last."""
        return self._bounds

    async def read(self, offset: int) -> list[Entry]:
        """Messages from an offset on; NotFound below what is kept, which is known then."""
        try:
            return await self._read(offset, 0)
        except NotFound:
            await self.look()
            raise

    async def stream(self, offset: int) -> AsyncIterator[list[Entry]]:
        """Batches of messages from an offset on, waiting for more, for ever."""
        while True:
            entries = await self._read(offset, _POLL_MS)
            if entries:
                offset = entries[-1].offset + 1
            yield entries

    def discard(self, before: int) -> None:
        """The home of the group does so by itself."""

    async def _read(self, offset: int, wait_ms: int) -> list[Entry]:
        query = SyncQuery(offset, wait_ms=wait_ms)
        try:
            async with asyncio.timeout(GROUP_STALE_MS_MAX / 1_000):
                answer = await self._api.groups.read(self._group, query)
        except TimeoutError:
            _turn_away(self._api)
            raise Unavailable(
                f"The log of group {self._group!r} was not read within {GROUP_STALE_MS_MAX} ms"
            ) from None
        found, earliest, end = _decode(answer)
        self._bounds = Bounds(earliest, end)
        return [Entry(*each) for each in found]


def _turn_away(api: Api) -> None:
    """A member of a cluster that does not answer is asked last from now on."""
    addresses = getattr(api, "addresses", None)  # a node in this process has none
    if addresses is not None:
        addresses.failed(getattr(api, "url", ""))
