"""The records of requests: who asked once, and what they were answered."""

from enum import IntEnum
from typing import Any

import msgspec

from holdfast.records import Rejection
from holdfast.records.record import Value


class RequestIntent(IntEnum):
    """What happens to requests."""

    ACCEPTED = 0  # its command is on the log and waits for others
    ANSWERED = 1
    PURGE = 2
    PURGED = 3


class Accepted(Value, frozen=True, tag=130):
    """A request whose command is on the log and not processed yet."""

    id: str
    position: int  # of the command


class Answered(Value, frozen=True, tag=131):
    """The outcome of the command of a request, with its whole answer."""

    id: str
    value_type: int  # of the command: they say what the value is
    intent: int
    key: int
    value: bytes = b""  # msgpack; empty: none
    rejection: Rejection | None = None
    value_bytes: int = 0  # the size of the value, if it is too large to be kept
    position: int = -1  # of the command, if it had to wait


class PurgeRequests(Value, frozen=True, tag=132):
    """Expired answers, in the order in which they were given."""

    before: int = 0  # the number of the first one that stays


VALUES: dict[Any, type[msgspec.Struct]] = {
    RequestIntent.ACCEPTED: Accepted,
    RequestIntent.ANSWERED: Answered,
    RequestIntent.PURGE: PurgeRequests,
    RequestIntent.PURGED: PurgeRequests,
}
