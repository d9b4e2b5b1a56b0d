"""One connection without its socket: greeting, messages, signs of life, and its end.

A wire brings bytes and takes bytes: a socket, or the simulated network.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable
from typing import Any, Protocol

from holdfast.errors import HoldfastError, Unknown
from holdfast.logs import log
from holdfast.transport.api import (
    Answering,
    Connection,
    ConnectionBounds,
    Identity,
    NotSent,
    Take,
    Traffic,
)
from holdfast.transport.exchange import Exchange, settle
from holdfast.transport.framing import Frame, Incoming, frame_of
from holdfast.transport.greeting import Keys, common_version, refusal
from holdfast.transport.keepalive import Keepalive, Verdict
from holdfast.transport.messages import (
    MESSAGE_HEAD_BYTES,
    Fault,
    decode_greeting,
    hello_of,
    refusal_of,
)


class Wire(Protocol):
    """What carries a session's bytes, in order and unchanged, or ends."""

    def write(self, frame: Frame) -> None:
        """Sends a frame."""
        ...

    def unsent(self) -> int:
        """Bytes that were written and have not left."""
        ...

    def key(self) -> bytes | None:
        """The public key that the peer has proved to hold, if the wire makes it do so."""
        ...

    def close(self) -> None:
        """Sends what was written, then ends."""
        ...

    def abort(self) -> None:
        """Ends at once."""
        ...


