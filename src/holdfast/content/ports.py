"""How publishers and subscribers reach the log: in the same process, or over a node's HTTP."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.blobs import Blobs
from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.topics import ContentTopic


class TopicEntry(NamedTuple):
    """A message as it is read from a topic."""

    offset: int
    timestamp_ms: int
    payload: bytes


class TopicEntries(NamedTuple):
    """Some messages of a topic, and where it begins and ends."""

    entries: list[TopicEntry]
    next: int  # where to read on
    earliest: int
    end: int  # where the topic ends now: at `next`, the reader has all of it


class Published(NamedTuple):
    """A package is durable on the log."""

    offset: int
    number: int
    waited_ms: int = 0  # how long back-pressure delayed it


class ContentLog(Protocol):
    """The log of packages, as everybody reaches it."""

    @property
    def blobs(self) -> Blobs:
        """For what is too large for the log; its calls block."""
        ...

    async def publish(self, package: Package) -> Published:
        """Appends a package; one whose id is there already is not appended again.

        Waits while the subscribers are too far behind, and then says for how long it did.
        """
        ...

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        """Which of these blobs are not stored; the others are kept for the next package."""
        ...

    async def read(
        self, topic: ContentTopic, partition: int, offset: int, *, bytes_max: int, wait_ms: int
    ) -> TopicEntries:
        """Messages from an offset on: about `bytes_max` of them; waits if there are none yet.

        From an offset that is no longer kept it reads on at the earliest; `earliest` tells.
        """
        ...

    async def announce(self, discovery: Discovery) -> None:
        """A subscriber says how far it is."""
        ...

    async def report(self, statuses: Sequence[PackageStatus]) -> None:
        """A subscriber says what became of packages."""
        ...

    async def snapshot_taken(self, event: SnapshotTaken) -> None:
        """A subscriber says that it has stored what it holds."""
        ...
