"""Who subscribes: what each subscriber said last, and what follows from it.

A subscriber counts as dead after three of its intervals without a word, and is forgotten after
CONTENT_SUBSCRIBER_KEPT_MS. Until then it holds the log: it may come back.
"""

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.content.messages import Discovery, Heard, SubscriberProgress
from holdfast.limits import (
    CONTENT_BACKLOG_FREE,
    CONTENT_BLOCKED_ATTEMPTS,
    CONTENT_SILENT_INTERVALS,
    CONTENT_STALLED_MS,
    CONTENT_SUBSCRIBER_KEPT_MS,
)

Last = dict[str, int]  # the number of each publisher's last package


class Movement(NamedTuple):
    """When a subscriber last took in a package, or had none to take."""

    at_ms: int
    number: int  # of the publisher's last package then


class KnownSubscriber:
    """A subscriber, as it is known from what it says."""

    __slots__ = (
        "caught_up", "discovery", "doubled_ms", "former", "heard_ms", "moved", "noticed_ms",
        "of",
    )  # fmt: skip

    def __init__(self, discovery: Discovery, heard_ms: int) -> None:
        self.discovery = discovery
        self.heard_ms = heard_ms
        self.noticed_ms = 0  # since when the node has listened
        self.of: dict[str, SubscriberProgress] = {}  # by publisher
        self.former = ("", 0)  # another store that used this name, and when it did last
        self.doubled_ms = -CONTENT_STALLED_MS  # when two stores were seen to use the name in turn
        self.moved: dict[str, Movement] = {}  # by publisher
        self.caught_up: set[str] = set()  # publishers whose packages it has not far behind

    @property
    def name(self) -> str:
        return self.discovery.subscriber

    def hear(self, discovery: Discovery, at_ms: int, last: Last) -> None:
        """It says how far it is."""
        store, before = discovery.store_id, self.discovery.store_id
        if store != before:
            if store == self.former[0] and at_ms - self.former[1] < CONTENT_STALLED_MS:
                self.doubled_ms = at_ms
            self.former = before, self.heard_ms
        self.discovery, self.heard_ms = discovery, at_ms
        progress = {each.publisher: each for each in discovery.progress}
        for publisher, each in progress.items():
            was = self.of.get(publisher)
            lag = last.get(publisher, 0) - each.number
            if lag <= 0 or was is None or was.offset != each.offset:
                self.moved[publisher] = Movement(at_ms, last.get(publisher, 0))
            if lag <= CONTENT_BACKLOG_FREE:
                self.caught_up.add(publisher)
        self.of = progress

    def is_dead(self, now_ms: int) -> bool:
        silent_ms = self.discovery.interval_ms * CONTENT_SILENT_INTERVALS
        return now_ms - max(self.heard_ms, self.noticed_ms) > silent_ms

    def is_blocked(self, publisher: str) -> bool:
        return self.of[publisher].retries >= CONTENT_BLOCKED_ATTEMPTS

    def is_doubled(self, now_ms: int) -> bool:
        """Whether two stores use its name at the same time, which is a fault."""
        return now_ms - self.doubled_ms < CONTENT_STALLED_MS

    def slows(self, publisher: str, now_ms: int, last_number: int) -> bool:
        """Whether publishing waits for it: not for one that is stalled, or only catching up.

        It is stalled if it did not move while as many packages were published as it may be behind,
        or for CONTENT_STALLED_MS.
        """
        moved = self.moved[publisher]
        return (
            publisher in self.caught_up
            and not self.is_blocked(publisher)
            and last_number - moved.number < CONTENT_BACKLOG_FREE
            and now_ms - moved.at_ms <= CONTENT_STALLED_MS
            and not self.is_dead(now_ms)
        )


class SubscriberTopology:
    """All subscribers that were heard of and not forgotten."""

    def __init__(self, kept_ms: int = CONTENT_SUBSCRIBER_KEPT_MS) -> None:
        self._kept_ms = kept_ms
        self.known: dict[str, KnownSubscriber] = {}

    def hear(self, discovery: Discovery, at_ms: int, last: Last) -> None:
        """A subscriber says how far it is; time does not go back for what was said before."""
        found = self.known.get(discovery.subscriber)
        if found is None:
            found = self.known[discovery.subscriber] = KnownSubscriber(discovery, at_ms)
        found.hear(discovery, max(at_ms, found.heard_ms), last)

    def listen(self, now_ms: int) -> None:
        """The node was away: nobody is dead before it had the time to say something."""
        for each in self.known.values():
            each.noticed_ms = now_ms

    def heard(self) -> list[Heard]:
        """What all of them said last."""
        return [Heard(each.discovery, each.heard_ms) for each in self.known.values()]

    def forget(self, name: str) -> None:
        """A subscriber is gone for good."""
        self.known.pop(name, None)

    def age(self, now_ms: int) -> bool:
        """Forgets those that were silent for too long; whether there were any."""
        old = [name for name, each in self.known.items() if now_ms - each.heard_ms > self._kept_ms]
        for name in old:
            del self.known[name]
        return bool(old)

    def of(self, publisher: str) -> Iterator[tuple[KnownSubscriber, SubscriberProgress]]:
        """The subscribers of a publisher, and how far they are."""
        for each in self.known.values():
            if (progress := each.of.get(publisher)) is not None:
                yield each, progress

    def slowest_offset(self, publisher: str) -> int | None:
        """The offset that every subscriber of a publisher is done with; None: there are none."""
        return min((progress.offset for _, progress in self.of(publisher)), default=None)

    def slowest_number(self, publisher: str, now_ms: int, last_number: int) -> int | None:
        """How far the slowest subscriber is that publishing waits for."""
        return min(
            (
                progress.number
                for each, progress in self.of(publisher)
                if each.slows(publisher, now_ms, last_number)
            ),
            default=None,
        )
