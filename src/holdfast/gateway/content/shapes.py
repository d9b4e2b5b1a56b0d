"""The shapes of the API about content distribution.

What travels on the topics has shapes of its own here: a message on disk may change in other ways
than what clients send.
"""

from typing import Literal

import msgspec

from holdfast.gateway.numbers import (
    AnnounceMs,
    BlobBytes,
    Count,
    EndlessRetries,
    Limit,
    Offset,
    Partition,
    ReadBytes,
    TimestampMs,
    WaitMs,
)
from holdfast.gateway.shapes import Question, Shape
from holdfast.limits import READ_BYTES_MAX

ActionWord = Literal["ADD", "DELETE", "INVALIDATE", "TEST"]
OutcomeWord = Literal["IMPORTED", "REMOVED", "REMOVED_FAILED"]
StateWord = Literal["IDLE", "RUNNING", "BLOCKED", "DEAD"]
TopicWord = Literal["packages", "statuses", "discoveries", "commands", "events"]

# --- publishing -------------------------------------------------------------------------------


class NewPackage(Question, frozen=True):
    """A package to publish: its content, or the blob that was uploaded before."""

    publisher: str
    package_id: str  # chosen by the publisher; the same id is published once
    action: ActionWord
    paths: list[str]
    deep_paths: list[str] = msgspec.field(default_factory=list)  # paths that include their subtrees
    size_bytes: BlobBytes = 0
    sha256: bytes = b""  # of the package, in base64
    content: bytes | None = None  # the package itself, in base64, or
    blob: str | None = None  # the blob that holds it
    binaries: list[str] = msgspec.field(default_factory=list)  # blobs that the package refers to
    origin: str = ""  # the program that publishes
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class PackageReceipt(Shape, frozen=True):
    """The package is durable."""

    package_id: str
    offset: int
    number: int  # of the publisher's packages, from 1 on
    waited_ms: int = 0  # how long back-pressure delayed it


class BlobNames(Question, frozen=True):
    """The names of blobs to check."""

    blobs: list[str]


class MissingBlobs(Shape, frozen=True):
    """Blobs that are not stored."""

    blobs: list[str]


class NewUpload(Question, frozen=True):
    """A blob to upload in pieces."""

    publisher: str  # whose packages refer to it
    blob: str


class UploadView(Shape, frozen=True):
    """An upload that is not finished."""

    upload_id: str
    offset: int  # the number of bytes received: the next piece starts here


class UploadEnd(Question, frozen=True):
    """All pieces of an upload are there."""

    size_bytes: BlobBytes


class BlobView(Shape, frozen=True):
    """A blob that is stored."""

    blob: str
    size_bytes: int


# --- reading and reporting --------------------------------------------------------------------


class TopicQuery(Question, frozen=True):
    """Which part of a topic to read."""

    topic: TopicWord
    offset: Offset  # the first offset to read; if it is no longer on the log, the earliest that is
    partition: Partition = 1
    bytes_max: ReadBytes = READ_BYTES_MAX  # approximate, but at least one message
    wait_ms: WaitMs = 0  # how long to wait if there is none

    def at_once(self) -> "TopicQuery":
        return msgspec.structs.replace(self, wait_ms=0)


class ProgressNote(Question, frozen=True):
    """The progress of a subscriber with one publisher."""

    publisher: str
    offset: Offset = -1  # the offset of the last processed package; -1: none
    number: Count = 0  # of that package
    retries: Count = 0  # attempts at the next package
    reason: str = ""  # why the next package fails
    failing_since_ms: TimestampMs = 0
    cleared: Offset = -1  # up to where its queue was cleared


class NewAnnouncement(Question, frozen=True):
    """A subscriber says that it is there, and how far."""

    subscriber: str
    store_id: str  # of the store that it writes
    editable: bool = False  # whether its queue may be cleared
    retries_max: EndlessRetries = -1  # of one package; -1: it never gives up
    progress: list[ProgressNote] = msgspec.field(default_factory=list)
    ready: bool = False
    interval_ms: AnnounceMs = 10_000  # the longest time between two announcements
    imported: Count = 0  # packages since it started
    imported_bytes: Count = 0
    import_ms: Count = 0  # that took in all
    host: str = ""


class StatusNote(Question, frozen=True):
    """The outcome of a package at a subscriber."""

    subscriber: str
    publisher: str
    offset: Offset
    outcome: OutcomeWord
    number: Count = 0
    package_id: str = ""
    reason: str = ""  # why it failed
    attempts: Count = 0
    at_ms: TimestampMs = 0


class StatusNotes(Question, frozen=True):
    """Outcomes of packages."""

    statuses: list[StatusNote]


