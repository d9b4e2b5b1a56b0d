"""A client of etcd: calls with deadlines over connections to several servers, and their outcomes.

One server is used at a time; the next one is tried when it fails. A call that only reads is sent
to each in turn. One that writes is sent once: before that a connection is up, or it was certainly
not sent.
"""

import asyncio
import contextlib
import time
from typing import Any, NoReturn

import grpc
import grpc.aio

from holdfast.errors import Unavailable, Unknown
from holdfast.limits import (
    ETCD_ANSWER_BYTES_MAX,
    ETCD_CALL_MS_MAX,
    ETCD_CONNECT_MS_MAX,
    ETCD_PING_MS,
    ETCD_RECONNECT_MS_MAX,
)
from holdfast.logs import log
from holdfast.sequence.etcd_messages import AUTHENTICATE, STATUS, Message, new, parser, serialize
from holdfast.sequence.etcd_numbers import EtcdNumbers
from holdfast.sequence.etcd_url import EtcdAddress

Method = tuple[str, str, str]
Code = grpc.StatusCode

_OPTIONS = [
    ("grpc.enable_retries", 0),  # nothing is sent twice behind our back
    ("grpc.max_receive_message_length", ETCD_ANSWER_BYTES_MAX),
    ("grpc.keepalive_time_ms", ETCD_PING_MS),
    ("grpc.keepalive_timeout_ms", ETCD_PING_MS // 2),
    ("grpc.http2.max_pings_without_data", 0),  # a watch may be silent for long
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", ETCD_CONNECT_MS_MAX),  # so long may one attempt take
    ("grpc.max_reconnect_backoff_ms", ETCD_RECONNECT_MS_MAX),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a client that is made anew connects anew
]
# The server may have done what it was asked for. With any other code it has not.
_UNKNOWN = {
    Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNKNOWN, Code.INTERNAL,
    Code.ABORTED, Code.DATA_LOSS,
}  # fmt: skip
_OLD_TOKEN = ("invalid auth token", "revision in header is old")


class EtcdClient:
    """Calls to one etcd."""

    def __init__(self, address: EtcdAddress) -> None:
        self.address = address
        self.available = False
        self.numbers = EtcdNumbers()
        self._current = 0
        self._is_closed = False
        self._token = ""
        self._authenticating = asyncio.Lock()
        credentials = None
        if address.is_tls:
            credentials = grpc.ssl_channel_credentials(
                address.ca or None, address.key or None, address.certificate or None
            )
        self._channels = [_channel(each, credentials) for each in address.endpoints]
        self._unaries: dict[tuple[grpc.aio.Channel, Method], Any] = {}

    async def read(self, method: Method, request: Message) -> Message:
        """Sends what changes nothing, to another server too if one fails. Raises Unavailable."""
        for _ in self._channels[1:]:
            with contextlib.suppress(Unavailable):
                return await self._call(method, request, is_write=False)
        return await self._call(method, request, is_write=False)

    async def write(self, method: Method, request: Message) -> Message:
        """Sends once. Raises Unavailable if it was certainly not done, and Unknown."""
        return await self._call(method, request, is_write=True)

    async def open(self, method: Method) -> Any:
        """A stream in both directions, on a connection that is up."""
        channel = await self._connected(time.monotonic() + ETCD_CALL_MS_MAX / 1_000)
        path, _, answer = method
        await self._authenticate(channel)
        call = channel.stream_stream(path, serialize, parser(answer))
        return call(metadata=(*self._metadata(), ("hasleader", "true")))

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        """A stream has ended: the token may be old, the next server may be better."""
        if _is_old_token(error):
            self._token = ""
        else:
            self._rotate()

    async def close(self) -> None:
        """Ends all connections; calls fail from now on."""
        self._is_closed = True
        await asyncio.gather(*(each.close() for each in self._channels))

    async def _call(self, method: Method, request: Message, *, is_write: bool) -> Message:
        deadline = time.monotonic() + ETCD_CALL_MS_MAX / 1_000
        for is_last in (False, True):
            channel = await self._connected(deadline)
            await self._authenticate(channel)
            started = time.monotonic()
            try:
                answered = await self._unary(channel, method)(
                    request,
                    timeout=max(deadline - started, 0.001),
                    metadata=self._metadata(),
                )
            except grpc.aio.AioRpcError as error:
                if _is_old_token(error) and self.address.user and not is_last:
                    self._token = ""  # it was refused before anything was done
                    continue
                self._raise(error, is_write=is_write)
            self.available = True
            self.numbers.answered(time.monotonic() - started)
            return answered
        raise AssertionError("the last attempt answers or raises")

    def _unary(self, channel: grpc.aio.Channel, method: Method) -> Any:
        """What calls a method; made once, for there are sixteen calls a second."""
        call = self._unaries.get((channel, method))
        if call is None:
            path, _, answer = method
            call = channel.unary_unary(path, serialize, parser(answer))
            self._unaries[channel, method] = call
        return call

    async def _connected(self, deadline: float) -> grpc.aio.Channel:
        """A connection that is up; Unavailable if there is none to any server for a while."""
        if self._is_closed:
            raise Unavailable("The connection to etcd was closed")
        channel = self._channels[self._current]
        for _ in self._channels:
            channel = self._channels[self._current]
            if channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
                return channel
            patience = min(deadline - time.monotonic(), ETCD_CONNECT_MS_MAX / 1_000)
            try:
                async with asyncio.timeout(patience):
                    await _ready(channel)
                return channel
            except (TimeoutError, ConnectionError):
                self._rotate()
        self.available = False
        self.numbers.failed(is_unknown=False)
        reason = await _why(channel)
        raise Unavailable(
            f"etcd is not reached at {self.address}: check that it runs there ({reason})"
        )

    async def _authenticate(self, channel: grpc.aio.Channel) -> None:
        """Gets a token, where there is a user and none was got yet."""
        if not self.address.user or self._token:
            return
        async with self._authenticating:
            if self._token:
                return
            path, kind, answer = AUTHENTICATE
            request = new(kind, name=self.address.user, password=self.address.password)
            call = channel.unary_unary(path, serialize, parser(answer))
            try:
                answered = await call(request, timeout=ETCD_CALL_MS_MAX / 1_000)
            except grpc.aio.AioRpcError as error:
                if error.code() is Code.FAILED_PRECONDITION:
                    log.warning("etcd has no authentication enabled: user and password are unused")
                    self._token = "-"
                    return
                self._raise(error, is_write=False)
            self._token = answered.token

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self._token),) if len(self._token) > 1 else ()

    def _rotate(self) -> None:
        self._current = (self._current + 1) % len(self._channels)

    def _raise(self, error: grpc.aio.AioRpcError, *, is_write: bool) -> NoReturn:
        """The error of holdfast for one of etcd."""
        code, details = error.code(), error.details() or error.code().name
        if code in _UNKNOWN:
            self.available = False
            self.numbers.failed(is_unknown=is_write)
            self._rotate()
            said = f"etcd at {self.address} did not answer ({details})"
            if is_write:
                raise Unknown(f"{said}: it may have been written") from None
            raise Unavailable(said) from None
        refusal = _refusal(code, details)
        self.available = isinstance(refusal, LeaseGone)
        self.numbers.failed(is_unknown=False)
        raise refusal from None


