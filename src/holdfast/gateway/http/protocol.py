"""Uvicorn's HTTP protocol with bounds on what a client may cost before it is known.

The parser is httptools'. What is added counts what goes into it and watches how long that takes.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.errors import Code
from holdfast.gateway.http.connections import Connections
from holdfast.gateway.http.problems import refusal
from holdfast.limits import SENT_AHEAD_BYTES

_PIECE_BYTES = 2_048  # fed to the parser at once: most requests are smaller, and 80 fit in it
_HEAD, _BODY = "head", "body"
_LINGER_SECONDS = 1.0  # for a client to read why it was refused


class _GatheringTransport:
    """A transport whose writes of one turn of the loop go out together.

    Each write is a system call and wakes the peer, which is most of what a small answer costs.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.writelines(pieces)


class PipelineFlow(FlowControl):
    """Reads no further while requests wait that were sent ahead of their answers."""

    def __init__(self, transport: Any, protocol: "BoundedProtocol") -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        if self.read_paused and not self._protocol.is_ahead:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all = connections
        self._limits = connections.limits
        self._address: str | None = None  # None: not counted
        self._is_over = False  # the client was refused, and at most has to take note of it
        self._in_message = False
        self._in_head = False
        self._unseen_bytes = 0  # of a message, since its begin or since the last bit of its body
        self._body_bytes = 0
        self._held = memoryview(b"")  # read, and not parsed before what came ahead is answered
        self._ahead_bytes = 0  # that count for requests sent ahead
        self._late: asyncio.TimerHandle | None = None
        self._waits_for: str | None = None
        self._waits_since = 0.0
        self._stuck_bytes = 0  # of answers that the client does not read
        self._stuck: asyncio.TimerHandle | None = None

    @property
    def _is_open(self) -> bool:
        return not self._is_over and not self.transport.is_closing()

    @property
    def is_ahead(self) -> bool:
        """Whether the client sent further requests before it got its answers."""
        return bool(self.pipeline) or bool(self._held)

    # --- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        gathering: Any = _GatheringTransport(transport, self.loop)
        super().connection_made(gathering)
        self.flow = PipelineFlow(gathering, self)
        address = self.client[0] if self.client else ""
        reason = self._all.opened(address)
        if reason is None:
            self._address = address
            self._wait_for(_HEAD)
        elif reason == "connections":
            self._refuse(503, Code.RESOURCE_EXHAUSTED, reason, "The node has too many connections")
        else:
            detail = f"There are too many connections from {address}"
            self._refuse(429, Code.RESOURCE_EXHAUSTED, reason, detail)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._all.closed(self._address)
            self._address = None
        self._wait_for(None)
        self._held = memoryview(b"")
        self._count_ahead()
        self._unstick()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    # --- what comes in ------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._held:  # a read that was under way when reading was paused
            self._held = memoryview(bytes(self._held) + data)
        elif len(data) > _PIECE_BYTES:
            self._feed(memoryview(data))
        else:
            self._unseen_bytes += len(data)
            super().data_received(data)
            if self._in_message or self._late is not None or self.pipeline or self._is_idle:
                self._fed()

    def _feed(self, data: memoryview) -> None:
        """Parses piece by piece, until the client is ahead of its answers."""
        while data and self._is_open:
            if self.pipeline:
                self.flow.pause_reading()
                break
            size_bytes = self._piece_bytes()
            piece, data = data[:size_bytes], data[size_bytes:]
            self._unseen_bytes += len(piece)
            super().data_received(piece)  # pyright: ignore[reportArgumentType]
            self._fed()
        if self._is_open:
            self._held = data
            self._count_ahead()

    def _piece_bytes(self) -> int:
        """What is fed at once: the rest of a body whose length is known, or little."""
        if not self._in_message or self._in_head:
            return _PIECE_BYTES
        length = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
        return max(_PIECE_BYTES, length - self._body_bytes)

    def _fed(self) -> None:
        if not self._is_open:
            return
        self._count_ahead()
        if not self._in_message:
            self._wait_for(_HEAD if self._is_idle else None)
            return
        if self._unseen_bytes > self._limits.head_bytes_max:
            most = self._limits.head_bytes_max
            self._refuse_head(431, f"at most {most} bytes of headers")
        else:
            self._wait_for(_HEAD if self._in_head else _BODY)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _count_ahead(self) -> None:
        """Requests sent ahead take memory; who sends them when there is none is refused."""
        is_counted, is_ahead = self._ahead_bytes > 0, self.is_ahead
        if is_ahead == is_counted:
            return
        before, self._ahead_bytes = self._ahead_bytes, SENT_AHEAD_BYTES if is_ahead else 0
        self._all.hold(self._ahead_bytes - before)
        if is_ahead and self._all.is_full:
            self._refuse_full()

    # --- what the parser finds ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in_message = self._in_head = True
        self._unseen_bytes = self._body_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._unseen_bytes = 0
        limits = self._limits
        if self._is_over:
            return
        if len(self.url) > limits.target_bytes_max:
            self._refuse_head(414, f"a path of at most {limits.target_bytes_max} bytes")
        elif len(self.headers) > limits.headers_max:
            self._refuse_head(431, f"at most {limits.headers_max} headers")
        elif self._all.is_full:
            self._refuse_full()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unseen_bytes = 0
        self._body_bytes += len(body)
        if not self._is_over:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = False
        if not self._is_over:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._held and not self.pipeline:
            held, self._held = self._held, memoryview(b"")
            self._feed(held)
        elif self._ahead_bytes:
            self._count_ahead()

    # --- time ---------------------------------------------------------------------------------

    def _wait_for(self, what: str | None) -> None:
        """The client has to send the head of a request, or the rest of its body."""
        if what == self._waits_for:
            return
        if self._late is not None:
            self._late.cancel()
            self._late = None
        self._waits_for = what
        if what is not None:
            self._waits_since = self.loop.time()
            self._late = self.loop.call_later(self._seconds(), self._on_late)

    def _seconds(self) -> float:
        """How long the client may take for what is waited for, by what it has sent so far."""
        if self._waits_for == _HEAD:
            return self._limits.head_ms_max / 1_000
        sent_seconds = self._body_bytes / self._limits.body_bytes_per_second_min
        return self._limits.body_grace_ms / 1_000 + sent_seconds

    def _on_late(self) -> None:
        if not self._is_open:
            return
        left = self._waits_since + self._seconds() - self.loop.time()
        if self.is_ahead:  # it is not the client who is late
            left = max(left, 1.0)
        if left > 0:
            self._late = self.loop.call_later(left, self._on_late)
        elif self._waits_for == _HEAD and not self._in_message:
            self._all.metrics.refuse("silent")  # it began nothing: there is nothing to answer
            self.transport.close()
        else:
            self._refuse(
                408, Code.DEADLINE_EXCEEDED, f"slow_{self._waits_for}",
                f"Expected the {self._waits_for} of a request within {self._seconds():.0f} s,"
                " but it did not come",
            )  # fmt: skip

    # --- answers that nobody reads ------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unstick()
        self._stuck_bytes = self.transport.get_write_buffer_size()
        self._all.hold(self._stuck_bytes)
        self._stuck = self.loop.call_later(
            self._limits.drain_ms_max / 1_000, self._on_stuck, self._stuck_bytes
        )

    def resume_writing(self) -> None:
        self._unstick()
        super().resume_writing()

    def _unstick(self) -> None:
        self._all.hold(-self._stuck_bytes)
        self._stuck_bytes = 0
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _on_stuck(self, before_bytes: int) -> None:
        left_bytes = self.transport.get_write_buffer_size()
        if left_bytes >= before_bytes:
            self._all.metrics.refuse("slow_reader")
            self.transport.abort()
            return
        self._stuck = self.loop.call_later(
            self._limits.drain_ms_max / 1_000, self._on_stuck, left_bytes
        )

    # --- refusing -----------------------------------------------------------------------------

    def _refuse_head(self, status: int, expected: str) -> None:
        detail = f"Expected a request with {expected}, but found more"
        self._refuse(status, Code.INVALID_ARGUMENT, "large_head", detail)

    def _refuse_full(self) -> None:
        self._refuse(
            503, Code.RESOURCE_EXHAUSTED, "slow_clients",
            "The node holds too much for clients that do not read their answers",
        )  # fmt: skip

    def _refuse(self, status: int, code: Code, reason: str, detail: str) -> None:
        """Answers with a problem, unless an earlier request waits for its answer, and closes."""
        self._all.metrics.refuse(reason)
        self._is_over = True
        is_late_body = self._in_message and not self._in_head and not self.pipeline
        if not self._is_idle and not (is_late_body and not self.cycle.response_started):
            return self.transport.close()
        self.transport.write(refusal(status, code, detail))
        if not self._is_idle:  # the handler need not wait for the body any more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self._address is None:
            return self.transport.close()
        # Who is still sending would not see the answer if the connection were closed at once.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._wait_for(None)
        self._unset_keepalive_if_required()
        self._late = self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        if self._is_open:
            detail = "Expected HTTP/1.1, but found something else"
            self._refuse(400, Code.INVALID_ARGUMENT, "not_http", detail)
