"""What the five topics say together: a fold over their messages, the same live and at a start."""

from collections import OrderedDict, deque
from collections.abc import Iterable

import msgspec

from holdfast.content.messages import (
    NOWHERE,
    Announcement,
    ClearQueue,
    ContentCommand,
    ContentEvent,
    Discovery,
    HeardSnapshot,
    Package,
    PackageAction,
    PackageDistributed,
    PackageStatus,
    PublisherMark,
    RememberedSubscribers,
    RetryPackage,
    SubscriberProgress,
)
from holdfast.content.ports import Published, TopicEntry
from holdfast.content.publisher.errors import ErrorQueues
from holdfast.content.publisher.offset_map import OffsetMap, QueueEntry
from holdfast.content.publisher.topology import KnownSubscriber, SubscriberTopology
from holdfast.errors import NotFound
from holdfast.limits import CONTENT_PACKAGES_KNOWN_MAX, CONTENT_SNAPSHOTS_KNOWN_MAX


class PackageHead(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A package without its content, which is not looked at."""

    publisher: str
    package_id: str
    action: PackageAction
    paths: list[str]
    deep_paths: list[str]
    number: int
    size_bytes: int


decode_head = msgspec.msgpack.Decoder(PackageHead).decode


class KnownPublisher:
    """A publisher: how far it is, and its packages as queues show them."""

    def __init__(self, mark: PublisherMark, known_from: int) -> None:
        self.name = mark.publisher
        self.number = mark.number  # of its last package
        self.offset = mark.offset  # of that package
        self.distributed = mark.distributed  # of the last package that every subscriber has
        self.map = OffsetMap(known_from)  # packages before that offset are not in it
        self._recent: OrderedDict[str, Published] = OrderedDict()

    @property
    def mark(self) -> PublisherMark:
        return PublisherMark(self.name, self.number, self.offset, self.distributed)

    def find(self, package_id: str) -> Published | None:
        """Where a package stands that was published not long ago."""
        return self._recent.get(package_id)

    def apply(self, head: PackageHead, offset: int, published_ms: int) -> None:
        """The next package, or one that was counted before and is read for its id."""
        self._recent[head.package_id] = Published(offset, head.number)
        if len(self._recent) > CONTENT_PACKAGES_KNOWN_MAX:
            self._recent.popitem(last=False)
        if head.action is not PackageAction.TEST:
            self.map.append(entry_of(head, offset, published_ms))
            self.number = max(self.number, head.number)
        self.offset = max(self.offset, offset)


def entry_of(head: PackageHead, offset: int, published_ms: int) -> QueueEntry:
    """A package as a queue shows it."""
    return QueueEntry(
        offset, head.number, head.package_id, head.action, head.paths, head.size_bytes,
        published_ms,
    )  # fmt: skip


class ContentState:
    """All that is known, from the messages that were applied."""

    def __init__(self, kept_ms: int, packages_from: int = 0) -> None:
        self.publishers: dict[str, KnownPublisher] = {}
        self.topology = SubscriberTopology(kept_ms)
        self.errors = ErrorQueues()
        self.snapshots: deque[HeardSnapshot] = deque(maxlen=CONTENT_SNAPSHOTS_KNOWN_MAX)
        self._cleared: dict[tuple[str, str], ClearQueue] = {}  # by subscriber and publisher
        self._packages_from = packages_from  # where packages are read from

    # --- packages -----------------------------------------------------------------------------

    def numbered(self, packages: Iterable[Package]) -> list[Package]:
        """Packages with their numbers, for the append that comes next; a TEST is not counted."""
        last = {name: each.number for name, each in self.publishers.items()}
        numbered: list[Package] = []
        for package in packages:
            number = last.get(package.publisher, 0)
            number += package.action is not PackageAction.TEST
            last[package.publisher] = number
            numbered.append(msgspec.structs.replace(package, number=number))
        return numbered

    def apply_package(self, entry: TopicEntry) -> KnownPublisher:
        """A package is on the log."""
        head = decode_head(entry.payload)
        publisher = self.publishers.get(head.publisher)
        if publisher is None:
            is_first = head.number <= 1  # there is none before it
            mark = PublisherMark(head.publisher, 0, NOWHERE)
            publisher = KnownPublisher(mark, 0 if is_first else self._packages_from)
            self.publishers[head.publisher] = publisher
        publisher.apply(head, entry.offset, entry.timestamp_ms)
        return publisher

    def last_numbers(self) -> dict[str, int]:
        """The number of each publisher's last package."""
        return {name: each.number for name, each in self.publishers.items()}

    # --- the other topics ---------------------------------------------------------------------

    def apply_announcement(self, message: Announcement, at_ms: int) -> None:
        """Subscribers say how far they are, or are remembered."""
        last = self.last_numbers()
        if isinstance(message, Discovery):
            self.topology.hear(message, at_ms, last)
            return
        for discovery, heard_ms in ((each.discovery, each.at_ms) for each in message.heard):
            self.topology.hear(discovery, heard_ms, last)

    def apply_marks(self, found: RememberedSubscribers) -> None:
        """Publishers and snapshots as they were when everything was remembered."""
        for mark in found.publishers:
            self.publishers[mark.publisher] = KnownPublisher(mark, self._packages_from)
        self.snapshots.extend(found.snapshots)

    def apply_status(self, status: PackageStatus, offset: int, said_ms: int) -> None:
        """The outcome of a package at a subscriber."""
        self.errors.apply_status(status, offset, said_ms)

    def apply_command(self, command: ContentCommand, said_ms: int) -> None:
        """Somebody wants something of a subscriber."""
        if isinstance(command, ClearQueue):
            if command.offset > self.cleared_to(command.subscriber, command.publisher):
                self._cleared[command.subscriber, command.publisher] = command
        elif isinstance(command, RetryPackage):
            self.errors.apply_retry(command, said_ms)

    def apply_event(self, event: ContentEvent, said_ms: int) -> None:
        """A package is distributed, or a snapshot was taken."""
        if isinstance(event, PackageDistributed):
            publisher = self.publishers.get(event.publisher)
            if publisher is not None:
                publisher.distributed = max(publisher.distributed, event.offset)
        else:
            self.snapshots.append(HeardSnapshot(event, said_ms))

    def remembered(
        self, packages: int, events: int, statuses: int, bytes_max: int
    ) -> list[RememberedSubscribers]:
        """All of it as messages of bounded size: the topics are read on from these offsets."""
        marks = [each.mark for each in self.publishers.values()]
        first_failed = self.errors.first_status()
        messages = [
            RememberedSubscribers(
                [],
                marks,
                packages,
                events,
                statuses if first_failed is None else first_failed,
                list(self.snapshots),
            )
        ]
        size_bytes = bytes_max
        for heard in self.topology.heard():
            more_bytes = len(msgspec.msgpack.encode(heard))
            if size_bytes + more_bytes > bytes_max:
                messages.append(RememberedSubscribers([]))
                size_bytes = 0
            messages[-1].heard.append(heard)
            size_bytes += more_bytes
        return messages

    def forget(self, subscriber: str) -> None:
        """A subscriber is gone for good."""
        self.topology.forget(subscriber)
        self.errors.forget(subscriber)
        for pair in [each for each in self._cleared if each[0] == subscriber]:
            del self._cleared[pair]

    def age(self, now_ms: int, earliest: int) -> bool:
        """Forgets who was silent for too long; whether there was anybody.

        A publisher is forgotten when the log has nothing of it and nobody subscribes to it.
        """
        has_aged = self.topology.age(now_ms)
        for name, each in list(self.publishers.items()):
            if each.offset < earliest and next(self.topology.of(name), None) is None:
                del self.publishers[name]
                has_aged = True
        return has_aged

    # --- what is known --------------------------------------------------------------------------

    def cleared_to(self, subscriber: str, publisher: str) -> int:
        """Up to where somebody asked to clear a queue."""
        found = self._cleared.get((subscriber, publisher))
        return NOWHERE if found is None else found.offset

    def clear_command(self, subscriber: str, publisher: str) -> str:
        """The command by which that was asked for."""
        return self._cleared[subscriber, publisher].command_id

    def names(self) -> list[str]:
        """All publishers: those that published, and those that subscribers wait for."""
        waited_for = {name for each in self.topology.known.values() for name in each.of}
        return sorted(self.publishers.keys() | waited_for)

    def publisher(self, name: str) -> KnownPublisher:
        """A publisher; one that has published nothing is known if somebody subscribes to it."""
        found = self.publishers.get(name)
        if found is None and next(self.topology.of(name), None) is not None:
            found = KnownPublisher(PublisherMark(name, 0, NOWHERE), 0)
        if found is None:
            raise NotFound(
                f"Expected a publisher named {name}, but it has no packages and no subscribers;"
                f" known are {', '.join(self.names()[:10]) or 'none'}",
                publisher=name,
            )
        return found

    def subscriber(self, name: str) -> KnownSubscriber:
        """A subscriber that was heard of."""
        found = self.topology.known.get(name)
        if found is None:
            raise NotFound(
                f"Expected a subscriber named {name}, but nothing was heard of it; check its name,"
                " and that it runs",
                subscriber=name,
            )
        return found

    def pair(
        self, publisher: str, subscriber: str
    ) -> tuple[KnownPublisher, KnownSubscriber, SubscriberProgress]:
        """A publisher and one of its subscribers."""
        known, found = self.publisher(publisher), self.subscriber(subscriber)
        if (progress := found.of.get(publisher)) is None:
            raise NotFound(
                f"Expected {subscriber} to subscribe to {publisher}, but it subscribes to"
                f" {', '.join(found.of) or 'nobody'}",
                publisher=publisher, subscriber=subscriber,
            )  # fmt: skip
        return known, found, progress
