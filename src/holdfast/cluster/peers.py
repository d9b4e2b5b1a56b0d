"""The other members over the links to them: who is heard, on which disk, and what journals say.

Every connection begins with a greeting of both sides, which names the member's disk and its start.
A member is heard from its greeting on until the connection ends; a silent one is disconnected.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from holdfast.errors import HoldfastError, InvalidArgument, ResourceExhausted, Unavailable, Unknown
from holdfast.journal.cluster.messages import Answer, Call, Told
from holdfast.journal.cluster.ports import PeerHandler
from holdfast.logs import log
from holdfast.transport import Answer as TransportAnswer
from holdfast.transport import Connection, Handler, Link, Links

# Kinds of messages between members of a cluster. A number is never used for something else.
GREETING, TOLD, CALLED = range(112, 115)

_encode = msgspec.msgpack.Encoder().encode
_decode_told = msgspec.msgpack.Decoder(Told).decode
_decode_call = msgspec.msgpack.Decoder(Call).decode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """Who a member is at the moment. Later versions may add fields, and only at the end."""

    disk: str
    boots: int
    nonce: str  # of this start of it
    version: str  # of holdfast
    is_draining: bool = False


_decode_greeting = msgspec.msgpack.Decoder(Greeting).decode


class LinkedPeers:
    """Keeps the port `Peers` over links. What arrives goes to `handler`, once there is one."""

    def __init__(self, greeting: Greeting) -> None:
        self.greeting = greeting
        self.handler: PeerHandler | None = None
        self.greetings: dict[str, Greeting] = {}  # of those that are heard
        self.on_change: list[Callable[[str], None]] = []  # told who came, changed or went
        self._links: Links | None = None

    def over(self, links: Links) -> None:
        """The links that lead to the others; they may change."""
        self._links = links

    # --- the port -----------------------------------------------------------------------------

    def heard(self) -> AbstractSet[str]:
        return self.greetings.keys()

    def disk(self, member: str) -> str | None:
        greeting = self.greetings.get(member)
        return None if greeting is None else greeting.disk

    def nonce(self, member: str) -> str | None:
        greeting = self.greetings.get(member)
        return None if greeting is None else greeting.nonce

    def tell(self, members: Sequence[str], message: Told) -> list[str]:
        """Written to the sockets at once: a sync of the own disk that follows blocks the loop."""
        body = _encode(message)
        return [each for each in members if not self._tell(each, TOLD, body)]

    def _tell(self, member: str, kind: int, body: bytes) -> bool:
        if member not in self.greetings:
            return False
        assert self._links is not None, "who is heard has a link"
        try:
            self._links[member].tell(kind, body, at_once=True)
        except (Unavailable, ResourceExhausted):
            return False
        return True

    async def call(self, member: str, message: Call) -> Answer:
        if member not in self.greetings or self._links is None:
            raise Unavailable(f"Member {member!r} does not answer", member=member)
        try:
            return _decode_answer(await self._links[member].call(CALLED, _encode(message)))
        except msgspec.DecodeError as error:
            raise Unknown(f"Expected an answer of this version from {member!r}: {error}") from error
        except (Unavailable, Unknown):
            raise
        except HoldfastError as error:  # it did nothing, and says why
            raise Unavailable(f"Member {member!r}: {error.message}", member=member) from error

    # --- connections --------------------------------------------------------------------------

    def follow(self, link: Link) -> None:
        """Greets over each new connection of a link, and notices its end."""
        link.on_up(lambda: self._greet(link))
        link.on_down(lambda: self._lost(link.peer))

    def greet_all(self, greeting: Greeting) -> None:
        """Says something new about this member to everybody."""
        self.greeting = greeting
        for member in list(self.greetings):
            self._tell(member, GREETING, _encode(greeting))

    def answering(self, link: Link, connection: Connection, rest: Handler) -> Handler:
        """Who answers a new connection: what is not about the cluster's journal goes to `rest`."""
        return _Answering(self, link, connection, rest)

    def _greet(self, link: Link) -> None:
        try:
            link.tell(GREETING, _encode(self.greeting))
        except HoldfastError as error:
            log.info("member not greeted", peer=link.peer, why=error.message)

    def greeted(self, member: str, body: bytes) -> None:
        """A member has said who it is, for the first time over this connection or again."""
        is_new = member not in self.greetings
        self.greetings[member] = _decode_greeting(body)
        if is_new and self.handler is not None:
            self.handler.reached(member)
        self._changed(member)

    def handle(self, handler: PeerHandler) -> None:
        """From now on what arrives goes to this one; it is told who is heard already."""
        self.handler = handler
        for member in list(self.greetings):
            handler.reached(member)

    def _lost(self, member: str) -> None:
        if self.greetings.pop(member, None) is not None:
            if self.handler is not None:
                self.handler.lost(member)
            self._changed(member)

    def _changed(self, member: str) -> None:
        for callback in self.on_change:
            callback(member)


class _Answering:
    """Answers one connection of one other member."""

    def __init__(
        self, peers: LinkedPeers, link: Link, connection: Connection, rest: Handler
    ) -> None:
        self._peers = peers
        self._link = link
        self._connection = connection
        self._rest = rest

    def called(self, kind: int, body: bytes) -> TransportAnswer:
        if kind != CALLED:
            return self._rest.called(kind, body)
        try:
            call = _decode_call(body)
        except msgspec.DecodeError as error:
            raise InvalidArgument(f"Expected a call of this version, but {error}") from error
        return self._answer(call)

    async def _answer(self, call: Call) -> bytes:
        handler = self._peers.handler
        if handler is None:
            raise Unavailable("The member is still starting; try again")
        return _encode(await handler.called(self._connection.peer, call))

    def told(self, kind: int, body: bytes) -> None:
        if kind == TOLD:
            handler = self._peers.handler
            if handler is not None and self._link.connection is self._connection:
                handler.told(self._connection.peer, _decode_told(body))
        elif kind == GREETING:
            if self._link.connection is self._connection:
                self._peers.greeted(self._connection.peer, body)
        else:
            self._rest.told(kind, body)
