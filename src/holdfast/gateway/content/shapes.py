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
    deep_paths: list[str] = msgspec.field(default_factory=list)  # with all below them
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
    waited_ms: int = 0  # because subscribers are behind


class BlobNames(Question, frozen=True):
    """Blobs that somebody asks about."""

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
    offset: int  # how many bytes are there: the next piece begins here


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
    offset: Offset  # the first that is wanted; if it is no longer kept, the first that is
    partition: Partition = 1
    bytes_max: ReadBytes = READ_BYTES_MAX  # about so much, but one message at least
    wait_ms: WaitMs = 0  # how long to wait when there is none

    def at_once(self) -> "TopicQuery":
        return msgspec.structs.replace(self, wait_ms=0)


class ProgressNote(Question, frozen=True):
    """How far a subscriber is with one publisher."""

    publisher: str
    offset: Offset = -1  # of the last package that it has done with; -1: of none
    number: Count = 0  # of that package
    retries: Count = 0  # of the package behind it
    reason: str = ""  # why that one fails
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
    interval_ms: AnnounceMs = 10_000  # it says so at least so often
    imported: Count = 0  # packages since it started
    imported_bytes: Count = 0
    import_ms: Count = 0  # that took in all
    host: str = ""


class StatusNote(Question, frozen=True):
    """What became of a package at a subscriber."""

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
    """What became of packages."""

    statuses: list[StatusNote]


class SnapshotNote(Question, frozen=True):
    """A subscriber has stored what it holds as a blob."""

    subscriber: str
    command_id: str
    blob: str
    progress: list[ProgressNote]
    error: str = ""  # why it has not


# --- queues -----------------------------------------------------------------------------------


class QueueQuery(Question, frozen=True):
    """Which part of a queue to show."""

    after: Offset = -1  # the last offset of the page before
    limit: Limit = 100


class QueuedPackage(Shape, frozen=True):
    """A package that a subscriber has still to take."""

    offset: int
    number: int
    package_id: str
    action: ActionWord | None  # None: it failed, and the log no longer has it
    paths: list[str]
    size_bytes: int
    published_ms: int
    attempts: int = 0  # that failed
    reason: str = ""  # why the last of them did
    failed_ms: int = 0  # when the subscriber gave up, by its clock; 0: it did not
    is_retrying: bool = False  # somebody asked for another attempt


class FailedPackages(Shape, frozen=True):
    """Packages that a subscriber gave up on, oldest first."""

    items: list[QueuedPackage]
    after: int | None = None  # give it to get the next page; None at the end


class QueuePage(Shape, frozen=True):
    """A part of a queue, oldest first."""

    items: list[QueuedPackage]
    length: int  # of the whole queue
    after: int | None = None  # give it to get the next page; None at the end


class QueueOffset(Question, frozen=True):
    """A package in a queue, by its offset."""

    offset: Offset


class CommandReceipt(Shape, frozen=True):
    """A command to a subscriber is on the log; it is done when the subscriber is there."""

    command_id: str
    offset: int = -1  # of the package that it is about
    blob: str = ""  # where a snapshot will be


# --- subscribers ------------------------------------------------------------------------------


class SubscriberView(Shape, frozen=True):
    """A subscriber, as a publisher sees it."""

    name: str
    publisher: str
    state: StateWord  # DEAD: nothing was heard of it for three intervals
    lag: int  # packages that it has still to take in
    offset: int  # of the last package that it has done with; -1: of none
    number: int  # of that package
    retries: int  # of the package behind it
    reason: str  # why that one fails
    failing_since_ms: int
    failed: int  # packages in its error queue
    ready: bool
    editable: bool
    retries_max: int  # -1: it never gives up
    heard_ms: int  # when it was heard of last
    store_id: str
    host: str
    imported: int  # packages since it started, of all publishers
    imported_bytes: int
    import_ms: int
    cleared: int = -1  # up to where its queue was cleared
    is_doubled: bool = False  # another store uses its name: one of them is configured wrongly
    misses: int = 0  # packages that it never took in and the log no longer has


class SubscriberViews(Shape, frozen=True):
    """All subscribers of a publisher, by name."""

    items: list[SubscriberView]


class FarmView(Shape, frozen=True):
    """All subscribers of a publisher in one view."""

    publisher: str
    last_number: int  # packages that were published
    last_offset: int
    distributed: int  # the offset of the last package that every subscriber has
    subscribers: int
    states: dict[str, int]  # how many are in which state
    ready: int
    lag_p50: int  # of those that are alive
    lag_p99: int
    lag_max: int
    slowest: str | None  # who has the largest lag, of those that are alive
    failing: list[SubscriberView]  # blocked, retrying, with failed packages, or doubled
    dead: list[str]
    delay_ms: int = 0  # by which publishing is slowed now


class FarmViews(Shape, frozen=True):
    """All publishers with their subscribers, by name."""

    items: list[FarmView]


class EventQuery(Question, frozen=True):
    """Which events to show."""

    after: Offset = -1  # the last offset of the page before
    limit: Limit = 100
    wait_ms: WaitMs = 0  # how long to wait when there is none

    def at_once(self) -> "EventQuery":
        return msgspec.structs.replace(self, wait_ms=0)


class DistributedPackage(Shape, frozen=True):
    """A package that every subscriber has."""

    package_id: str
    offset: int  # of the package
    number: int
    paths: list[str]
    said_ms: int  # when that was known


class EventPage(Shape, frozen=True):
    """Packages that every subscriber has, in the order in which that was known."""

    items: list[DistributedPackage]
    after: int  # give it to get what comes next


class SnapshotView(Shape, frozen=True):
    """What a subscriber held, stored for another one to begin with."""

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

    seen: int  # blobs that were looked at
    marked: int  # that were new
    referenced: int  # that are older than the log and that it refers to all the same
    removed: int
    removed_bytes: int
