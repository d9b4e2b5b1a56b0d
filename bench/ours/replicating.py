"""Members that keep copies of a log, in processes of their own: ours, and a bare loop.

    python -m bench.ours.replicating ours b FOLDER ETCD_URL
    python -m bench.ours.replicating bare b FOLDER

The bare loop is what replication costs at the least in Python: frames over asyncio, fdatasync on
three processes, and an append is done when two of three have it.
"""

import asyncio
import os
import struct
import sys
from pathlib import Path

import uvloop

from holdfast.clock import SystemClock
from holdfast.cluster.peers import Greeting, LinkedPeers
from holdfast.errors import InvalidArgument
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.identity import DiskIdentity
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.limits import MIB
from holdfast.logs import configure
from holdfast.sequence.api import Replica
from holdfast.sequence.opening import open_coordination
from holdfast.transport import Connection, Handler, Link, Links, UnixAddress
from holdfast.transport.api import Identity
from holdfast.transport.sockets import SocketTransport

NAMES = ("a", "b", "c")
TOPIC = "records"
PARTITIONS = 64
FILE_BYTES = 64 * MIB
_HEAD = struct.Struct("<II")  # the bytes of the frame, its number


class _Nobody:
    """Refuses what is not said between journals: there is nothing here but a journal."""

    def called(self, kind: int, body: bytes) -> bytes:
        raise InvalidArgument(
            f"Expected a call between journals, but it has the kind {kind}; a member of this"
            " benchmark has nothing but its journal",
            kind=kind,
        )

    def told(self, kind: int, body: bytes) -> None: ...


class Member:
    """A member of three with nothing but its journal."""

    def __init__(self, name: str, folder: Path, etcd_url: str) -> None:
        self.name = name
        self._folder = folder
        self._url = etcd_url
        self._nonce = f"{name}-{os.getpid()}"
        self.journal: ClusterJournal

    async def start(self) -> None:
        """Opens the journal and connects; it does not wait for the others."""
        self._coordination = open_coordination(self._url, self._nonce)
        peers = self._peers = LinkedPeers(Greeting(f"d{self.name}", 1, self._nonce, ""))
        addresses = {name: UnixAddress(str(self._folder / f"{name}.sock")) for name in NAMES}
        transport = SocketTransport(Identity(self.name, "bench"))
        self.links = Links(self.name, transport, addresses, self._answering)
        peers.over(self.links)
        for link in self.links:
            peers.follow(link)
        disk = ClusterDisk.open(
            str(self._folder / self.name), DiskIdentity(f"d{self.name}", 1), clock=SystemClock()
        )
        self.journal = await ClusterJournal.open(
            self.name, disk, self._coordination, peers, SystemClock(),
            choose_set=lambda _: tuple(Replica(name, f"d{name}") for name in NAMES),
            nonce=self._nonce,
        )  # fmt: skip
        self.journal.create_topic(TOPIC, PARTITIONS)
        peers.handle(self.journal)
        await self.links.start()

    async def reached(self) -> None:
        """Returns when both others are heard."""
        changed = asyncio.Event()
        self._peers.on_change.append(lambda _: changed.set())
        while len(self._peers.heard()) < len(NAMES) - 1:
            changed.clear()
            await changed.wait()

    async def stop(self) -> None:
        await self.journal.close()
        await self.links.close()
        await self._coordination.close()

    def _answering(self, link: Link, connection: Connection) -> Handler:
        return self._peers.answering(link, connection, _Nobody())


# --- the bare loop ----------------------------------------------------------------------------


class BareFile:
    """A file that is filled with zeros, written and synced."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        for start in range(0, FILE_BYTES, MIB):
            os.pwrite(self._descriptor, bytes(MIB), start)
        os.fsync(self._descriptor)
        self._end = 0

    def append(self, data: bytes) -> None:
        if self._end + len(data) > FILE_BYTES:
            self._end = 0
        os.pwrite(self._descriptor, data, self._end)
        os.fdatasync(self._descriptor)
        self._end += len(data)


class BareReplica(asyncio.Protocol):
    """Writes each frame, syncs, and sends its number back."""

    def __init__(self, file: BareFile) -> None:
        self._file = file
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        at, number, frames = 0, -1, list[bytes]()
        while len(data) - at >= _HEAD.size:
            size, number_there = _HEAD.unpack_from(data, at)
            if len(data) - at < _HEAD.size + size:
                break
            number = number_there
            frames.append(data[at + _HEAD.size : at + _HEAD.size + size])
            at += _HEAD.size + size
        self._rest = data[at:]
        if frames:
            self._file.append(b"".join(frames))
            self._transport.write(_HEAD.pack(0, number))  # pyright: ignore


class BareOwner:
    """Sends to two replicas, writes its own file, and answers at two of three."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = BareFile(folder / "bare-a")
        self._number = 0
        self._reached = [0, 0, 0]
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._transports: list[asyncio.Transport] = []

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for at, name in enumerate(NAMES[1:], 1):
            path = str(self._folder / f"bare-{name}.sock")
            transport, _ = await loop.create_unix_connection(
                lambda at=at: _Acknowledging(self, at), path
            )
            self._transports.append(transport)  # pyright: ignore

    def append(self, data: bytes) -> asyncio.Future[None]:
        self._number += 1
        frame = _HEAD.pack(len(data), self._number) + data
        for transport in self._transports:
            transport.write(frame)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._number, done))
        self._file.append(data)
        self.reached(0, self._number)
        return done

    def reached(self, at: int, number: int) -> None:
        self._reached[at] = number
        quorum = sorted(self._reached)[1]
        while self._waiting and self._waiting[0][0] <= quorum:
            self._waiting.pop(0)[1].set_result(None)

    def stop(self) -> None:
        for transport in self._transports:
            transport.close()


class _Acknowledging(asyncio.Protocol):
    def __init__(self, owner: BareOwner, at: int) -> None:
        self._owner = owner
        self._at = at

    def data_received(self, data: bytes) -> None:
        self._owner.reached(self._at, _HEAD.unpack_from(data, len(data) - _HEAD.size)[1])


async def _main(kind: str, name: str, folder: Path, etcd_url: str) -> None:
    if kind == "ours":
        await Member(name, folder, etcd_url).start()
    else:
        file = BareFile(folder / f"bare-{name}")
        path = str(folder / f"bare-{name}.sock")
        await asyncio.get_running_loop().create_unix_server(lambda: BareReplica(file), path)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    configure(json=False, level="error")
    kind_, name_, folder_, *url_ = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(kind_, name_, Path(folder_), url_[0] if url_ else ""))
