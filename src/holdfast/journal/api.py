"""The journal's promise: what every backend keeps, and what the contract suite checks.

An entry is bytes at an offset of a topic's partition. Offsets only go up; a backend may leave gaps
between them, so a reader goes on behind the last entry that it was given and never counts.
Partitions are numbered from 1. An append returns when its entries are durable and not before;
entries of one append stand together, in order, or not at all.

The writer of a partition writes in an epoch, a number that only goes up. `take` begins one: from
then on no append of an older epoch succeeds. An append names its epoch and the offset at which the
writer believes the log to end, and has one of three outcomes:

    durable   `Appended`
    refused   `Refused`: a newer epoch has the partition, or the log ends elsewhere. Nothing of it
              was written, and nothing will be
    unknown   `Unknown`, a value of the answer or raised for all appends of the call: it may be in
              the log, or get there until the partition is taken in a newer epoch

What readers see is acknowledged: it was durable, and nobody can take it back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from holdfast.errors import Unknown


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
    epoch: int | None = None  # None: the newest one, of any writer
    offset: int | None = None  # where the log ends, as the writer knows it; None: anywhere


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The append is durable."""

    first: int  # the offset of its first entry
    next: int  # where the log ends now: what the next append expects


class Refused(NamedTuple):
    """Nothing of the append was written, and nothing will be."""

    partition: int
    epoch: int  # the newest that the partition was taken or written in
    next: int  # where the log ends
    reason: str


class Taken(NamedTuple):
    """A partition as its new writer found it."""

    epoch: int
    next: int  # where the log ends


Outcome: TypeAlias = "Appended | Refused | Unknown | asyncio.Future[Appended | Refused]"
"""A future where the outcome takes longer than that of the others, as when copies are waited for;
it may raise Unknown."""


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


Needed: TypeAlias = Mapping[str, Mapping[int, int]]
"""By topic and partition, the first offset that somebody needs."""


class Journal(Protocol):
    """A persisted log of topics and partitions."""

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; InvalidArgument if it exists with other partitions."""
        ...

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        ...

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Begins to write a partition in an epoch, by default the one after the newest.

        Appends of older epochs are refused from now on. What had an unknown outcome is in the log
        when this returns, or never will be.
        """
        ...

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends in the newest epoch; returns the offset of the first entry, once durable."""
        ...

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        """Appends to many partitions with one sync for all; what became of each.

        A refusal of one does not touch the others.
        """
        ...

    def bounds(self, topic: str, partition: int) -> Bounds:
        """What can be read now."""
        ...

    async def read(
        self, topic: str, partition: int, offset: int, bytes_max: int = ...
    ) -> list[Entry]:
        """Acknowledged entries from `offset` on: about `bytes_max` of them, but one at least.

        They come in batches, since each call costs. At `next` the answer is empty; below `earliest`
        or above `next` it is NotFound with the bounds.
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

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        """Drops what the topics' retention no longer keeps, by now or by a given time.

        Nothing is dropped from the first offset on that somebody needs.
        """
        ...

    async def close(self) -> None:
        """Finishes what is waiting, refuses what comes after, and lets go of the files."""
        ...


class AtOnceJournal(Protocol):
    """A journal whose small appends do not wait for anything but the disk of this machine."""

    appends_at_once: bool

    async def append_many(
        self, appends: Sequence[Append], meanwhile: Callable[[], None] | None = None
    ) -> list[Outcome]:
        """Like that of any journal; it returns without waiting for the loop if it writes little.

        `meanwhile` may be called while the disk writes. Nothing is durable then, and the append
        may still fail: it must do only what is harmless in any case. An error of it is logged.
        """
        ...


class DiskJournal(Journal, Protocol):
    """A journal with files on this machine, which somebody looks after while it is open."""

    @property
    def folder(self) -> str:
        """Where the files are that `journal.local.scrub` reads."""
        ...

    def heal(self, file: str) -> None:
        """Does what can be done about a damaged file."""
        ...