class Session(Connection):
    """One side of one connection. Its wire calls `begin`, `filled`, `pause`, `resume`, `lost`."""

    def __init__(
        self,
        identity: Identity,
        answering: Answering,
        bounds: ConnectionBounds,
        where: str,
        *,
        expected: str | None = None,
        keys: Keys | None = None,
    ) -> None:
        """`expected` is the member that is dialed; None on the accepting side."""
        self._identity = identity
        self._answering = answering
        self._bounds = bounds
        self._where = where
        self._expected = expected
        self._keys = keys
        self._loop = asyncio.get_running_loop()
        self.opened: Future[Session] = self._loop.create_future()
        self.opened.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._peer = expected or ""
        self._version = identity.version  # until the peer has greeted
        self._traffic = Traffic()
        self._incoming = Incoming(bounds.message_bytes_max + 2 * MESSAGE_HEAD_BYTES)
        self._keepalive = Keepalive(bounds)
        self._exchange: Exchange | None = None  # from the greeting on
        self._wire: Wire | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended: str | None = None  # why
        self._on_closed: list[Callable[[str], None]] = []

    # --- the port -----------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def version(self) -> int:
        return self._version

    @property
    def traffic(self) -> Traffic:
        return self._traffic

    @property
    def closed(self) -> bool:
        return self._ended is not None

    @property
    def held_bytes(self) -> int:
        """What is kept here for the peer."""
        return self._exchange.held_bytes if self._exchange is not None else self._unsent()

    def call(self, kind: int, body: bytes, take: Take | None = None) -> Future[Any]:
        if self._exchange is None or self._ended is not None:
            return self._refuse_call(kind, body, take)
        return self._exchange.call(kind, body, take)

    def _refuse_call(self, kind: int, body: bytes, take: Take | None = None) -> Future[Any]:
        future: Future[Any] = self._loop.create_future()
        settle(future, take, self._gone())
        return future

    def tell(self, kind: int, body: bytes, *, at_once: bool = False) -> None:
        if self._exchange is None or self._ended is not None:
            raise self._gone()
        self._exchange.tell(kind, body, at_once=at_once)

    def _refuse_tell(self, kind: int, body: bytes, *, at_once: bool = False) -> None:
        raise self._gone()

    async def room(self) -> None:
        if self._exchange is not None:
            await self._exchange.room()
        if self._exchange is None or self._ended is not None:
            raise self._gone()

    def on_closed(self, callback: Callable[[str], None]) -> None:
        if self._ended is None:
            self._on_closed.append(callback)
        else:
            callback(self._ended)

    def close(self) -> None:
        self._finish("this member closed it")

    # --- the wire -----------------------------------------------------------------------------

    def await_greeting(self) -> None:
        """From here on the time counts; a wire may never come, as where TLS fails."""
        if self._timer is None:
            wait_s = self._bounds.hello_ms_max / 1_000
            self._timer = self._loop.call_later(wait_s, self._too_late)

    def begin(self, wire: Wire) -> None:
        """The wire is there. The side that dialed greets first."""
        if self._ended is not None:
            wire.abort()
            return
        self._wire = wire
        self.await_greeting()
        if self._expected is not None:
            self._write(frame_of(hello_of(self._identity)))

    def buffer(self) -> memoryview:
        """Where the wire puts the bytes that come."""
        return self._incoming.room()

    def filled(self, count: int) -> None:
        """So many bytes came."""
        self._traffic.bytes_received += count
        try:
            for frame in self._incoming.filled(count):
                self._traffic.frames_received += 1
                if self._exchange is not None:
                    self._exchange.receive(frame)
                else:
                    self._greeted(frame)
                if self._ended is not None:
                    return
        except Fault as fault:
            self._break(str(fault))

    def pause(self) -> None:
        """The wire has enough to send for now."""
        if self._exchange is not None:
            self._exchange.pause()

    def resume(self) -> None:
        if self._exchange is not None:
            self._exchange.resume()

    def lost(self, error: Exception | None) -> None:
        """The wire has ended."""
        if self._ended is None and self._incoming.in_frame:
            self._log("connection between members closed", "it ended in the middle of a frame")
        self._end(f"it broke: {error}" if error is not None else "the other side closed it")
        self._wire = None

    def _write(self, frame: Frame) -> None:
        assert self._wire is not None, "what has ended sends nothing"
        self._traffic.frames_sent += 1
        self._traffic.bytes_sent += len(frame[0]) + len(frame[1])
        self._wire.write(frame)

    def _unsent(self) -> int:
        return self._wire.unsent() if self._wire is not None else 0

    # --- greeting -----------------------------------------------------------------------------

    def _greeted(self, frame: memoryview) -> None:
        greeting = decode_greeting(frame)
        if isinstance(greeting, HoldfastError):
            self._refuse(greeting, told=True)
            return
        assert self._wire is not None
        found = refusal(self._identity, greeting, self._expected, self._wire.key(), self._keys)
        if found is not None:
            self._refuse(found)
            return
        self._open(greeting)

    def _open(self, theirs: Identity) -> None:
        """The peer is taken, unless there is nobody to answer it."""
        peer = self._peer = theirs.member
        self._version = common_version(self._identity, theirs) or self._identity.version
        exchange = Exchange(self._identity.member, peer, self._bounds, self._write, self._unsent)
        self._exchange = exchange
        try:
            exchange.handler = self._answering(self)
        except HoldfastError as error:
            self._exchange = None
            self._refuse(error)
            return
        self.call, self.tell = exchange.call, exchange.tell  # the short way, until the end
        if self._expected is None:
            self._write(frame_of(hello_of(self._identity)))
        self._incoming.admit()
        if self._timer is not None:
            self._timer.cancel()
        self._tick_later()
        if not self.opened.done():
            self.opened.set_result(self)

    def _refuse(self, error: HoldfastError, *, told: bool = False) -> None:
        """Nobody talks to this peer; one that has dialed is told why."""
        if self._expected is None and not told:
            self._write(frame_of(refusal_of(error)))
        self._log("connection between members refused", error.message)
        if not self.opened.done():
            self.opened.set_exception(error)
        self._finish(error.message)

    def _too_late(self) -> None:
        self._break(f"no greeting came within {self._bounds.hello_ms_max} ms")

    # --- signs of life ------------------------------------------------------------------------

    def _tick_later(self) -> None:
        self._timer = self._loop.call_later(self._bounds.tick_ms / 1_000, self._tick)

    def _tick(self) -> None:
        assert self._exchange is not None, "ticks begin with the greeting"
        verdict = self._keepalive.tick(self._traffic.bytes_received, self._unsent())
        if verdict is Verdict.SILENT:
            self._break(f"nothing was heard for {self._bounds.silent_ms_max} ms")
        elif verdict is Verdict.STUCK:
            self._break(f"nothing of {self._unsent()} waiting bytes was read for too long")
        else:
            if verdict is Verdict.ASK:
                self._exchange.ping()
            self._tick_later()

    # --- the end ------------------------------------------------------------------------------

    def _break(self, why: str) -> None:
        """Ends a connection that cannot go on."""
        self._log("connection between members closed", why)
        if self._wire is not None:
            self._wire.abort()
        self._end(why)

    def _finish(self, why: str) -> None:
        """Ends after what was sent; a peer that does not take it is not waited for."""
        if self._ended is not None:
            return
        if self._exchange is not None:
            self._exchange.flush()
        wire = self._wire
        if wire is not None:
            wire.close()
        self._end(why)
        if self._wire is not None:
            self._timer = self._loop.call_later(self._bounds.silent_ms_max / 1_000, self._abort)

    def _abort(self) -> None:
        if self._wire is not None:
            self._wire.abort()

    def _end(self, why: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ended is not None:
            return
        self._ended = why
        if not self.opened.done():
            self.opened.set_exception(self._gone())
        if self._exchange is not None:
            self.call, self.tell = self._refuse_call, self._refuse_tell
            self._exchange.end(self._gone, self._unknown)
        for callback in self._on_closed:
            callback(why)
        self._on_closed.clear()

    def _log(self, event: str, why: str) -> None:
        log.warning(event, peer=self._peer or None, where=self._where, why=why)

    def _gone(self) -> NotSent:
        return NotSent(
            f"Expected a connection to member {self._peer!r} at {self._where}, but"
            f" {self._ended or 'there is none yet'}",
            member=self._peer,
        )

    def _unknown(self) -> Unknown:
        return Unknown(
            f"The connection to member {self._peer!r} at {self._where} ended before an answer came:"
            f" {self._ended}. The request may have been executed",
            member=self._peer,
        )
