"""The ports of a group: who is in it, the log that its members share, and the work that it runs."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from holdfast.journal import Bounds, Entry

MemberId: TypeAlias = str
"""`name/incarnation`: a name that stays, and what tells one start of it from the next."""

Offset: TypeAlias = int | str | None
"""How far the work on a partition has come, in the words of that work; None before its first."""


def member_id(name: str, incarnation: str) -> MemberId:
    return f"{name}/{incarnation}"


def name_of(member: MemberId) -> str:
    """The name of a member without its incarnation."""
    return member.rpartition("/")[0] or member


class Generation(NamedTuple):
    """What the membership says: its leader and all of its members.

    The number only goes up, also when all members were lost in between: one that begins again at 1
    cannot begin a rebalance.
    """

    number: int
    leader: MemberId
    members: tuple[MemberId, ...]


class NewPartition(msgspec.Struct, frozen=True, array_like=True):
    """A partition as it is declared, or as its parents announce it."""

    token: str
    parents: tuple[str, ...] = ()  # none: declared from outside
    start: int | None = None
    end: int | None = None


class Membership(Protocol):
    """Says who is in a group; each change is a new generation."""

    async def join(self, card: bytes) -> None:
        """Becomes a member, with an opaque description of itself that the others can read."""
        ...

    def generations(self) -> AsyncIterator[Generation]:
        """The present generation and all that follow; numbers may be skipped."""
        ...

    @property
    def cards(self) -> Mapping[MemberId, bytes]:
        """What the members of the present generation say of themselves."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether the others still count on this member, as far as it can know by itself.

        False once it was not heard for the time of its session: by then they may have given its
        partitions away, and it must not work on them any longer.
        """
        ...

    async def leave(self) -> None:
        """Stops being a member, at once."""
        ...


class SyncLog(Protocol):
    """The log of a group: one order for all, every member appends, nobody is fenced."""

    async def append(self, body: bytes) -> None:
        """Appends a message. Raises Unknown where it may be in the log, or get there later."""
        ...

    def bounds(self) -> Bounds:
        """What can be read now."""
        ...

    async def read(self, offset: int) -> list[Entry]:
        """Messages from an offset on; NotFound below what is kept."""
        ...

    def stream(self, offset: int) -> AsyncIterator[list[Entry]]:
        """Batches of messages from an offset on, waiting for more, for ever."""
        ...

    def discard(self, before: int) -> None:
        """Gives up the messages below an offset: a later one carries all that they say."""
        ...


class OwnedPartition(Protocol):
    """A partition while this member owns it: what the work on it is given."""

    @property
    def token(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The epoch in which this member owns it now: what writes elsewhere are fenced by."""
        ...

    @property
    def offset(self) -> Offset:
        """Where the work goes on: what was committed last, here or by the former owner."""
        ...

    def commit(self, offset: Offset, watermark: int | None = None) -> None:
        """Notes progress. Raises Moved once the partition is no longer this member's."""
        ...

    def split(self, children: Sequence[str | NewPartition]) -> None:
        """Finishes this partition and creates its children."""
        ...

    def merge(self, child: str, parents: Sequence[str]) -> None:
        """Finishes this partition; the child begins when all of its parents are finished."""
        ...

    @property
    def is_leaving(self) -> bool:
        """Whether a hand-over is requested: commit, and return."""
        ...

    async def leaving(self) -> None:
        """Returns when the partition is to be handed over."""
        ...


class GroupWork(Protocol):
    """What a group runs for each partition that it owns."""

    async def run(self, owned: OwnedPartition) -> None:
        """Works until it is finished or to be handed over; an error parks this partition alone."""
        ...


__all__ = [
    "Bounds",
    "Entry",
    "Generation",
    "GroupWork",
    "MemberId",
    "Membership",
    "NewPartition",
    "Offset",
    "OwnedPartition",
    "SyncLog",
    "member_id",
    "name_of",
]
