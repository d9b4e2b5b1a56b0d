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
    action: PackageAction | None  # None: it failed and is no longer on the log
    paths: list[str]
    size_bytes: int
    published_ms: int
    attempts: int = 0  # that failed
    reason: str = ""  # why the last one did
    failed_ms: int = 0  # when it failed, by the subscriber's clock; 0: it has not failed
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
    after: int | None = None  # the cursor of the next page; None: this is the last page


class SubscriberSummary(msgspec.Struct, frozen=True):
    """A subscriber, as a publisher sees it."""

    name: str
    publisher: str
    state: QueueState
    lag: int  # packages that it has not imported yet
    offset: int  # of the last package that it is done with
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
    cleared: int = NOWHERE  # up to where its queue was cleared
    is_doubled: bool = False  # another store uses the same name: a configuration error
    misses: int = 0  # packages that it never imported and that are no longer on the log


class FarmSummary(msgspec.Struct, frozen=True):
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
    failing: list[SubscriberSummary]  # blocked, retrying, with failed packages, or doubled
    dead: list[str]
    delay_ms: int = 0  # the current delay of publishing (back-pressure)


class CommandSent(msgspec.Struct, frozen=True):
    """A command for a subscriber is on the log, or stands there already."""

    command_id: str
    offset: int = NOWHERE  # the offset of its package
    blob: str = ""  # the blob that the snapshot will be stored in


class StoredEvent(msgspec.Struct, frozen=True):
    """A package that every subscriber has."""

    event_offset: int  # of the event: the next page comes after it
    said_ms: int
    package_id: str
    offset: int
    number: int
    paths: list[str]


class SnapshotSummary(msgspec.Struct, frozen=True):
    """The stored content of a subscriber, for another one to start from."""

    subscriber: str
    blob: str
    command_id: str
    taken_ms: int
    publishers: list[str]
    error: str = ""  # why there is none
