"""The ways between two members that the contract is checked on, and peers that break the rules."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from holdfast.testing.loop import run
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import (
    Address,
    Answer,
    Connection,
    ConnectionBounds,
    Identity,
    Later,
    Listener,
    TcpAddress,
    Transport,
    UnixAddress,
)
from holdfast.transport.framing import frame_of
from holdfast.transport.keys import MemberKey
from holdfast.transport.messages import hello_of
from holdfast.transport.sockets import SocketTransport, _Endpoint
from holdfast.transport.tls import Tls

WAYS = ("unix", "tcp", "tls", "simulated")
CLUSTER = "orders"
QUICK = ConnectionBounds(tick_ms=30, silent_ticks_max=3)  # silence is noticed soon
HASTY = ConnectionBounds(
    tick_ms=30, silent_ticks_max=3, hello_ms_max=500
)  # and so is a missing greeting
ECHO, LATER, FAIL, HOLD, NOTE, COMPUTE = range(6)  # kinds of messages that `Script` knows
WAIT_S = 10.0


def framed(content: bytes) -> bytes:
    """A frame as the bytes that it is."""
    return b"".join(frame_of(content))


class Script:
    """A handler that does what the kind of a message says, and remembers everything."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.heard: list[tuple[int, bytes]] = []
        self.held: list[asyncio.Future[bytes]] = []
        self.error: BaseException = ValueError("secret")

    def __call__(self, connection: Connection) -> "Script":
        self.connection = connection
        return self

    def called(self, kind: int, body: bytes) -> Answer:
        self.heard.append((kind, body))
        if kind == ECHO:
            return body
        if kind == LATER:
            return self._later(body)
        if kind == HOLD:
            self.held.append(asyncio.get_running_loop().create_future())
            return self.held[-1]
        if kind == COMPUTE:
            number: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            number.set_result(2 * int(body))
            return Later(number, lambda number: bytes(str(number), "ascii")[: 100 // (number + 2)])
        raise self.error

    async def _later(self, body: bytes) -> bytes:
        await asyncio.sleep(int(body) / 1_000)
        return body

    def told(self, kind: int, body: bytes) -> None:
        self.heard.append((kind, body))
        if kind == FAIL:
            raise self.error


@dataclass
class Raw:
    """A peer without a session: says what it is told to, and does not answer."""

    heard: bytearray = field(default_factory=bytearray)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    wire: Any = None
    _room: bytearray = field(default_factory=lambda: bytearray(65_536))

    def begin(self, wire: Any) -> None:
        self.wire = wire

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def filled(self, count: int) -> None:
        self.heard += self._room[:count]

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def lost(self, error: Exception | None) -> None:
        self.ended.set()

    def say(self, data: bytes) -> None:
        """Bytes as they are, without a frame around them."""
        if isinstance(self.wire, _Endpoint):
            self.wire._transport.write(data)  # pyright: ignore[reportOptionalMemberAccess]
        elif data:
            self.wire._queue.append(data)
            self.wire._queued += len(data)
            self.wire.pump()

    async def greet(self, member: str = "a") -> None:
        self.say(framed(hello_of(Identity(member, CLUSTER))))
        await until(lambda: bool(self.heard))


async def until(condition: Callable[[], object]) -> None:
    """Waits for a condition, with a deadline."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - a condition with a deadline
            await asyncio.sleep(0.001)


class Way:
    """Members `a` and `b`, and how they reach each other."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.keys = {"a": MemberKey.make(), "b": MemberKey.make(), "c": MemberKey.make()}
        self.network: SimulatedNetwork | None = None

    def play(self, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a story: on virtual time, or on the loop that nodes run on."""
        if self.name == "simulated":
            self.network = SimulatedNetwork(seed=7, weather=Weather())
            run(story())
        else:
            uvloop.run(story())

    @property
    def address(self) -> Address:
        if self.name == "unix":
            return UnixAddress(str(self.folder / "b.sock"))
        return TcpAddress("b", 1) if self.name == "simulated" else TcpAddress("127.0.0.1", 0)

    def transport(
        self,
        member: str,
        *,
        bounds: ConnectionBounds = QUICK,
        cluster: str = CLUSTER,
        version: int = 1,
        oldest: int | None = None,
        key: str | None = None,
        registered: dict[str, str] | None = None,
    ) -> Transport:
        """`key` is whose key it holds, `registered` whose key is registered for whom."""
        identity = Identity(member, cluster, version, oldest or version)
        own = self.keys[key or member]
        names = registered or {"a": "a", "b": "b"}
        publics = {name: self.keys[whose].public for name, whose in names.items()}
        if self.name == "simulated":
            assert self.network is not None
            return SimulatedTransport(
                self.network, member, identity, bounds=bounds, key=own.public, keys=publics
            )
        tls = Tls(own, publics) if self.name == "tls" else None
        return SocketTransport(identity, bounds=bounds, tls=tls)

    @asynccontextmanager
    async def pair(
        self, *, bounds: ConnectionBounds = QUICK
    ) -> AsyncIterator[tuple[Connection, Script, Script]]:
        """A connection of `a` to `b`, and the scripts of both."""
        ours, theirs = Script(), Script()
        listener = await self.transport("b", bounds=bounds).listen(self.address, theirs)
        connection = await self.transport("a", bounds=bounds).connect(listener.address, "b", ours)
        await until(lambda: theirs.connection)
        try:
            yield connection, ours, theirs
        finally:
            connection.close()
            await listener.close()

    @asynccontextmanager
    async def raw(
        self, *, bounds: ConnectionBounds = QUICK
    ) -> AsyncIterator[tuple[Raw, Script, Listener]]:
        """A raw peer that has dialed `b`."""
        script, peer = Script(), Raw()
        listener = await self.transport("b", bounds=bounds).listen(self.address, script)
        await self._dial_raw(listener.address, peer)
        try:
            yield peer, script, listener
        finally:
            peer.wire.abort()
            await listener.close()

    async def _dial_raw(self, address: Address, peer: Raw) -> None:
        endpoint: Any = peer
        transport = self.transport("a")
        if isinstance(transport, SimulatedTransport):
            assert isinstance(address, TcpAddress)
            wire = transport._wire(endpoint)
            transport.send((address.host, 0), ("open", wire.number, address.port, transport._key))
            peer.begin(wire)
            await until(lambda: wire.far)
        else:
            assert isinstance(transport, SocketTransport)
            await transport._dial(address, endpoint)
