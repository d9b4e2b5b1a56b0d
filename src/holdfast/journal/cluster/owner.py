"""The rules of an owner: what is acknowledged of its range, and what replicas still lack."""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.sequence.api import Range, Replica
from holdfast.sequence.quorum import quorum_of, quorum_offset


class Lack(NamedTuple):
    """Entries of a topic that a disk has not got: first <= number < end."""

    topic: str
    first: int
    end: int


class OwnerRange:
    """A range as its owner sees it, which is the start of the member that opened it."""

    __slots__ = (
        "_acknowledged",
        "_next",
        "_places",
        "_reports",
        "epoch",
        "is_ended",
        "is_fenced",
        "quorum",
        "replicas",
    )

    def __init__(self, opened: Range) -> None:
        self.epoch = opened.epoch
        self.replicas = opened.replicas
        self.quorum = quorum_of(len(opened.replicas))
        self.is_fenced = False  # nothing new is taken any more
        self.is_ended = False  # and what was sent may never be acknowledged
        self._next: dict[str, int] = {}
        self._acknowledged: dict[str, int] = {}
        self._places = {each: place for place, each in enumerate(opened.replicas)}
        self._reports: dict[str, list[int]] = {}  # by topic, in the order of the replicas

    def next(self, topic: str) -> int:
        """The number of the next entry: how many were sent."""
        return self._next.get(topic, 0)

    def acknowledged(self, topic: str) -> int:
        """How many entries a quorum has reported."""
        return self._acknowledged.get(topic, 0)

    def sent(self) -> dict[str, int]:
        """By topic, how many entries were sent."""
        return dict(self._next)

    def append(self, topic: str, count: int) -> int | None:
        """The number that the first of so many entries gets; None if the range is fenced.

        From here on they may survive, whatever happens: they are not undone.
        """
        if self.is_fenced:
            return None
        number = self._next.get(topic, 0)
        self._next[topic] = number + count
        return number

    def reported(self, replica: Replica, topic: str, count: int) -> int | None:
        """A disk has so many entries, after its sync. What is acknowledged now, if that moved.

        Only disks of the range's set count, and no report takes one back. More than was sent means
        that somebody else appends in this epoch: it does not count, and the range is fenced.
        """
        place = self._places.get(replica)
        if place is None:
            return None
        counts = self._reports.get(topic)
        if counts is None:
            counts = self._reports[topic] = [0] * len(self.replicas)
        if count <= counts[place]:
            return None
        if count > self._next.get(topic, 0):
            self.is_fenced = self.is_ended = True
            return None
        counts[place] = count
        acknowledged = self._acknowledged.get(topic, 0)
        if count <= acknowledged:  # one disk more than it takes
            return None
        found = quorum_offset(counts, self.quorum) or 0
        if found <= acknowledged:
            return None
        self._acknowledged[topic] = found
        return found

    def fenced(self, promise: int) -> bool:
        """A disk of the set has promised an epoch; whether that ends this range, as news."""
        if promise <= self.epoch or self.is_ended:
            return False
        self.is_fenced = self.is_ended = True
        return True

    def stop(self) -> None:
        """The owner takes nothing new any more: it is about to close the range itself.

        What was sent goes on being acknowledged.
        """
        self.is_fenced = True

    def is_confirmed(self, promises: Mapping[Replica, int]) -> bool:
        """Whether a quorum has promised nothing newer: nobody had taken over when it was asked."""
        held = [promises.get(each, self.epoch + 1) <= self.epoch for each in self.replicas]
        return not self.is_fenced and sum(held) >= self.quorum

    @property
    def is_drained(self) -> bool:
        """Whether all that was sent is acknowledged: it may be closed here without a take-over."""
        return all(self.acknowledged(topic) == count for topic, count in self._next.items())

    def lacks(self, replica: Replica) -> list[Lack]:
        """What a replica has not reported of what was sent."""
        place = self._places[replica]
        has = {topic: counts[place] for topic, counts in self._reports.items()}
        return [
            Lack(topic, has.get(topic, 0), end)
            for topic, end in self._next.items()
            if has.get(topic, 0) < end
        ]
