"""The topics are in this process: what is asked goes to the service that has them."""

from typing import Any, TypeVar

import msgspec

from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.publisher import ContentService
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.content.publisher.views import QueueItem
from holdfast.gateway.content.checked import topic_of
from holdfast.gateway.content.shapes import (
    CleanUpView,
    CommandReceipt,
    DistributedPackage,
    EventPage,
    EventQuery,
    FailedPackages,
    FarmView,
    QueuedPackage,
    QueuePage,
    QueueQuery,
    SnapshotView,
    SubscriberView,
    TopicQuery,
)

S = TypeVar("S", bound=msgspec.Struct)


class NearContent:
    """Keeps the port `ContentHome` over the service of this process."""

    def __init__(self, service: ContentService) -> None:
        self._service = service

    async def publish(self, package: Package) -> Published:
        return await self._service.publish(package)

    async def missing(self, blobs: list[str]) -> list[str]:
        return await self._service.missing(blobs)

    async def read(self, query: TopicQuery) -> TopicEntries:
        return await self._service.read(
            topic_of(query.topic), query.partition, query.offset,
            bytes_max=query.bytes_max, wait_ms=query.wait_ms,
        )  # fmt: skip

    async def announce(self, discovery: Discovery) -> None:
        await self._service.announce(discovery)

    async def report(self, statuses: list[PackageStatus]) -> None:
        await self._service.report(statuses)

    async def snapshot_taken(self, event: SnapshotTaken) -> None:
        await self._service.snapshot_taken(event)

    async def publishers(self) -> list[FarmView]:
        return [await self.farm(each) for each in await self._service.publishers()]

    async def publishers_of(self, subscriber: str) -> list[str]:
        return await self._service.publishers_of(subscriber)

    async def subscribers(self, publisher: str) -> list[SubscriberView]:
        found = await self._service.subscribers(publisher)
        return [_shape(SubscriberView, each) for each in found]

    async def farm(self, publisher: str) -> FarmView:
        return _shape(FarmView, await self._service.farm(publisher))

    async def queue(self, publisher: str, subscriber: str, query: QueueQuery) -> QueuePage:
        found = await self._service.queue(publisher, subscriber, query.after, query.limit)
        return QueuePage(list(map(_package, found.items)), found.length, found.after)

    async def errors(self, publisher: str, subscriber: str, query: QueueQuery) -> FailedPackages:
        found = await self._service.errors(publisher, subscriber, query.after, query.limit)
        after = found[-1].offset if len(found) == query.limit else None
        return FailedPackages(list(map(_package, found)), after)

    async def clear(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        return _shape(CommandReceipt, await self._service.clear(publisher, subscriber, offset))

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        return _shape(CommandReceipt, await self._service.remove(publisher, subscriber, offset))

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        return _shape(CommandReceipt, await self._service.retry(publisher, subscriber, offset))

    async def events(self, publisher: str, query: EventQuery) -> EventPage:
        found, after = await self._service.events(
            publisher, query.after, query.limit, query.wait_ms
        )
        return EventPage([_shape(DistributedPackage, each) for each in found], after)

    async def take_snapshot(self, subscriber: str) -> CommandReceipt:
        return _shape(CommandReceipt, await self._service.take_snapshot(subscriber))

    async def snapshots(self) -> list[SnapshotView]:
        return [_shape(SnapshotView, each) for each in await self._service.snapshots()]

    async def forget(self, subscriber: str) -> None:
        await self._service.forget(subscriber)

    async def clean_up(self) -> CleanUpView:
        return _shape(CleanUpView, await self._service.clean_up())

    async def needs(self) -> ContentNeeds:
        return await self._service.needs()


def _shape(shape: type[S], summary: object) -> S:
    """What the service tells, as it goes over the wire: the fields have the same names."""
    return msgspec.convert(summary, shape, from_attributes=True)


def _package(item: QueueItem) -> QueuedPackage:
    action = None if item.action is None else item.action.name
    fields: dict[str, Any] = msgspec.structs.asdict(item) | {"action": action}
    return QueuedPackage(**fields)
