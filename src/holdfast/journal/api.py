"""The journal's promise: what every backend keeps, and what the contract suite checks.

An entry is bytes at an offset of a topic's partition. Offsets of a partition start at 0 and have no
gaps. Partitions are numbered from 1. An append returns when its entries are durable and not before;
entries of one append stand together, in order, or not at all.
"""

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec


class Entry(NamedTuple):
    """One entry as it is read back."""

    offset: int
    timestamp_ms: int  # when its append was written, by the writer's clock
    payload: bytes


class Append(NamedTuple):
    """Entries for one partition; they stand together in the log or not at all."""

    topic: str
    partition: int
    entries: Sequence[bytes]


class Bounds(NamedTuple):
    """The offsets a partition can be read at: earliest <= offset < next."""

    earliest: int
    next: int


class Start(Enum):
    """Where a stream begins when not at a known offset."""

    EARLIEST = "earliest"
    NEXT = "next"


class Retention(msgspec.Struct, frozen=True):
    """How much of a topic is kept; None keeps everything until it is discarded.

    Whole segments are dropped, oldest first, so slightly more than this may stay.
    """

    age_ms: int | None = None
    bytes: int | None = None


class Journal(Protocol):
    """A persisted log of topics and partitions."""

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; InvalidArgument if it exists with other partitions."""
        ...

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        ...

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends and returns the offset of the first entry, once all are durable."""
        ...

    async def append_many(self, appends: Sequence[Append]) -> list[int]:
        """Appends to many partitions with one sync for all; returns each append's first offset."""
        ...

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now."""
        ...

    def read(self, topic: str, partition: int, offset: int, bytes_max: int = ...) -> list[Entry]:
        """Durable entries from `offset` on: about `bytes_max` of them, but one at least.

        At `next` the answer is empty; below `earliest` or above `next` it is NotFound with the
        bounds.
        """
        ...

    def stream(self, topic: str, partition: int, start: int | Start) -> AsyncIterator[list[Entry]]:
        """Batches of entries from a start on, waiting for more at the end, for ever."""
        ...

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose entry was written at or after a time; `next` if there is none."""
        ...

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up the entries below an offset; it only moves up.

        Space is freed by whole segments. An offset above `next` is NotFound with the bounds.
        """
        ...

    def bytes_used(self, topic: str) -> int:
        """How much space the topic takes."""
        ...

    def enforce_retention(self, now_ms: int) -> None:
        """Drops what the topics' retention no longer keeps."""
        ...

    async def close(self) -> None:
        """Finishes what is waiting, refuses what comes after, and lets go of the files."""
        ...
