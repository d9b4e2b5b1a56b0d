"""What can be asked about content distribution: who may ask, and is what they send in order?"""

from collections.abc import Sequence

import msgspec

from holdfast.content.messages import Discovery, SnapshotTaken
from holdfast.content.ports import ContentLog
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, asker_now
from holdfast.gateway.content import rights
from holdfast.gateway.content.api import ContentApi
from holdfast.gateway.content.blobs import ContentBlobs, checked_blob
from holdfast.gateway.content.checked import (
    agent_name,
    few,
    message_of,
    package_of,
    progress_of,
    statuses_of,
    topic_of,
)
from holdfast.gateway.content.home import ContentHome
from holdfast.gateway.content.rights import ContentRights
from holdfast.gateway.content.shapes import (
    BlobView,
    CleanUpView,
    CommandReceipt,
    EventPage,
    EventQuery,
    FailedPackages,
    FarmView,
    NewAnnouncement,
    NewPackage,
    NewUpload,
    PackageReceipt,
    QueuePage,
    QueueQuery,
    SnapshotNote,
    SnapshotView,
    StatusNote,
    SubscriberView,
    TopicQuery,
    UploadEnd,
    UploadView,
)
from holdfast.gateway.operation import Piece
from holdfast.limits import (
    CONTENT_BLOB_BYTES_MAX,
    CONTENT_BLOBS_ASKED_MAX,
    CONTENT_PIECE_BYTES_MAX,
    PAGE_ITEMS_MAX,
    PARTITIONS_MAX,
    READ_BYTES_MAX,
    WAIT_MS_MAX,
    WHOLE_MAX,
)

_encode = msgspec.msgpack.Encoder().encode


