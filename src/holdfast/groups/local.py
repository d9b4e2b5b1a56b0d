"""Who is in a group, kept in one process: for one node, and for the simulation.

A `Hub` is what the members of a group agree on. Each change of it is a new generation. Its leader
stays as long as it is a member; then the member that has been there longest leads.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from holdfast.groups.api import Generation, MemberId


class Hub:
    """The members of one group, in the order in which they joined."""

    def __init__(self, generation: Generation | None = None, pause_ms: int = 0) -> None:
        """Goes on from a generation; changes within `pause_ms` become one generation."""
        self.generation = generation or Generation(0, "", ())
        self._joined: dict[MemberId, bytes] = dict.fromkeys(self.generation.members, b"")
        self._shown: dict[MemberId, bytes] = dict(self._joined)  # in this generation
        self._restored = set(self._joined)  # members whose cards are known to all but here
        self._floor = self.generation.number
        self._pause_ms = pause_ms
        self._making: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self.on_generation: list[Callable[[Generation], None]] = []

    @property
    def cards(self) -> Mapping[MemberId, bytes]:
        """What the members of the generation say of themselves."""
        return self._shown

    @property
    def members(self) -> tuple[MemberId, ...]:
        """Who is there now; the next generation has them."""
        return tuple(self._joined)

    def join(self, member: MemberId, card: bytes, known: int = 0) -> None:
        """A member comes, or says something new of itself; `known` is a generation it has seen."""
        is_news = self._joined.get(member) != card
        self._joined[member] = card
        if member in self._restored:
            self._restored.discard(member)
            self._shown[member], is_news = card, False
        if known > self._floor:
            self._floor, is_news = known, True
        if is_news or member not in self.generation.members:
            self._make_soon()

    def leave(self, member: MemberId) -> None:
        """A member goes, or is given up for lost."""
        if self._joined.pop(member, None) is not None:
            self._make_soon()

    def _make_soon(self) -> None:
        if self._pause_ms <= 0:
            self._make()
        elif self._making is None:
            loop = asyncio.get_running_loop()
            self._making = loop.call_later(self._pause_ms / 1_000, self._make)

    def _make(self) -> None:
        self._making = None
        members = tuple(self._joined)
        leader = self.generation.leader
        if leader not in self._joined:
            leader = members[0] if members else ""
        number = max(self.generation.number, self._floor) + 1
        self._floor = number
        self.generation = generation = Generation(number, leader, members)
        self._shown = dict(self._joined)
        for tell in self.on_generation:
            tell(generation)
        self.wake()

    async def change(self, seconds: float | None = None) -> None:
        """Returns when there is a new generation, at the latest after so long."""
        loop = asyncio.get_running_loop()
        change: asyncio.Future[None] = loop.create_future()
        self._waiting.add(change)
        timer = None if seconds is None else loop.call_later(seconds, _tell, change)
        try:
            await change
        finally:
            self._waiting.discard(change)
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """Those who wait for a change look again."""
        for each in tuple(self._waiting):
            _tell(each)

    def close(self) -> None:
        """Makes no more generations; who waits is woken."""
        if self._making is not None:
            self._making.cancel()
            self._making = None
        self.wake()


class LocalMembership:
    """Keeps the port `Membership` over a hub of this process."""

    def __init__(self, hub: Hub, member: MemberId) -> None:
        self.member = member
        self._hub = hub
        self._is_joined = False
        self._is_left = False

    @property
    def cards(self) -> Mapping[MemberId, bytes]:
        """What the members of the generation say of themselves."""
        return self._hub.cards

    async def join(self, card: bytes) -> None:
        """Comes, or says something new of itself."""
        self._is_joined, self._is_left = True, False
        self._hub.join(self.member, card)

    async def generations(self) -> AsyncIterator[Generation]:
        """Each new generation from the join on, until this member leaves."""
        known = 0
        while not self._is_left:
            generation = self._hub.generation
            if self._is_joined and generation.number != known:
                known = generation.number
                yield generation
            else:
                await self._hub.change()

    @property
    def is_held(self) -> bool:
        """In one process everybody is heard."""
        return True

    async def leave(self) -> None:
        """Goes; the others are told at once."""
        self._is_left = True
        self._hub.leave(self.member)
        self._hub.wake()


def _tell(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
