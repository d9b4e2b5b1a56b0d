"""Connections between members over the simulated network: the real sessions on simulated wires.

Bytes travel in chunks. A wire puts them in order again, as TCP does, and takes them once; a chunk
that is lost breaks the connection after a while. Connections are delayed and overtaken
independently of each other. A member can be stalled, its connections reset, and the network split
or cut one way; everything follows from the network's seed.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.errors import Unavailable
from holdfast.limits import KIB, STRANGERS_MAX
from holdfast.testing.network import SimulatedNetwork
from holdfast.transport.api import (
    Address,
    Answering,
    Connection,
    ConnectionBounds,
    Identity,
    Listener,
    TcpAddress,
    Transport,
)
from holdfast.transport.framing import Frame
from holdfast.transport.greeting import Keys
from holdfast.transport.session import Session

CHUNK_BYTES = 64 * KIB
WINDOW_BYTES = 256 * KIB  # on the way at once, as in the buffers of two kernels
PAUSE_BYTES = 64 * KIB  # beyond it the session is asked to pause
GAP_MS = 500  # a chunk that is missing for so long will not come: the connection is reset

Place = tuple[str, int]  # a name on the network and the number of a wire there


class _Wire:
    """One end of a simulated connection."""

    def __init__(self, host: "SimulatedTransport", number: int, session: Session) -> None:
        self._host = host
        self.number = number
        self.session = session
        self.far: Place | None = None  # the other end, once it is known
        self.far_key: bytes | None = None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._sent = 0  # chunks
        self._on_the_way: deque[int] = deque()  # their bytes
        self._taken = 0  # chunks of the other end that the session has
        self._early: dict[int, bytes] = {}
        self._gap: asyncio.TimerHandle | None = None
        self._closing = False
        self._lost = False
        self._paused = False

    # --- the session's side -------------------------------------------------------------------

    def write(self, frame: Frame) -> None:
        data = b"".join(frame)
        for begin in range(0, len(data), CHUNK_BYTES):
            self._queue.append(data[begin : begin + CHUNK_BYTES])
        self._queued += len(data)
        self.pump()

    def unsent(self) -> int:
        return self._queued

    def key(self) -> bytes | None:
        return self.far_key

    def close(self) -> None:
        self._closing = True
        self.pump()

    def abort(self) -> None:
        self._tell("reset")
        self._end(None)

    # --- the network's side -------------------------------------------------------------------

    def pump(self) -> None:
        """Sends what fits the window; the end itself is a chunk, so that it comes last."""
        if self.far is None or self._lost:
            return
        while self._queue and sum(self._on_the_way) < WINDOW_BYTES:
            chunk = self._queue.popleft()
            self._queued -= len(chunk)
            self._send_chunk(chunk)
        if self._closing and not self._queue:
            self._send_chunk(b"")
            self._end(None)
            return
        self._set_paused(self._queued > PAUSE_BYTES)

    def _send_chunk(self, chunk: bytes) -> None:
        self._on_the_way.append(len(chunk))
        self._tell("chunk", self._sent, chunk)
        self._sent += 1

    def _tell(self, word: str, *rest: Any) -> None:
        if self.far is not None and not self._lost:
            self._host.send(self.far, (word, self.number, *rest))

    def _set_paused(self, paused: bool) -> None:
        if paused != self._paused and not self._lost:
            self._paused = paused
            if paused:
                self.session.pause()
            else:
                self.session.resume()

    def chunk(self, number: int, chunk: bytes) -> None:
        """A chunk came, perhaps before its turn or for the second time."""
        if number >= self._taken:
            self._early[number] = chunk
        while not self._lost and (next_chunk := self._early.pop(self._taken, None)) is not None:
            self._taken += 1
            if next_chunk:
                self._feed(next_chunk)
            else:
                self._end(None)
        self._tell("taken", self._taken)
        if self._gap is not None:
            self._gap.cancel()
            self._gap = None
        if self._early and not self._lost:
            loop = asyncio.get_running_loop()
            self._gap = loop.call_later(GAP_MS / 1_000, self.reset)

    def _feed(self, chunk: bytes) -> None:
        begin = 0
        while begin < len(chunk) and not self._lost:
            room = self.session.buffer()
            count = min(len(room), len(chunk) - begin)
            room[:count] = chunk[begin : begin + count]
            begin += count
            self.session.filled(count)

    def taken(self, count: int) -> None:
        """The other end has taken so many chunks in all."""
        while self._on_the_way and self._sent - len(self._on_the_way) < count:
            self._on_the_way.popleft()
        self.pump()

    def reset(self) -> None:
        """The connection breaks: the other end is told, if it can be reached."""
        self._tell("reset")
        self._end(ConnectionResetError("the connection was reset"))

    def lose(self) -> None:
        """The other end has reset the connection, or knows of none."""
        self._end(ConnectionResetError("the other side reset the connection"))

    def _end(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        if self._gap is not None:
            self._gap.cancel()
        self._host.forget(self)
        asyncio.get_running_loop().call_soon(self.session.lost, error)  # as asyncio does it


class SimulatedTransport(Transport):
    """One member's connections over a `SimulatedNetwork`; addresses are `TcpAddress(name, port)`.

    `key` and `keys` stand for TLS: the key that this member holds, and those that it accepts.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        name: str,
        identity: Identity,
        *,
        bounds: ConnectionBounds | None = None,
        key: bytes | None = None,
        keys: Keys | None = None,
    ) -> None:
        self.name = name
        self._network = network
        self._identity = identity
        self._bounds = bounds or ConnectionBounds()
        self._key = key
        self._keys = keys
        self._wires: dict[int, _Wire] = {}
        self._accepted: set[Place] = set()  # an opening may come twice
        self._listening: dict[int, _Listening] = {}
        self._held: list[tuple[str, Any]] | None = None  # while it is stalled
        network.attach(name, self._received)

    # --- what a story does to it --------------------------------------------------------------

    def stall(self) -> None:
        """This member reads nothing any more; what comes waits."""
        self._held = self._held if self._held is not None else []

    def go_on(self) -> None:
        """It reads again, beginning with what waited."""
        held, self._held = self._held or [], None
        for sender, message in held:
            self._received(sender, message)

    def reset_all(self) -> None:
        """Every connection of this member breaks."""
        for wire in list(self._wires.values()):
            wire.reset()

    def crash(self) -> None:
        """The member is gone with all it knew; nobody is told."""
        self._network.detach(self.name)
        self._listening.clear()
        for wire in list(self._wires.values()):
            wire.far = None
            wire.lose()

    # --- the port -----------------------------------------------------------------------------

    async def connect(self, address: Address, peer: str, answering: Answering) -> Connection:
        assert isinstance(address, TcpAddress), "a simulated member has a name and a port"
        session = self._session(str(address), answering, peer)
        wire = self._wire(session)
        self.send((address.host, 0), ("open", wire.number, address.port, self._key))
        session.begin(wire)
        return await session.opened

    async def listen(self, address: Address, answering: Answering) -> Listener:
        assert isinstance(address, TcpAddress), "a simulated member has a name and a port"
        if address.port in self._listening:
            raise Unavailable(f"Expected to listen on {address}, but another does")
        self._network.attach(self.name, self._received)
        listening = _Listening(address, answering, lambda: self._listening.pop(address.port, None))
        self._listening[address.port] = listening
        return listening

    def send(self, place: Place, message: Any) -> None:
        """To a wire elsewhere; whether it arrives is the network's affair."""
        name, number = place
        self._network.send(self.name, name, (number, message))

    def forget(self, wire: _Wire) -> None:
        self._wires.pop(wire.number, None)

    def _session(self, where: str, answering: Answering, expected: str | None = None) -> Session:
        return Session(
            self._identity, answering, self._bounds, where, expected=expected, keys=self._keys
        )

    def _wire(self, session: Session) -> _Wire:
        number = self._network.number()
        wire = self._wires[number] = _Wire(self, number, session)
        return wire

    def _received(self, sender: str, message: Any) -> None:
        if self._held is not None:
            self._held.append((sender, message))
            return
        number, (word, far, *rest) = message
        if word == "open":
            self._opened((sender, far), *rest)
            return
        wire = self._wires.get(number)
        if wire is None:
            if word == "chunk":  # to one that has closed or crashed
                self.send((sender, far), ("reset", number))
        elif word == "accepted":
            wire.far, wire.far_key = (sender, far), rest[0]
            wire.pump()
        elif word == "chunk":
            wire.chunk(*rest)
        elif word == "taken":
            wire.taken(*rest)
        else:
            wire.lose()

    def _opened(self, far: Place, port: int, key: bytes | None) -> None:
        listening = self._listening.get(port)
        if listening is None:
            self.send(far, ("reset", 0))
            return
        if far in self._accepted:
            return
        self._accepted.add(far)
        session = self._session(str(listening.address), listening.answering)
        wire = self._wire(session)
        wire.far, wire.far_key = far, key
        self.send(far, ("accepted", wire.number, self._key))
        listening.add(session)
        session.begin(wire)


class _Listening:
    def __init__(
        self, address: TcpAddress, answering: Answering, stop: Callable[[], object]
    ) -> None:
        self.address: Address = address
        self.answering = answering
        self._stop = stop
        self._sessions: dict[Session, None] = {}  # in the order in which they came

    @property
    def connections(self) -> list[Connection]:
        return [session for session in self._sessions if session.opened.done()]

    def add(self, session: Session) -> None:
        assert len(self._sessions) < STRANGERS_MAX, "a story with fewer members"
        self._sessions[session] = None
        session.on_closed(lambda _: self._sessions.pop(session, None))

    async def close(self) -> None:
        self._stop()
        for session in list(self._sessions):
            session.close()
