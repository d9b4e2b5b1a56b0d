"""What the journals of members say to one another.

An entry's number counts the entries of a topic within its range, from 0; its offset is the range's
start plus that. Numbers that are sent fall on the boundaries of appends.
"""

from typing import TypeAlias

import msgspec


class Stretch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One append of an owner."""

    partition: int
    epoch: int
    topic: str
    number: int  # of its first entry
    timestamp_ms: int  # by the owner's clock
    entries: list[bytes]
    acknowledged: int = 0  # of this topic in this range, as the owner knows


class Reached(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many entries of a topic in a range are on a disk, or acknowledged."""

    partition: int
    epoch: int
    topic: str
    count: int


class Appending(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Told by an owner: appends of one round, for all partitions that this replica has."""

    stretches: list[Stretch]


class Reporting(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Told by a replica to the owner, after its sync. Never after it has promised a newer epoch."""

    disk: str
    reports: list[Reached]


class Gap(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Told by a replica: entries between what it has and what came are missing."""

    disk: str
    has: list[Reached]


class Fenced(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Told or answered by a replica that has promised a newer epoch of a partition."""

    disk: str
    partition: int
    promise: int


class Marks(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Told by an owner to all members: how far its logs are acknowledged."""

    marks: list[Reached]


class Fence(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Call of a taker: promise to take nothing of `epoch` any more, for the sake of `opens`."""

    disk: str  # that is meant; another one does not answer for it
    partition: int
    epoch: int
    opens: int
    is_drain: bool = False  # the owner agrees: it is taken even where the owner is still heard
    cut: dict[str, int] | None = None  # of the epoch, what is in snapshots only: it is acknowledged


class Promised(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Answer to a fence: what the disk has of the range that is fenced, by topic."""

    disk: str
    counts: dict[str, int]
    newest: int = 0  # the newest epoch of the partition that the disk has entries of


class OwnerHeard(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Answer to a fence that is refused, because the owner is still heard here."""

    disk: str


class Copy(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Call of a taker: entries of the fenced range that the disk lacks."""

    disk: str
    opens: int
    stretches: list[Stretch]


class TailCopied(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Answer to a copy: what the disk has of the fenced range now. This is not a report."""

    disk: str
    counts: dict[str, int]


class Fetch(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Call: entries of a range from a number on, up to another."""

    partition: int
    epoch: int
    topic: str
    first: int
    end: int
    bytes_max: int


class Fetched(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Answer to a fetch: whole appends; none if it has not got the first."""

    stretches: list[Stretch]


class Confirm(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Call of an owner before it answers queries: do these (partition, epoch) still hold?"""

    disk: str
    ranges: list[tuple[int, int]]


class Confirmed(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Answer to a confirm: the promises of those partitions, in the same order."""

    disk: str
    promises: list[int]


class Survey(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """Call: what does this disk have of a partition's ranges?"""

    disk: str
    partition: int


class Surveyed(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """Answer to a survey: by epoch and topic, how many entries; and where snapshots stand."""

    disk: str
    promise: int
    counts: dict[int, dict[str, int]]
    needed: dict[str, int]  # by topic, the first offset that this disk has no snapshot for


Told: TypeAlias = Appending | Reporting | Gap | Fenced | Marks
Call: TypeAlias = Fence | Copy | Fetch | Confirm | Survey
Answer: TypeAlias = Promised | OwnerHeard | Fenced | TailCopied | Fetched | Confirmed | Surveyed
