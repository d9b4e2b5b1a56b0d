"""Answers another member over a connection: how it is, and what it is asked to do."""

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from holdfast.brokered.roster import SAID, CardRoster
from holdfast.errors import InvalidArgument
from holdfast.transport import Answer, Handler

DRAIN = 131  # the kind of a call: give everything away, or keep partitions again

encode_drain = msgspec.msgpack.Encoder().encode
_decode_drain = msgspec.msgpack.Decoder(bool).decode


class Drains(Protocol):
    """Gives its partitions away when it is asked to."""

    async def set_draining(self, is_draining: bool) -> None: ...


class BrokeredHandler:
    """Answers one connection; what is about partitions and content goes to `rest`."""

    def __init__(self, member: Drains, roster: CardRoster, peer: str, rest: Handler) -> None:
        self._member = member
        self._roster = roster
        self._peer = peer
        self._rest = rest

    def called(self, kind: int, body: bytes) -> Answer:
        if kind != DRAIN:
            return self._rest.called(kind, body)
        try:
            return _nothing(self._member.set_draining(_decode_drain(body)))
        except msgspec.DecodeError as error:
            raise InvalidArgument(f"Expected a call of this version, but {error}") from error

    def told(self, kind: int, body: bytes) -> None:
        if kind == SAID:
            self._roster.heard(self._peer, body)
        else:
            self._rest.told(kind, body)


async def _nothing(done: Awaitable[None]) -> bytes:
    await done
    return b""
