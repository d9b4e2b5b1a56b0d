"""The transport over sockets: Unix, TCP on this machine, and TLS beyond it.

The only module between members that touches the network.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from holdfast.errors import Forbidden, InvalidArgument, Unavailable
from holdfast.limits import STRANGERS_MAX, UNIX_PATH_BYTES_MAX
from holdfast.logs import log
from holdfast.transport.api import (
    Address,
    Answering,
    Connection,
    ConnectionBounds,
    Identity,
    Listener,
    TcpAddress,
    Transport,
    UnixAddress,
)
from holdfast.transport.framing import LARGE_BYTES, Frame
from holdfast.transport.session import Session
from holdfast.transport.tls import Tls, proved_key


class _Endpoint(asyncio.BufferedProtocol):
    """A socket as the wire of a session."""

    def __init__(self, session: Session, bounds: ConnectionBounds) -> None:
        self.session = session
        self._pause_bytes = bounds.frame_bytes
        self._transport: asyncio.Transport | None = None

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by descent
        self._transport.set_write_buffer_limits(high=self._pause_bytes)
        self.session.begin(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.session.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.session.filled(nbytes)

    def pause_writing(self) -> None:
        self.session.pause()

    def resume_writing(self) -> None:
        self.session.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.session.lost(exc)

    # --- the session's side -------------------------------------------------------------------

    def write(self, frame: Frame) -> None:
        if self._transport is None:
            return  # asyncio is about to say that it is lost
        head, rest = frame
        if len(rest) < LARGE_BYTES:
            self._transport.write(head + rest)  # cheaper than two buffers
        else:
            self._transport.writelines(frame)

    def unsent(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def key(self) -> bytes | None:
        assert self._transport is not None
        connection = self._transport.get_extra_info("ssl_object")
        return proved_key(connection) if connection is not None else None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class SocketTransport(Transport):
    """Real connections of one member. With `tls` TCP is encrypted, and keys are checked."""

    def __init__(
        self, identity: Identity, *, bounds: ConnectionBounds | None = None, tls: Tls | None = None
    ) -> None:
        self._identity = identity
        self._bounds = bounds or ConnectionBounds()
        self._tls = tls

    def session(
        self, address: Address, answering: Answering, expected: str | None = None
    ) -> Session:
        """One side of a connection that is about to be made."""
        keys = self._tls.keys if self._tls is not None and _is_tcp(address) else None
        return Session(
            self._identity, answering, self._bounds, str(address), expected=expected, keys=keys
        )

    def endpoint(self, session: Session) -> _Endpoint:
        """The wire of a session, as asyncio wants it."""
        return _Endpoint(session, self._bounds)

    async def connect(self, address: Address, peer: str, answering: Answering) -> Connection:
        session = self.session(address, answering, peer)
        try:
            async with asyncio.timeout(self._bounds.hello_ms_max / 1_000):
                await self._dial(address, session)
                return await session.opened
        except Unavailable as error:
            if self._tls is None or not _is_tcp(address):
                raise
            raise Unavailable(  # TLS 1.3 lets a client finish before its own key is looked at
                f"{error.message}; perhaps it does not have the key of {self._identity.member!r}",
                **error.fields,
            ) from error
        except ssl.SSLError as error:
            raise Forbidden(
                f"Expected the key that is registered for member {peer!r} at {address}, but TLS"
                f" failed: {error.reason or error}; look at the registered keys of both sides",
                member=peer,
            ) from error
        except (OSError, TimeoutError) as error:
            session.close()
            raise Unavailable(
                f"Expected member {peer!r} at {address}, but {_reason(error)}", member=peer
            ) from error

    async def _dial(self, address: Address, session: Session) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(address, UnixAddress):
            await loop.create_unix_connection(lambda: self.endpoint(session), address.path)
            return
        self._check_reach(address)
        await loop.create_connection(
            lambda: self.endpoint(session),
            address.host,
            address.port,
            ssl=self._tls.client if self._tls is not None else None,
            server_hostname="" if self._tls is not None else None,
        )

    async def listen(self, address: Address, answering: Answering) -> Listener:
        """Listens; `Unavailable` where another process does, `InvalidArgument` beyond reach."""
        loop = asyncio.get_running_loop()
        listening = _Listening(self, address, answering)
        if isinstance(address, UnixAddress):
            bound = bind_unix(address.path)
            listening.server = await loop.create_unix_server(listening.accept, sock=bound)
            return listening
        self._check_reach(address)
        try:
            listening.server = await loop.create_server(
                listening.accept,
                address.host,
                address.port,
                ssl=self._tls.server if self._tls is not None else None,
                ssl_handshake_timeout=(
                    self._bounds.hello_ms_max / 1_000 if self._tls is not None else None
                ),
            )
        except OSError as error:
            raise Unavailable(
                f"Expected to listen on {address}, but {_reason(error)}", address=str(address)
            ) from error
        port = listening.server.sockets[0].getsockname()[1]
        listening.address = TcpAddress(address.host, port)
        return listening

    def _check_reach(self, address: TcpAddress) -> None:
        if self._tls is None and not _is_loopback(address.host):
            raise InvalidArgument(
                f"Expected an address of this machine without TLS, but found {address}; give the"
                " member a key and register the others' keys",
                address=str(address),
            )


class _Listening:
    """A socket that is listened on, and the connections that came over it."""

    server: asyncio.Server

    def __init__(self, transport: SocketTransport, address: Address, answering: Answering) -> None:
        self.address: Address = address
        self._transport = transport
        self._answering = answering
        self._strangers: set[Session] = set()
        self._sessions: set[Session] = set()
        self._closed = False

    @property
    def connections(self) -> list[Connection]:
        return list(self._sessions)

    def accept(self) -> _Endpoint:
        session = self._transport.session(self.address, self._answering)
        if self._closed or len(self._strangers) >= STRANGERS_MAX:
            why = f"more than {STRANGERS_MAX} (STRANGERS_MAX) have not greeted"
            log.warning("connection between members refused", where=str(self.address), why=why)
            session.close()
            return _Refusing(session, ConnectionBounds())
        self._strangers.add(session)
        session.opened.add_done_callback(lambda _: self._greeted(session))
        session.await_greeting()  # nobody tells when TLS fails
        return self._transport.endpoint(session)

    def _greeted(self, session: Session) -> None:
        self._strangers.discard(session)
        if not session.closed:
            self._sessions.add(session)
            session.on_closed(lambda _: self._sessions.discard(session))

    async def close(self) -> None:
        self._closed = True
        self.server.close()
        for session in [*self._strangers, *self._sessions]:
            session.close()
        if isinstance(self.address, UnixAddress):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.address.path)  # noqa: PTH108
        await asyncio.sleep(0)  # asyncio closes sockets in the next turn


class _Refusing(_Endpoint):
    """Takes a connection only to end it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


def bind_unix(path: str) -> socket.socket:
    """A socket at this path that only this user may connect to.

    The file of a member that is gone is removed; one whose member answers is not.
    """
    if len(os.fsencode(path)) > UNIX_PATH_BYTES_MAX:
        raise InvalidArgument(
            f"Expected a path of at most {UNIX_PATH_BYTES_MAX} bytes (UNIX_PATH_BYTES_MAX) for the"
            f" socket, but {path} is longer; use a folder with a shorter name",
            limit="UNIX_PATH_BYTES_MAX", path=path,
        )  # fmt: skip
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(path)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101 - nobody can connect before
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise Unavailable(
            f"Expected to listen at {path}, but {_reason(error)}", path=path
        ) from error
    return bound


def _remove_stale(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise InvalidArgument(f"Expected a socket or nothing at {path}, but found a file")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise Unavailable(f"Expected to listen at {path}, but {_reason(error)}") from error
        else:
            raise Unavailable(
                f"Expected to listen at {path}, but another process does; stop it first", path=path
            )


def _is_tcp(address: Address) -> bool:
    return isinstance(address, TcpAddress)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "there was no answer in time"
    strerror = getattr(error, "strerror", None)
    return strerror or str(error) or type(error).__name__
