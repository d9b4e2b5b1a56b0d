"""What can be asked of a node about content distribution."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.content.shapes import (
    BlobNames,
    BlobView,
    CleanUpView,
    CommandReceipt,
    EventPage,
    EventQuery,
    FailedPackages,
    FarmView,
    FarmViews,
    MissingBlobs,
    NewAnnouncement,
    NewPackage,
    NewUpload,
    PackageReceipt,
    QueueOffset,
    QueuePage,
    QueueQuery,
    SnapshotNote,
    SnapshotView,
    SnapshotViews,
    StatusNote,
    StatusNotes,
    SubscriberView,
    SubscriberViews,
    TopicQuery,
    UploadEnd,
    UploadView,
)
from holdfast.gateway.operation import BYTES, Namespace, Piece, Resend, operation
from holdfast.limits import CONTENT_DELAY_MS_MAX, CONTENT_UPLOAD_BYTES_PER_SECOND_MIN

PUBLISH = one(ResourceType.CONTENT, Permission.PUBLISH)
SUBSCRIBE = one(ResourceType.CONTENT, Permission.SUBSCRIBE)
ADMINISTER = one(ResourceType.CONTENT, Permission.ADMINISTER)
LOOK = (*ADMINISTER, *PUBLISH)
READ = (*SUBSCRIBE, *LOOK)
STORE = (*PUBLISH, *SUBSCRIBE)  # a subscriber stores what it holds

_CLEAN_UP_MS = 1_800_000  # half an hour: 100,000 blobs in S3, one by one
_UPLOADS = "/v2/content/uploads"
_PUBLISHER = "/v2/content/publishers/{publisher}"
_SUBSCRIBER = "/v2/content/subscribers/{subscriber}"
_QUEUE = f"{_PUBLISHER}/subscribers/{{subscriber}}"


def _pressure_ms(_: NewPackage) -> int:
    return CONTENT_DELAY_MS_MAX


def _storing_ms(end: UploadEnd) -> int:
    return end.size_bytes * 1_000 // CONTENT_UPLOAD_BYTES_PER_SECOND_MIN


class ContentApi(Namespace, Protocol):
    """Content distribution: packages, topics, blobs and queues."""

    # --- publishing -----------------------------------------------------------------------

    @operation("publish_package", "POST", "/v2/content/packages", PUBLISH, takes_ms=_pressure_ms)
    async def publish(self, package: NewPackage) -> PackageReceipt:
        """Publish a package.

        Durable when it returns; waits while subscribers are too far behind.
        """
        ...

    @operation(
        "find_missing_blobs", "POST", "/v2/content/blobs/missing", PUBLISH,
        body=BlobNames, answer=MissingBlobs, resend=Resend.FREELY,
    )  # fmt: skip
    async def missing(self, blobs: Sequence[str]) -> list[str]:
        """List which of these blobs are missing; the others are kept for the next package."""
        ...

    # --- blobs ----------------------------------------------------------------------------

    @operation(
        "download_blob", "GET", "/v2/content/blobs/{blob}", READ, media_type=BYTES, is_ranged=True
    )
    async def read_blob(self, blob: str, start: int, bytes_max: int) -> Piece:
        """Download a blob, or the part of it that `Range` names.

        With 0 for `bytes_max` only its size is told. A part that begins behind the end is
        OutOfRange.
        """
        ...

    @operation("begin_upload", "POST", _UPLOADS, STORE)
    async def begin_upload(self, new: NewUpload) -> UploadView:
        """Start to upload a blob in pieces."""
        ...

    @operation("get_upload", "GET", f"{_UPLOADS}/{{upload_id}}", STORE)
    async def upload(self, upload_id: str) -> UploadView:
        """Show the progress of an upload."""
        ...

    @operation("write_upload", "PUT", f"{_UPLOADS}/{{upload_id}}/{{offset}}", STORE)
    async def write_upload(self, upload_id: str, offset: str, piece: bytes) -> UploadView:
        """Add a piece to an upload at an offset.

        What was there from that offset on is replaced: a piece may be sent again.
        """
        ...

    @operation(
        "finish_upload", "POST", f"{_UPLOADS}/{{upload_id}}/completion", STORE,
        takes_ms=_storing_ms,
    )  # fmt: skip
    async def finish_upload(self, upload_id: str, end: UploadEnd) -> BlobView:
        """Complete an upload, if its content matches its hash."""
        ...

    @operation("drop_upload", "DELETE", f"{_UPLOADS}/{{upload_id}}", STORE)
    async def drop_upload(self, upload_id: str) -> None:
        """Abort an upload."""

    # --- reading and reporting ------------------------------------------------------------

    @operation("read_topic", "POST", "/v2/content/topics/read", READ, media_type=BYTES, waits=True)
    async def read(self, query: TopicQuery) -> bytes:
        """Read a topic, as MessagePack: [[[offset, timestampMs, payload]], next, earliest, end].

        Messages of publishers that the caller may not read are left out.
        """
        ...

    @operation("announce_subscriber", "POST", "/v2/content/announcements", SUBSCRIBE)
    async def announce(self, announcement: NewAnnouncement) -> None:
        """Announce a subscriber and its progress."""

    @operation("report_packages", "POST", "/v2/content/statuses", SUBSCRIBE, body=StatusNotes)
    async def report(self, statuses: Sequence[StatusNote]) -> None:
        """Report the outcomes of packages at a subscriber."""

    @operation("report_snapshot", "POST", "/v2/content/snapshots", SUBSCRIBE)
    async def snapshot_taken(self, snapshot: SnapshotNote) -> None:
        """Report a stored snapshot of a subscriber."""

    # --- queues ---------------------------------------------------------------------------

    @operation("list_publishers", "GET", "/v2/content/publishers", LOOK, answer=FarmViews)
    async def publishers(self) -> list[FarmView]:
        """List the publishers."""
        ...

    @operation("list_subscribers", "GET", f"{_PUBLISHER}/subscribers", LOOK, answer=SubscriberViews)
    async def subscribers(self, publisher: str) -> list[SubscriberView]:
        """List the subscribers of a publisher and their progress."""
        ...

    @operation("get_farm", "GET", f"{_PUBLISHER}/farm", LOOK)
    async def farm(self, publisher: str) -> FarmView:
        """Show all subscribers of a publisher in one view."""
        ...

    @operation("search_queue", "POST", f"{_QUEUE}/queue", LOOK, resend=Resend.FREELY)
    async def queue(self, publisher: str, subscriber: str, query: QueueQuery) -> QueuePage:
        """Show the queue of a subscriber."""
        ...

    @operation("search_failed_packages", "POST", f"{_QUEUE}/errors", LOOK, resend=Resend.FREELY)
    async def errors(self, publisher: str, subscriber: str, query: QueueQuery) -> FailedPackages:
        """Show the error queue of a subscriber."""
        ...

    @operation("clear_queue", "POST", f"{_QUEUE}/clear", ADMINISTER, body=QueueOffset)
    async def clear(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        """Make an editable subscriber skip all packages up to an offset."""
        ...

    @operation("remove_package", "POST", f"{_QUEUE}/removal", ADMINISTER, body=QueueOffset)
    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        """Make an editable subscriber skip one package."""
        ...

    @operation("retry_package", "POST", f"{_QUEUE}/retry", ADMINISTER, body=QueueOffset)
    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt:
        """Retry a failed package at a subscriber."""
        ...

    @operation("get_content_events", "POST", f"{_PUBLISHER}/events", READ, waits=True)
    async def events(self, publisher: str, query: EventQuery) -> EventPage:
        """Show which packages every subscriber has imported."""
        ...

    # --- snapshots and clean-up -----------------------------------------------------------

    @operation("take_content_snapshot", "POST", f"{_SUBSCRIBER}/snapshot", ADMINISTER)
    async def take_snapshot(self, subscriber: str) -> CommandReceipt:
        """Make a subscriber store a snapshot, for another one to start from."""
        ...

    @operation(
        "list_content_snapshots", "GET", f"{_PUBLISHER}/snapshots", READ, answer=SnapshotViews
    )
    async def snapshots(self, publisher: str) -> list[SnapshotView]:
        """List the snapshots of subscribers of a publisher."""
        ...

    @operation("forget_subscriber", "DELETE", _SUBSCRIBER, ADMINISTER)
    async def forget(self, subscriber: str) -> None:
        """Forget a subscriber that will not return."""

    @operation(
        "clean_up_blobs", "POST", "/v2/content/cleanup", ADMINISTER, takes_ms=lambda _: _CLEAN_UP_MS
    )
    async def clean_up(self) -> CleanUpView:
        """Delete blobs without references."""
        ...