class ContentGateway(ContentApi):
    """Content distribution, for callers that may use it."""

    def __init__(self, asked: Asked) -> None:
        self._rights = ContentRights(asked)
        self._home: ContentHome | None = None
        self._blobs: ContentBlobs | None = None
        self.log: ContentLog | None = None  # if it is in this process, for programs around the node

    def serve(self, home: ContentHome, blobs: ContentBlobs, log: ContentLog | None = None) -> None:
        """From now on it is asked of these."""
        self._home, self._blobs, self.log = home, blobs, log

    @property
    def home(self) -> ContentHome:
        if self._home is None:
            raise _no_content()
        return self._home

    @property
    def blobs(self) -> ContentBlobs:
        if self._blobs is None:
            raise _no_content()
        return self._blobs

    # --- publishing -----------------------------------------------------------------------

    async def publish(self, package: NewPackage) -> PackageReceipt:
        message = package_of(package)
        await self._rights.check([package.publisher], rights.PUBLISH)
        asker = asker_now()
        if asker is not None:
            message = msgspec.structs.replace(message, user=asker.sub)
        offset, number, waited_ms = await self.home.publish(message)
        return PackageReceipt(package.package_id, offset, number, waited_ms)

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        few(blobs, CONTENT_BLOBS_ASKED_MAX, "blobs")
        return await self.home.missing([checked_blob(each) for each in blobs])

    # --- blobs ----------------------------------------------------------------------------

    async def read_blob(self, blob: str, start: int, bytes_max: int) -> Piece:
        checks.within(start, 0, WHOLE_MAX, "start")
        checks.within(bytes_max, 0, CONTENT_PIECE_BYTES_MAX, "bytesMax")
        if rights.is_snapshot(checks.text(blob, "blob")) and asker_now() is not None:
            await self._check_snapshot(blob)
        return await self.blobs.read(blob, start, bytes_max)

    async def _check_snapshot(self, blob: str) -> None:
        """A snapshot has content of several publishers. The name of another blob is a secret."""
        found = [each for each in await self.home.snapshots() if each.blob == blob]
        publishers = found[0].publishers if found else ["*"]
        await self._rights.check(publishers, rights.READ)

    async def begin_upload(self, new: NewUpload) -> UploadView:
        agent_name(new.publisher, "publisher")
        of_snapshot = rights.is_snapshot(checked_blob(new.blob))
        needed = rights.SUBSCRIBE if of_snapshot else rights.PUBLISH
        await self._rights.check([new.publisher], needed)
        return UploadView(await self.blobs.begin(new.blob), 0)

    async def upload(self, upload_id: str) -> UploadView:
        return UploadView(upload_id, await self.blobs.offset(upload_id))

    async def write_upload(self, upload_id: str, offset: str, piece: bytes) -> UploadView:
        if not (isinstance(offset, str) and offset.isascii() and offset.isdigit()):
            raise InvalidArgument(f"Expected the offset of a piece, but found {offset!r}")
        at = checks.within(int(offset[:20]), 0, CONTENT_BLOB_BYTES_MAX, "offset")
        if len(piece) > CONTENT_PIECE_BYTES_MAX:
            raise InvalidArgument(
                f"Expected a piece of at most {CONTENT_PIECE_BYTES_MAX} bytes, but found"
                f" {len(piece)}"
            )
        return UploadView(upload_id, await self.blobs.write(upload_id, at, piece))

    async def finish_upload(self, upload_id: str, end: UploadEnd) -> BlobView:
        checks.within(end.size_bytes, 0, CONTENT_BLOB_BYTES_MAX, "sizeBytes")
        return BlobView(*await self.blobs.finish(upload_id, end.size_bytes))

    async def drop_upload(self, upload_id: str) -> None:
        await self.blobs.drop(upload_id)

    # --- reading and reporting ------------------------------------------------------------

    async def read(self, query: TopicQuery) -> bytes:
        topic = topic_of(query.topic)
        checks.within(query.partition, 1, PARTITIONS_MAX, "partition")
        checks.within(query.offset, -1, WHOLE_MAX, "offset")
        checks.within(query.bytes_max, 1, READ_BYTES_MAX, "bytesMax")
        checks.within(query.wait_ms, 0, WAIT_MS_MAX, "waitMs")
        if query.partition > topic.partitions:
            raise InvalidArgument(
                f"Expected a partition from 1 to {topic.partitions}, but found {query.partition}"
            )
        return _encode(await self._rights.shown(topic, await self.home.read(query)))

    async def announce(self, announcement: NewAnnouncement) -> None:
        agent_name(announcement.subscriber, "subscriber")
        progress = progress_of(announcement.progress)
        await self._rights.check((each.publisher for each in progress), rights.SUBSCRIBE)
        await self.home.announce(message_of(Discovery, announcement, progress=progress))

    async def report(self, statuses: Sequence[StatusNote]) -> None:
        messages = statuses_of(statuses)
        await self._rights.check((each.publisher for each in statuses), rights.SUBSCRIBE)
        await self.home.report(messages)

    async def snapshot_taken(self, snapshot: SnapshotNote) -> None:
        agent_name(snapshot.subscriber, "subscriber")
        checks.name(snapshot.command_id, "commandId")
        checked_blob(snapshot.blob)
        progress = progress_of(snapshot.progress)
        await self._rights.check((each.publisher for each in progress), rights.SUBSCRIBE)
        await self.home.snapshot_taken(message_of(SnapshotTaken, snapshot, progress=progress))

    # --- queues ---------------------------------------------------------------------------

    async def publishers(self) -> list[FarmView]:
        allowed = await self._rights.allowed(rights.LOOK)
        found = await self.home.publishers()
        return [each for each in found if allowed is None or each.publisher in allowed]

    async def subscribers(self, publisher: str) -> list[SubscriberView]:
        await self._look(publisher)
        return await self.home.subscribers(publisher)

    async def farm(self, publisher: str) -> FarmView:
        await self._look(publisher)
        return await self.home.farm(publisher)

    async def queue(self, publisher: str, subscriber: str, query: QueueQuery) -> QueuePage:
        _check_page(query)
        await self._look(publisher, subscriber)
        return await self.home.queue(publisher, subscriber, query)

    async def errors(self, publisher: str, subscriber: str, query: QueueQuery) -> FailedPackages:
        _check_page(query)
        await self._look(publisher, subscriber)
        return await self.home.errors(publisher, subscriber, query)

    async def clear(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        await self._administer(publisher, subscriber, offset)
        return await self.home.clear(publisher, subscriber, offset)

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        await self._administer(publisher, subscriber, offset)
        return await self.home.remove(publisher, subscriber, offset)

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        await self._administer(publisher, subscriber, offset)
        return await self.home.retry(publisher, subscriber, offset)

    async def events(self, publisher: str, query: EventQuery) -> EventPage:
        agent_name(publisher, "publisher")
        _check_page(query)
        checks.within(query.wait_ms, 0, WAIT_MS_MAX, "waitMs")
        await self._rights.check([publisher], rights.READ)
        return await self.home.events(publisher, query)

    # --- snapshots and clean-up -----------------------------------------------------------

    async def take_snapshot(self, subscriber: str) -> CommandReceipt:
        agent_name(subscriber, "subscriber")
        publishers = await self.home.publishers_of(subscriber)
        await self._rights.check(publishers, rights.ADMINISTER)
        return await self.home.take_snapshot(subscriber)

    async def snapshots(self, publisher: str) -> list[SnapshotView]:
        agent_name(publisher, "publisher")
        await self._rights.check([publisher], rights.READ)
        allowed = await self._rights.allowed(rights.READ)
        found = [each for each in await self.home.snapshots() if publisher in each.publishers]
        return [each for each in found if allowed is None or allowed.issuperset(each.publishers)]

    async def forget(self, subscriber: str) -> None:
        agent_name(subscriber, "subscriber")
        publishers = await self.home.publishers_of(subscriber)
        await self._rights.check(publishers, rights.ADMINISTER)
        await self.home.forget(subscriber)

    async def clean_up(self) -> CleanUpView:
        await self._rights.check(["*"], rights.ADMINISTER)
        return await self.home.clean_up()

    # --- inside ---------------------------------------------------------------------------

    async def _look(self, publisher: str, subscriber: str | None = None) -> None:
        agent_name(publisher, "publisher")
        if subscriber is not None:
            agent_name(subscriber, "subscriber")
        await self._rights.check([publisher], rights.LOOK)

    async def _administer(self, publisher: str, subscriber: str, offset: int) -> None:
        agent_name(publisher, "publisher")
        agent_name(subscriber, "subscriber")
        checks.within(offset, -1, WHOLE_MAX, "offset")
        await self._rights.check([publisher], rights.ADMINISTER)


def _check_page(query: QueueQuery | EventQuery) -> None:
    checks.within(query.after, -1, WHOLE_MAX, "after")
    checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")


def _no_content() -> Unavailable:
    return Unavailable("This node does not distribute content", lasting=1)
