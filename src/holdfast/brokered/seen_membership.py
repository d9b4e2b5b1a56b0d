"""A membership whose generations somebody else hears, too."""

from collections.abc import AsyncIterator, Callable, Mapping

from holdfast.groups.api import Generation, MemberId, Membership

Heard = Callable[[Generation, Mapping[MemberId, bytes]], None]


class SeenMembership:
    """Keeps the port `Membership` over another one."""

    def __init__(self, membership: Membership, heard: Heard) -> None:
        self._membership = membership
        self._heard = heard

    async def join(self, card: bytes) -> None:
        await self._membership.join(card)

    async def generations(self) -> AsyncIterator[Generation]:
        """Those of the membership; each is told before the group hears it."""
        async for generation in self._membership.generations():
            self._heard(generation, self._membership.cards)
            yield generation

    @property
    def cards(self) -> Mapping[MemberId, bytes]:
        return self._membership.cards

    @property
    def is_held(self) -> bool:
        return self._membership.is_held

    async def leave(self) -> None:
        await self._membership.leave()
