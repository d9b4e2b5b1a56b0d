"""What travels in a frame: the greeting first, then lists of messages. Everything is msgpack."""

from typing import Any

import msgspec

from holdfast.errors import HoldfastError, Internal, error_of
from holdfast.transport.api import Identity

# A message is (kind, number, body). Kinds from 0 on are the caller's: with a number it is a call
# that is answered under this number, with 0 a tell. Those below belong to the transport.
Message = tuple[int, int, bytes]
ANSWER, ERROR, PING, PONG = -1, -2, -3, -4

MESSAGE_HEAD_BYTES = 16  # of msgpack, at the most: an array, two integers and a length

_PROTOCOL = "holdfast"


class Fault(Exception):
    """The peer sent something that is not of the protocol; the connection cannot go on."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The first frame of both sides. Later versions may add fields, and only at the end."""

    protocol: str
    version: int
    member: str
    cluster: str
    oldest: int = 0  # version that the member speaks; 0: only the one above


class ConnectionRefused(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Instead of a hello: why the connection is not taken."""

    code: str
    message: str
    fields: dict[str, Any]


class _Error(msgspec.Struct, frozen=True, array_like=True):
    code: str
    message: str
    fields: dict[str, Any]


_encoder = msgspec.msgpack.Encoder(enc_hook=str)  # a field of an error may be anything
_messages = msgspec.msgpack.Decoder(list[Message])
_greetings = msgspec.msgpack.Decoder(Hello | ConnectionRefused)
_errors = msgspec.msgpack.Decoder(_Error)

encode_messages = msgspec.msgpack.Encoder().encode


def encode_head(message: Message) -> bytes:
    """A list of this one message without its body, which follows as it is: it is not copied."""
    kind, number, body = message
    return b"\x91\x93%b%b\xc6%b" % (
        encode_messages(kind), encode_messages(number), len(body).to_bytes(4),
    )  # fmt: skip


def decode_messages(frame: memoryview) -> list[Message]:
    """The messages of a frame, copied out of it."""
    try:
        return _messages.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(f"a frame of {len(frame)} bytes is not a list of messages: {error}") from error


def hello_of(identity: Identity) -> bytes:
    """The greeting of a member."""
    return _encoder.encode(
        Hello(_PROTOCOL, identity.version, identity.member, identity.cluster, identity.oldest)
    )


def refusal_of(error: HoldfastError) -> bytes:
    """What a member that is not taken is told."""
    return _encoder.encode(ConnectionRefused(error.code, error.message, error.fields))


def decode_greeting(frame: memoryview) -> Identity | HoldfastError:
    """Who greets, or why the other side refuses."""
    try:
        greeting = _greetings.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(f"the first frame is not a greeting: {error}") from error
    if isinstance(greeting, ConnectionRefused):
        return error_of(greeting.code, greeting.message, **greeting.fields)
    if greeting.protocol != _PROTOCOL:
        raise Fault(f"the first frame greets in the protocol {greeting.protocol!r}")
    oldest = greeting.oldest or greeting.version
    return Identity(greeting.member, greeting.cluster, greeting.version, oldest)


def encode_error(error: HoldfastError) -> bytes:
    """An error as the body of an answer."""
    return _encoder.encode(_Error(error.code, error.message, error.fields))


def decode_error(body: bytes) -> HoldfastError:
    """The error that the other side answered with."""
    try:
        told = _errors.decode(body)
        return error_of(told.code, told.message, **told.fields)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        return Internal(f"Expected an error from the member, but found {body[:80]!r}: {error}")
