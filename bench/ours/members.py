"""A member in a process of its own that answers what it is sent, and a bare socket that does.

`python -m bench.ours.members unix /tmp/echo.sock keys` prints a line when it listens, and ends with
its standard input. The bare ones send every byte back as it comes, or only count it: they are what
the transport is measured against.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from holdfast.transport import Address, Connection, Identity, TcpAddress, UnixAddress
from holdfast.transport.keys import MemberKey
from holdfast.transport.sockets import SocketTransport, bind_unix
from holdfast.transport.tls import Tls

ECHO, COST, COUNT = range(3)  # kinds of calls
HOST = "127.0.0.1"
BARE_COST = b"what did it cost"
NUMBER_BYTES = 8
BUFFER_BYTES = 256 * 1024
NAMES = ("a", "b")  # the process that measures, and the one that answers


def cost() -> bytes:
    """The processor time of this process, in microseconds."""
    return int(time.process_time() * 1e6).to_bytes(NUMBER_BYTES)


class Echo:
    """Answers calls with what they brought, and counts the bytes that it was told."""

    def __init__(self, connection: Connection) -> None:
        self.taken = 0

    def called(self, kind: int, body: bytes) -> bytes:
        if kind == ECHO:
            return body
        return cost() if kind == COST else self.taken.to_bytes(NUMBER_BYTES)

    def told(self, kind: int, body: bytes) -> None:
        self.taken += len(body)


class BareEcho(asyncio.BufferedProtocol):
    """Sends back what comes; tells its cost when it is asked for that."""

    def __init__(self) -> None:
        self._room = bytearray(BUFFER_BYTES)
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(self._room)[:nbytes])
        self._transport.write(cost() if data == BARE_COST else data)


class BareCount(BareEcho):
    """Is told how many bytes will come, and answers when they have."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 0

    def buffer_updated(self, nbytes: int) -> None:
        if self._left == 0:
            self._left = int.from_bytes(memoryview(self._room)[:NUMBER_BYTES]) + NUMBER_BYTES
        self._left -= nbytes
        if self._left == 0:
            self._transport.write(b"!")


def identity(member: str) -> Identity:
    return Identity(member, "bench")


def tls_of(member: str, keys: str) -> Tls:
    """TLS with the keys that both processes find in one folder."""
    own = {name: MemberKey.open(Path(keys) / f"{name}.pem") for name in NAMES}
    return Tls(own[member], {name: key.public for name, key in own.items()})


def address_of(way: str, place: str) -> Address:
    return UnixAddress(place) if way == "unix" else TcpAddress(HOST, int(place))


async def _serve(what: str, way: str, place: str, keys: str) -> None:
    loop = asyncio.get_running_loop()
    tls = tls_of(NAMES[1], keys) if way == "tls" else None
    if what == "member":
        await SocketTransport(identity(NAMES[1]), tls=tls).listen(address_of(way, place), Echo)
    else:
        factory = BareEcho if what == "echo" else BareCount
        if way == "unix":
            await loop.create_unix_server(factory, sock=bind_unix(place))
        else:
            context = tls.server if tls is not None else None
            await loop.create_server(factory, HOST, int(place), ssl=context)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:]))
