"""What can be seen of publishers, subscribers and queues."""

from enum import StrEnum

import msgspec

from holdfast.content.messages import NOWHERE, PackageAction


class QueueState(StrEnum):
    """What happens with a queue; a subscriber is as its queue is, unless it is dead."""

    IDLE = "IDLE"  # it is empty
    RUNNING = "RUNNING"
    BLOCKED = "BLOCKED"  # its head could not be imported several times
    DEAD = "DEAD"  # nothing was heard of the subscriber for three intervals


class QueueItem(msgspec.Struct, frozen=True):
    """A package in a queue, or in an error queue."""

    offset: int
    number: int
    package_id: str
    action: PackageAction | None  # None: it failed, and the log no longer has it
    paths: list[str]
    size_bytes: int
    published_ms: int
    attempts: int = 0  # that failed
    reason: str = ""  # why the last one did
    failed_ms: int = 0  # when the subscriber gave up, by its clock; 0: it did not
    is_retrying: bool = False  # it is in an error queue, and somebody asked for another attempt


class QueueSummary(msgspec.Struct, frozen=True):
    """What a subscriber has still to take in of a publisher."""

    publisher: str
    subscriber: str
    state: QueueState
    length: int
    offset: int  # of the last package that it is done with
    head: QueueItem | None = None
    items: list[QueueItem] = []  # a page of it
    after: int | None = None  # give it to get the next page; None at the end


class SubscriberSummary(msgspec.Struct, frozen=True):
    """A subscriber, as a publisher sees it."""

    name: str
    publisher: str
    state: QueueState
    lag: int  # packages that it has still to take in
    offset: int  # of the last package that it is done with
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
    cleared: int = NOWHERE  # up to where its queue was cleared
    is_doubled: bool = False  # another store uses its name: one of them is configured wrongly
    misses: int = 0  # packages that it never took in and the log no longer has


class FarmSummary(msgspec.Struct, frozen=True):
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
    failing: list[SubscriberSummary]  # blocked, retrying, with failed packages, or doubled
    dead: list[str]
    delay_ms: int = 0  # by which publishing is slowed now


class CommandSent(msgspec.Struct, frozen=True):
    """A command for a subscriber is on the log, or stands there already."""

    command_id: str
    offset: int = NOWHERE  # of the package that it is about
    blob: str = ""  # where a snapshot will be


class StoredEvent(msgspec.Struct, frozen=True):
    """A package that every subscriber has."""

    event_offset: int  # of the event: the next page comes after it
    said_ms: int
    package_id: str
    offset: int
    number: int
    paths: list[str]


class SnapshotSummary(msgspec.Struct, frozen=True):
    """What a subscriber held, stored for another one to begin with."""

    subscriber: str
    blob: str
    command_id: str
    taken_ms: int
    publishers: list[str]
    error: str = ""  # why there is none
