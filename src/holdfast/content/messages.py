"""What publishers and subscribers tell each other: the messages of the five topics.

They are on disk. Fields are added at the end, with a default; tags and numbers never change.
"""

from enum import IntEnum
from typing import Final

import msgspec

NOWHERE: Final = -1  # the offset of a subscriber that has taken in nothing yet


class PackageAction(IntEnum):
    """What a package does with its paths."""

    ADD = 1  # its paths become as they are in the package
    DELETE = 2  # its paths and all below them go
    INVALIDATE = 3  # what was made from these paths is out of date
    TEST = 4  # nothing; it shows that a package arrives, and is in no queue


class Package(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """One publication, on the topic of packages."""

    publisher: str
    package_id: str  # chosen by the publisher; the same id is published once
    action: PackageAction
    paths: list[str]
    deep_paths: list[str]  # of the paths, those that come with all below them
    number: int  # of this publisher's packages, from 1 on; given by the node
    size_bytes: int
    sha256: bytes  # of its manifest, which has the hashes of the rest; empty without content
    content: bytes | None  # the package itself, or
    blob: str | None  # the blob that holds it
    binaries: list[str] = []  # the blobs of binaries that are not in the package
    origin: str = ""  # the program that published it
    user: str = ""
    metadata: dict[str, str] = {}


class ImportOutcome(IntEnum):
    """What a subscriber did with a package."""

    IMPORTED = 1
    REMOVED = 2  # somebody cleared it from the queue
    REMOVED_FAILED = 3  # it could not be imported, and the subscriber gave up


class PackageStatus(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """What became of a package at a subscriber, on the topic of statuses."""

    subscriber: str
    publisher: str
    offset: int  # of the package
    outcome: ImportOutcome
    number: int = 0  # of the package
    package_id: str = ""
    reason: str = ""  # why it failed
    attempts: int = 0
    at_ms: int = 0  # by the subscriber's clock


class SubscriberProgress(msgspec.Struct, frozen=True, array_like=True):
    """The progress of a subscriber with one publisher."""

    publisher: str
    offset: int = NOWHERE  # of the last package that it has done with
    number: int = 0  # of that package: with the publisher's last, how many are waiting
    retries: int = 0  # attempts at the next package
    reason: str = ""  # why the next package fails
    failing_since_ms: int = 0
    cleared: int = NOWHERE  # up to where the queue was cleared


class Discovery(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A subscriber says that it is there, and how far, on the topic of discoveries."""

    subscriber: str
    store_id: str  # of the store that it writes: two stores under one name are a fault
    editable: bool  # whether its queue may be cleared
    retries_max: int  # -1: it never gives up, and has no error queue
    progress: list[SubscriberProgress]
    ready: bool = False
    interval_ms: int = 10_000  # the longest time between two announcements
    imported: int = 0  # packages since it started
    imported_bytes: int = 0
    import_ms: int = 0  # that took in all
    host: str = ""


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """What a subscriber said last, and when."""

    discovery: Discovery
    at_ms: int


class PublisherMark(msgspec.Struct, frozen=True, array_like=True):
    """How far a publisher is."""

    publisher: str
    number: int  # of its last package
    offset: int  # of that package
    distributed: int = NOWHERE  # of the last package that every subscriber has


class SnapshotTaken(msgspec.Struct, frozen=True, tag="snapshotTaken", rename="camel"):
    """A subscriber has stored what it holds; JSON, on the topic of events."""

    subscriber: str
    command_id: str
    blob: str
    progress: list[SubscriberProgress]
    error: str = ""


class HeardSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot that a subscriber has stored, and when it said so."""

    event: SnapshotTaken
    at_ms: int


class RememberedSubscribers(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """All that is known, written by the node before older discoveries are dropped.

    What does not fit one message is in several, of which the first one has the marks.
    """

    heard: list[Heard]
    publishers: list[PublisherMark] = []
    packages: int = NOWHERE  # the offset up to which packages are in the marks; NOWHERE: no marks
    events: int = NOWHERE  # the offset up to which events are
    statuses: int = NOWHERE  # from this offset on statuses tell of packages that failed
    snapshots: list[HeardSnapshot] = []  # the last ones


class ClearQueue(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A subscriber is to skip all packages up to an offset; on the topic of commands."""

    command_id: str
    subscriber: str
    publisher: str
    offset: int


class RemovePackage(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A subscriber is to skip one package."""

    command_id: str
    subscriber: str
    publisher: str
    offset: int


class RetryPackage(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A subscriber is to import a package that it gave up on, where nothing newer is in the way."""

    command_id: str
    subscriber: str
    publisher: str
    offset: int


class TakeSnapshot(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """A subscriber is to store what it holds as a blob, for another one to begin with."""

    command_id: str
    subscriber: str
    blob: str


class PackageDistributed(msgspec.Struct, frozen=True, tag="distributed", rename="camel"):
    """Every subscriber has a package now; JSON, on the topic of events."""

    publisher: str
    package_id: str
    offset: int
    number: int
    paths: list[str]


ContentCommand = ClearQueue | RemovePackage | RetryPackage | TakeSnapshot
Announcement = Discovery | RememberedSubscribers
ContentEvent = PackageDistributed | SnapshotTaken

encode = msgspec.msgpack.Encoder().encode
decode_package = msgspec.msgpack.Decoder(Package).decode
decode_status = msgspec.msgpack.Decoder(PackageStatus).decode
decode_announcement = msgspec.msgpack.Decoder(Announcement).decode
decode_command = msgspec.msgpack.Decoder(ContentCommand).decode
encode_event = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(ContentEvent).decode
