"""Connections between members: bytes in, bytes out. What they mean is said elsewhere."""

from holdfast.transport.api import (
    PROTOCOL_VERSION,
    Address,
    Answering,
    Bounds,
    Connection,
    Handler,
    Identity,
    Listener,
    Sender,
    TcpAddress,
    Traffic,
    Transport,
    UnixAddress,
)
from holdfast.transport.link import Link, Links

__all__ = [
    "PROTOCOL_VERSION",
    "Address",
    "Answering",
    "Bounds",
    "Connection",
    "Handler",
    "Identity",
    "Link",
    "Links",
    "Listener",
    "Sender",
    "TcpAddress",
    "Traffic",
    "Transport",
    "UnixAddress",
]