class SnapshotNote(Question, frozen=True):
    """A subscriber has stored its content as a blob."""

    subscriber: str
    command_id: str
    blob: str
    progress: list[ProgressNote]
    error: str = ""  # why it has not


# --- queues -----------------------------------------------------------------------------------


class QueueQuery(Question, frozen=True):
    """Which part of a queue to show."""

    after: Offset = -1  # the last offset of the previous page
    limit: Limit = 100


class QueuedPackage(Shape, frozen=True):
    """A package that a subscriber has not imported yet."""

    offset: int
    number: int
    package_id: str
    action: ActionWord | None  # None: it failed and is no longer on the log
    paths: list[str]
    size_bytes: int
    published_ms: int
    attempts: int = 0  # that failed
    reason: str = ""  # why the last of them did
    failed_ms: int = 0  # when it failed, by the subscriber's clock; 0: it has not failed
    is_retrying: bool = False  # a retry was requested


class FailedPackages(Shape, frozen=True):
    """Packages that failed at a subscriber, oldest first."""

    items: list[QueuedPackage]
    after: int | None = None  # the cursor of the next page; None: this is the last page


class QueuePage(Shape, frozen=True):
    """A part of a queue, oldest first."""

    items: list[QueuedPackage]
    length: int  # of the whole queue
    after: int | None = None  # the cursor of the next page; None: this is the last page


class QueueOffset(Question, frozen=True):
    """A package in a queue, by its offset."""

    offset: Offset


class CommandReceipt(Shape, frozen=True):
    """A command to a subscriber is on the log; the subscriber executes it when it is connected."""

    command_id: str
    offset: int = -1  # the offset of its package
    blob: str = ""  # the blob that the snapshot will be stored in


# --- subscribers ------------------------------------------------------------------------------


class SubscriberView(Shape, frozen=True):
    """A subscriber, as a publisher sees it."""

    name: str
    publisher: str
    state: StateWord  # DEAD: no announcement for three intervals
    lag: int  # packages that it has not imported yet
    offset: int  # the offset of the last processed package; -1: none
    number: int  # of that package
    retries: int  # attempts at the next package
    reason: str  # why the next package fails
    failing_since_ms: int
    failed: int  # packages in its error queue
    ready: bool
    editable: bool
    retries_max: int  # -1: it never gives up
    heard_ms: int  # the time of its last announcement
    store_id: str
    host: str
    imported: int  # packages since it started, of all publishers
    imported_bytes: int
    import_ms: int
    cleared: int = -1  # up to where its queue was cleared
    is_doubled: bool = False  # another store uses the same name: a configuration error
    misses: int = 0  # packages that it never imported and that are no longer on the log


class SubscriberViews(Shape, frozen=True):
    """All subscribers of a publisher, by name."""

    items: list[SubscriberView]


class FarmView(Shape, frozen=True):
    """All subscribers of a publisher in one view."""

    publisher: str
    last_number: int  # the number of published packages
    last_offset: int
    distributed: int  # the offset of the last package that every subscriber has
    subscribers: int
    states: dict[str, int]  # the number of subscribers by state
    ready: int
    lag_p50: int  # of live subscribers
    lag_p99: int
    lag_max: int
    slowest: str | None  # the live subscribers with the largest lag
    failing: list[SubscriberView]  # blocked, retrying, with failed packages, or doubled
    dead: list[str]
    delay_ms: int = 0  # the current delay of publishing (back-pressure)


class FarmViews(Shape, frozen=True):
    """All publishers with their subscribers, by name."""

    items: list[FarmView]


class EventQuery(Question, frozen=True):
    """Which events to show."""

    after: Offset = -1  # the last offset of the previous page
    limit: Limit = 100
    wait_ms: WaitMs = 0  # how long to wait if there is none

    def at_once(self) -> "EventQuery":
        return msgspec.structs.replace(self, wait_ms=0)


class DistributedPackage(Shape, frozen=True):
    """A package that every subscriber has."""

    package_id: str
    offset: int  # of the package
    number: int
    paths: list[str]
    said_ms: int  # when the node learned it


class EventPage(Shape, frozen=True):
    """Packages that every subscriber has imported, in the order in which the node learned it."""

    items: list[DistributedPackage]
    after: int  # the cursor of the next page


class SnapshotView(Shape, frozen=True):
    """The stored content of a subscriber, for another one to start from."""

    subscriber: str
    blob: str
    command_id: str
    taken_ms: int
    publishers: list[str]
    error: str = ""  # why there is none


class SnapshotViews(Shape, frozen=True):
    """Snapshots, newest first."""

    items: list[SnapshotView]


class CleanUpView(Shape, frozen=True):
    """What a clean-up of the blobs did."""

    seen: int  # blobs that were checked
    marked: int  # that were new
    referenced: int  # that are older than the log and that it refers to all the same
    removed: int
    removed_bytes: int
