"""What can be seen of publishers, subscribers and queues. As JSON their names are camelCase."""

from enum import StrEnum

import msgspec

from holdfast.content.messages import NOWHERE, PackageAction


class _View(msgspec.Struct, frozen=True, rename="camel"):
    """What all views have in common."""


class QueueState(StrEnum):
    """What happens with a queue."""

    IDLE = "IDLE"  # it is empty
    RUNNING = "RUNNING"
    BLOCKED = "BLOCKED"  # its head could not be imported several times


class SubscriberState(StrEnum):
    """How a subscriber is."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    BLOCKED = "BLOCKED"
    DEAD = "DEAD"  # nothing was heard of it for three intervals


class QueueItem(_View, frozen=True):
    """A package in a queue, or in an error queue."""

    offset: int
    number: int
    package_id: str
    action: PackageAction
    paths: list[str]
    size_bytes: int
    published_ms: int
    attempts: int = 0  # that failed
    reason: str = ""  # why the last one did
    failed_ms: int = 0  # when the subscriber gave up, by its clock; 0: it did not
    is_retrying: bool = False  # it is in an error queue, and somebody asked for another attempt


class QueueView(_View, frozen=True):
    """What a subscriber has still to take in of a publisher."""

    publisher: str
    subscriber: str
    state: QueueState
    length: int
    offset: int  # of the last package that it is done with
    head: QueueItem | None = None
    items: list[QueueItem] = []  # a page of it
    next: int | None = None  # the page behind it comes after this offset; None: there is none


class ErrorQueueView(_View, frozen=True):
    """The packages that a subscriber gave up on."""

    publisher: str
    subscriber: str
    length: int
    items: list[QueueItem] = []
    next: int | None = None


class SubscriberView(_View, frozen=True):
    """A subscriber of a publisher."""

    name: str
    publisher: str
    state: SubscriberState
    lag: int  # packages that it has still to take in
    offset: int  # of the last package that it is done with
    number: int  # of that package
    retries: int  # of the package behind it
    reason: str  # why that one fails
    failing_since_ms: int
    errors: int  # packages in its error queue
    ready: bool
    editable: bool
    retries_max: int
    heard_ms: int
    host: str
    store_id: str
    is_doubled: bool  # another store uses the same name: one of them is configured wrongly
    imported: int
    imported_bytes: int
    import_ms: int
    cleared: int = NOWHERE  # up to where its queue was cleared


class FarmView(_View, frozen=True):
    """All subscribers of a publisher in short."""

    publisher: str
    number: int  # of the last package
    offset: int
    subscribers: int
    idle: int
    running: int
    blocked: int
    dead: int
    ready: int
    lag_p50: int  # of those that are alive
    lag_p99: int
    lag_max: int
    slowest: list[SubscriberView]  # the worst first
    failing: list[SubscriberView]  # blocked, with packages in error queues, or doubled


class PublisherView(_View, frozen=True):
    """A publisher."""

    name: str
    number: int  # of its last package
    offset: int
    distributed: int  # the offset of the last package that every subscriber has
    subscribers: int
    backlog: int  # of the slowest subscriber that publishing waits for


class CommandReceipt(_View, frozen=True):
    """A command for a subscriber is on the log."""

    command_id: str
    subscriber: str
    offset: int  # that it is about
    is_new: bool = True  # False: the same was asked for before


class ContentHealth(_View, frozen=True):
    """How content distribution is."""

    is_ready: bool  # what the topics say is known
    warnings: list[str]
