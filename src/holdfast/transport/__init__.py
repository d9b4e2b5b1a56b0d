"""Connections between members: bytes in, bytes out. What they mean is said elsewhere."""

from holdfast.transport.api import (
    PROTOCOL_OLDEST,
    PROTOCOL_VERSION,
    Address,
    Answer,
    Answering,
    Bounds,
    Connection,
    Handler,
    Identity,
    Later,
    Listener,
    Sender,
    Take,
    TcpAddress,
    Traffic,
    Transport,
    UnixAddress,
)
from holdfast.transport.link import Link, Links

__all__ = [
    "PROTOCOL_OLDEST",
    "PROTOCOL_VERSION",
    "Address",
    "Answer",
    "Answering",
    "Bounds",
    "Connection",
    "Handler",
    "Identity",
    "Later",
    "Link",
    "Links",
    "Listener",
    "Sender",
    "Take",
    "TcpAddress",
    "Traffic",
    "Transport",
    "UnixAddress",
]
