"""Calls, answers and tells of one established connection, both ways.

Whatever is sent in one turn of the loop leaves in one frame and one write.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.errors import HoldfastError, Internal, Unavailable, Unknown
from holdfast.logs import log
from holdfast.transport.api import ConnectionBounds, Handler, Later, Take
from holdfast.transport.framing import Frame
from holdfast.transport.messages import (
    ANSWER,
    ERROR,
    PING,
    PONG,
    Fault,
    decode_error,
    decode_messages,
    encode_error,
)
from holdfast.transport.outbox import Outbox, UnansweredCalls

Write = Callable[[Frame], None]
Unsent = Callable[[], int]


class Exchange:
    """What two members are asking each other."""

    def __init__(
        self, member: str, peer: str, bounds: ConnectionBounds, write: Write, unsent: Unsent
    ) -> None:
        """`write` takes a frame; `unsent` tells how many written bytes are here."""
        self._member = member
        self._peer = peer
        self._bounds = bounds
        self._write = write
        self._unsent = unsent
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(bounds)
        self._serving = UnansweredCalls(bounds)
        # with the bytes of their bodies
        self._calls: dict[int, tuple[Future[Any], int, Take | None]] = {}
        self._number = 0
        self._flushing = False
        self._paused = False
        self._ended = False
        self._waiting_for_room: list[Future[None]] = []
        self.handler: Handler | None = None

    @property
    def held_bytes(self) -> int:
        """What is kept here for the peer."""
        return self._outbox.waiting_bytes + self._unsent()

    # --- asking -------------------------------------------------------------------------------

    def call(self, kind: int, body: bytes, take: Take | None = None) -> Future[Any]:
        assert kind >= 0, "numbers below 0 are the transport's"
        future: Future[Any] = self._loop.create_future()
        trouble = self._outbox.refusal(len(body), self._unsent() if self._paused else 0)
        if trouble is not None:
            settle(future, take, trouble)
            return future
        self._number += 1
        self._calls[self._number] = (future, len(body), take)
        self._outbox.add_call((kind, self._number, body))
        if not self._flushing:
            self._flush_soon()
        return future

    def tell(self, kind: int, body: bytes, *, at_once: bool = False) -> None:
        assert kind >= 0, "numbers below 0 are the transport's"
        trouble = self._outbox.refusal(len(body), self._unsent() if self._paused else 0)
        if trouble is not None:
            raise trouble
        if at_once:
            self._outbox.add((kind, 0, body))
            self._write_gathered()
        else:
            self._send(kind, 0, body)

    def ping(self) -> None:
        """Asks for a sign of life."""
        self._send(PING, 0, b"")

    async def room(self) -> None:
        """Waits until a message would be taken, or until the end."""
        while not self._ended and not self._has_room():
            waiting: Future[None] = self._loop.create_future()
            self._waiting_for_room.append(waiting)
            await waiting

    def _has_room(self) -> bool:
        return self._outbox.refusal(0, self._unsent() if self._paused else 0) is None

    def _tell_of_room(self) -> None:
        if self._waiting_for_room and (self._ended or self._has_room()):
            waiting, self._waiting_for_room = self._waiting_for_room, []
            for each in waiting:
                if not each.done():
                    each.set_result(None)

    # --- sending ------------------------------------------------------------------------------

    def _send(self, kind: int, number: int, body: bytes) -> None:
        self._outbox.add((kind, number, body))
        if not self._flushing:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._paused:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes what this turn has gathered, unless the wire has enough."""
        self._flushing = False
        self._write_gathered()

    def _write_gathered(self) -> None:
        if not self._ended and not self._paused and len(self._outbox):
            for frame in self._outbox.take():
                self._write(frame)
            self._tell_of_room()

    def pause(self) -> None:
        """The wire has enough to send for now."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if len(self._outbox) and not self._flushing:
            self._flush_soon()
        self._tell_of_room()

    # --- receiving ----------------------------------------------------------------------------

    def receive(self, frame: memoryview) -> None:
        """Takes a frame of messages; raises `Fault` for what is not of the protocol."""
        handler = self.handler
        assert handler is not None, "it is set before the first message"
        for kind, number, body in decode_messages(frame):
            if kind >= 0:
                if number:
                    self._called(handler, kind, number, body)
                else:
                    self._told(handler, kind, body)
            elif kind == ANSWER:
                self._answered(number, body)
            elif kind == ERROR:
                self._answered(number, decode_error(body))
            elif kind == PING:
                self._send(PONG, 0, b"")
            elif kind != PONG:
                raise Fault(f"a message has the kind {kind}")
            if self._ended:
                return
        self._tell_of_room()

    def _answered(self, number: int, answer: bytes | HoldfastError) -> None:
        try:
            future, size, take = self._calls.pop(number)
        except KeyError:
            raise Fault(f"an answer came to call {number}, which is not open") from None
        self._outbox.answered(size)
        settle(future, take, answer)

    def _told(self, handler: Handler, kind: int, body: bytes) -> None:
        try:
            handler.told(kind, body)
        except Exception as error:
            log.error("message from a member failed", peer=self._peer, kind=kind, exc_info=error)

    # --- answering ----------------------------------------------------------------------------

    def _called(self, handler: Handler, kind: int, number: int, body: bytes) -> None:
        size = len(body)
        if not self._serving.begin(size):
            raise Fault("more calls came without waiting for answers than a member may send")
        if self._paused and (trouble := self._outbox.unread(self._unsent())) is not None:
            self._answer_error(number, size, trouble)
            return
        try:
            reply = handler.called(kind, body)
        except Exception as error:
            self._answer_error(number, size, error)
            return
        if isinstance(reply, Later):
            reply.future.add_done_callback(partial(self._done, number, size, reply.encode))
        elif isinstance(reply, bytes):
            self._answer(number, size, reply)
        else:
            future = asyncio.ensure_future(reply)
            future.add_done_callback(partial(self._done, number, size, bytes))

    def _done(
        self, number: int, size: int, encode: Callable[[Any], bytes], future: Future[Any]
    ) -> None:
        if future.cancelled():
            self._answer_error(number, size, Unavailable("The member gave up the request"))
        elif (error := future.exception()) is not None:
            self._answer_error(number, size, error)
        else:
            try:
                body = encode(future.result())
            except Exception as error:
                self._answer_error(number, size, error)
            else:
                self._answer(number, size, body)

    def _answer(self, number: int, size: int, body: bytes) -> None:
        if len(body) > self._bounds.message_bytes_max:
            trouble = self._outbox.too_large(len(body))
            self._answer_error(number, size, trouble)
            return
        self._serving.end(size)
        if not self._ended:
            self._send(ANSWER, number, body)

    def _answer_error(self, number: int, size: int, error: BaseException) -> None:
        self._serving.end(size)
        if not isinstance(error, HoldfastError):
            log.error("call from a member failed", peer=self._peer, exc_info=error)
            error = Internal("The member has a bug; see its log", member=self._member)
        if not self._ended:
            self._send(ERROR, number, encode_error(error))

    # --- the end ------------------------------------------------------------------------------

    def end(self, gone: Callable[[], Unavailable], unknown: Callable[[], Unknown]) -> None:
        """Fails what has no answer: as gone what was certainly not sent, else as unknown."""
        self._ended = True
        unsent = self._outbox.unsent_calls()
        calls, self._calls = self._calls, {}
        for number, (future, _, take) in calls.items():
            settle(future, take, gone() if number in unsent else unknown())
        self._tell_of_room()


def settle(future: Future[Any], take: Take | None, answer: bytes | HoldfastError) -> None:
    """Gives the waiting caller its answer, unless it has stopped waiting."""
    if future.done():
        return
    if take is not None:
        try:
            take(future, answer)
        except Exception as error:
            future.set_exception(error)
    elif isinstance(answer, bytes):
        future.set_result(answer)
    else:
        future.set_exception(answer)
