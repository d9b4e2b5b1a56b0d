"""Where the topics are: in this process, or in the one of the node's that has partition 1."""

from typing import Protocol

from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.gateway.content.shapes import (
    CleanUpView,
    CommandReceipt,
    EventPage,
    EventQuery,
    FailedPackages,
    FarmView,
    QueuePage,
    QueueQuery,
    SnapshotView,
    SubscriberView,
    TopicQuery,
)


class ContentHome(Protocol):
    """What is asked of the process that has the topics; who may ask was checked before."""

    async def publish(self, package: Package) -> Published: ...

    async def missing(self, blobs: list[str]) -> list[str]: ...

    async def read(self, query: TopicQuery) -> TopicEntries: ...

    async def announce(self, discovery: Discovery) -> None: ...

    async def report(self, statuses: list[PackageStatus]) -> None: ...

    async def snapshot_taken(self, event: SnapshotTaken) -> None: ...

    async def publishers(self) -> list[FarmView]: ...

    async def publishers_of(self, subscriber: str) -> list[str]: ...

    async def subscribers(self, publisher: str) -> list[SubscriberView]: ...

    async def farm(self, publisher: str) -> FarmView: ...

    async def queue(self, publisher: str, subscriber: str, query: QueueQuery) -> QueuePage: ...

    async def errors(
        self, publisher: str, subscriber: str, query: QueueQuery
    ) -> FailedPackages: ...

    async def clear(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def events(self, publisher: str, query: EventQuery) -> EventPage: ...

    async def take_snapshot(self, subscriber: str) -> CommandReceipt: ...

    async def snapshots(self) -> list[SnapshotView]: ...

    async def forget(self, subscriber: str) -> None: ...

    async def clean_up(self) -> CleanUpView: ...

    async def needs(self) -> ContentNeeds:
        """What of the topics no member may drop."""
        ...