def _channel(endpoint: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
    return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)


async def _ready(channel: grpc.aio.Channel) -> None:
    """Waits until a connection is up; ConnectionError if the attempt failed."""
    state = channel.get_state(try_to_connect=True)
    while state is not grpc.ChannelConnectivity.READY:
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise ConnectionError


async def _why(channel: grpc.aio.Channel) -> str:
    """Why there is no connection: only a call is told."""
    path, kind, answer = STATUS
    try:
        await channel.unary_unary(path, serialize, parser(answer))(new(kind), timeout=0.1)
    except grpc.aio.AioRpcError as error:
        return error.details() or error.code().name
    return "it took too long"


def _is_old_token(error: grpc.aio.AioRpcError) -> bool:
    return any(text in (error.details() or "") for text in _OLD_TOKEN)


def _refusal(code: grpc.StatusCode, details: str) -> Unavailable:
    """What etcd has certainly not done, and why. To callers, etcd is unavailable."""
    if "user name is empty" in details:
        return Unavailable(
            "etcd wants a user and a password: give them as etcd://USER:PASSWORD@HOST:PORT"
        )
    if code is Code.UNAUTHENTICATED or "authentication failed" in details:
        return Unavailable(f"etcd refused the user and password ({details}): check both")
    if code is Code.PERMISSION_DENIED:
        return Unavailable(
            f"The user of etcd lacks a permission ({details}): grant it readwrite on /holdfast/"
        )
    if "lease not found" in details:
        return LeaseGone("The lease of this member has run out")
    if "space exceeded" in details:
        return Unavailable(
            f"etcd takes no more ({details}): compact and defragment it, then disarm its alarm"
        )
    return Unavailable(f"etcd refused the call: {details} ({code.name})")


class LeaseGone(Unavailable):
    """What was to be written needs a lease that has run out; nothing was written."""
