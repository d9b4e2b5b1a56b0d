"""Answers another member about what is neither a journal's nor an errand."""

from typing import Protocol

from holdfast.cluster.standings import STANDINGS, Standings
from holdfast.cluster.transfer import TRANSFER
from holdfast.transport import Answer, Handler


class Carries(Protocol):
    """Sends and fetches states of partitions."""

    async def answer(self, body: bytes) -> bytes: ...

    async def close(self) -> None: ...


class Looks(Protocol):
    """Looks at placement again, because something has changed."""

    def look(self) -> None: ...


class AnsweringMember(Protocol):
    """The parts of a member that are asked."""

    carrying: Carries | None
    standings: Standings

    @property
    def conductor(self) -> Looks: ...


class MemberHandler:
    """Answers one connection: standings, and states of partitions that travel."""

    def __init__(self, member: AnsweringMember, peer: str, rest: Handler) -> None:
        self._member = member
        self._peer = peer
        self._rest = rest

    def called(self, kind: int, body: bytes) -> Answer:
        if kind == TRANSFER and self._member.carrying is not None:
            return self._member.carrying.answer(body)
        return self._rest.called(kind, body)

    def told(self, kind: int, body: bytes) -> None:
        if kind == STANDINGS:
            self._member.standings.told(self._peer, body)
            self._member.conductor.look()
        else:
            self._rest.told(kind, body)
