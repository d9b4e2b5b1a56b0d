"""The port between members: bytes to one other member and back, in order, over one connection.

A message is a number, its kind, and bytes; what they mean is not known here. A call is answered,
with bytes or with an error; a tell is not. One side's calls and tells arrive in the order in which
they were sent; answers come in any order. When a connection breaks, a call that was certainly not
sent fails as `NotSent`, and every other one that has no answer yet as `Unknown`.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.errors import HoldfastError, Unavailable
from holdfast.limits import (
    FRAME_BYTES,
    HELLO_MS_MAX,
    MEMBER_BYTES_MAX,
    MEMBER_SILENT_TICKS_MAX,
    MEMBER_TICK_MS,
    MESSAGE_BYTES_MAX,
)

PROTOCOL_VERSION = 1  # what this holdfast speaks ...
PROTOCOL_OLDEST = (
    1  # ... and the oldest that it understands, for members that are upgraded one by one
)


class NotSent(Unavailable):
    """There is no connection to a member: nothing of this was sent, so nothing was done."""


class UnixAddress(msgspec.Struct, frozen=True):
    """A socket in the file system: a process that may open the file may connect."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


class TcpAddress(msgspec.Struct, frozen=True):
    """A host and a port; beyond this machine only with TLS. Port 0 listens on any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Address = UnixAddress | TcpAddress


class Identity(msgspec.Struct, frozen=True):
    """Who a member is: its name, and the cluster or folder whose members it talks to."""

    member: str
    cluster: str
    version: int = PROTOCOL_VERSION
    oldest: int = PROTOCOL_OLDEST  # the lowest version that it speaks, too


class ConnectionBounds(msgspec.Struct, frozen=True):
    """How much a connection holds, and how long it waits; the defaults are in `limits.py`."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    frame_bytes: int = FRAME_BYTES
    held_bytes_max: int = MEMBER_BYTES_MAX
    tick_ms: int = MEMBER_TICK_MS
    silent_ticks_max: int = MEMBER_SILENT_TICKS_MAX
    hello_ms_max: int = HELLO_MS_MAX

    @property
    def silent_ms_max(self) -> int:
        """Within this span a peer that does not answer is noticed."""
        return self.tick_ms * (self.silent_ticks_max + 1)


class Traffic(msgspec.Struct):
    """What went over a connection so far."""

    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Later(NamedTuple):
    """An answer that is not there yet, and how it becomes bytes."""

    future: "Future[Any]"
    encode: Callable[[Any], bytes]


Answer = bytes | Awaitable[bytes] | Later
Take = Callable[["Future[Any]", "bytes | HoldfastError"], None]
"""What becomes of an answer: sets the future, which was given out, or has it set later."""


class Handler(Protocol):
    """What answers one peer. Both are called in the order in which the peer sent.

    An answer is bytes, or something to wait for; the order of what is waited for is the handler's
    affair. A `HoldfastError` travels as it is; another exception is a bug, and is
    told as one.
    """

    def called(self, kind: int, body: bytes) -> Answer: ...

    def told(self, kind: int, body: bytes) -> None: ...


class Sender(Protocol):
    """Whatever takes messages for one member."""

    def call(self, kind: int, body: bytes, take: Take | None = None) -> "Future[Any]":
        """Sends, and gives the answer: its bytes, or what `take` makes of them or of an error.

        The future fails with what the other side says. `ResourceExhausted` comes while the member
        has more to answer or to read than `held_bytes_max`; nothing was sent then.
        """
        ...

    def tell(self, kind: int, body: bytes, *, at_once: bool = False) -> None:
        """Sends and forgets; raises `Unavailable` or `ResourceExhausted` if it cannot be sent.

        It leaves with all else that is sent in this turn of the loop, or `at_once`.
        """
        ...


class Connection(Sender, Protocol):
    """One established connection to one member."""

    @property
    def peer(self) -> str:
        """The member at the other side."""
        ...

    @property
    def version(self) -> int:
        """Of the protocol: the newest that both sides speak."""
        ...

    @property
    def traffic(self) -> Traffic: ...

    @property
    def closed(self) -> bool: ...

    async def room(self) -> None:
        """Waits until a message would be taken; raises `Unavailable` once it is closed."""
        ...

    def on_closed(self, callback: Callable[[str], None]) -> None:
        """Calls back with the reason when the connection ends, or at once if it has."""
        ...

    def close(self) -> None:
        """Sends what waits to be sent and ends; calls without an answer fail."""
        ...


Answering = Callable[[Connection], Handler]
"""Asked once for each connection that is established, by whichever side."""


class Listener(Protocol):
    """Takes connections at an address."""

    @property
    def address(self) -> Address:
        """Where it can be reached: with the port that it got."""
        ...

    @property
    def connections(self) -> list[Connection]: ...

    async def close(self) -> None:
        """Takes no further connection, and closes those that it took."""
        ...


class Transport(Protocol):
    """A way to other members."""

    async def connect(self, address: Address, peer: str, answering: Answering) -> Connection:
        """A connection to the member that is expected there.

        `Unavailable` if nobody answers in time, `Forbidden` where a key or a name is not the
        expected one, `InvalidState` where the version or the cluster differs.
        """
        ...

    async def listen(self, address: Address, answering: Answering) -> Listener:
        """Takes connections from members; strangers are refused and logged."""
        ...
