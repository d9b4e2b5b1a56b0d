"""The distributions of a partition: those it has started, and how far those of others have come.

A distribution is pending at a partition until that partition acknowledges it. While it is pending
it either waits in its queue or is in flight: sent, and sent again when nothing is heard. What is in
flight to one partition is a line; a line has one due date, the soonest of its flights.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.limits import (
    DISTRIBUTION_PAUSE_MS,
    DISTRIBUTION_PAUSE_MS_MAX,
    DISTRIBUTIONS_IN_FLIGHT_MAX,
)
from holdfast.records import partition_of
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import TEXT_U32_U64, U64, U64_TEXT, U64_U64

_COUNT = 0  # the only row of its family


class StoredDistribution(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command that is being distributed."""

    queue: str
    value_type: int
    intent: int
    value: bytes
    claims: dict[str, Any] | None
    started_ms: int


class Flight(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A distribution on its way to one partition."""

    due_ms: int  # when it is sent again
    attempts: int = 1  # how often it was sent; 0 while the partition has no room
    refusal: str = ""  # what the partition said of the last attempt that it answered
    is_refused: bool = False  # ... and that was the last attempt

    @property
    def is_lost(self) -> bool:
        """Sent more than once and not answered: the partition seems to be dark."""
        return self.attempts > 1 and not self.is_refused


class PendingLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All that is pending at one partition."""

    pending: int = 0
    in_flight: int = 0
    unordered: int = 0  # of those in flight, how many stand in no queue
    lost: int = 0  # of those in flight
    due_ms: int = 0  # when to look after them; 0 while nothing is in flight
    closed_until_ms: int = 0  # the partition is behind: nothing is sent until then


class StoredContinuation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command that waits until a queue has drained."""

    value_type: int
    intent: int
    key: int
    value: bytes
    claims: dict[str, Any] | None = None


_replace = msgspec.structs.replace


def pause_ms(attempts: int) -> int:
    """How long to wait for an answer to this attempt."""
    doublings = min(max(attempts - 1, 0), 16)
    return min(DISTRIBUTION_PAUSE_MS << doublings, DISTRIBUTION_PAUSE_MS_MAX)


class Distributions:
    """What is being distributed, and to whom."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.active = state.family(Tag.DISTRIBUTIONS, U64, StoredDistribution)
        self._pending = state.family(Tag.DISTRIBUTIONS_PENDING, U64_U64, bytes)  # key, partition
        self._flights = state.family(Tag.DISTRIBUTIONS_SENT, U64_U64, Flight)  # partition, key
        # (queue, partition, key). In a queue with a name all that are pending stand, the one in
        # flight at their head; in the one without, those for which there is no room yet.
        self._queued = state.family(Tag.DISTRIBUTIONS_QUEUED, TEXT_U32_U64, bytes)
        self._lines = state.family(Tag.DISTRIBUTION_LINES, U64, PendingLine)  # by partition
        self._count = state.family(Tag.DISTRIBUTION_COUNT, U64, int)
        self._continuations = state.family(Tag.CONTINUATIONS, TEXT_U32_U64, StoredContinuation)
        self._received = state.family(Tag.QUEUES_RECEIVED, U64_TEXT, int)  # (origin, queue) -> key
        self._partition = state.partition

    # --- what can be seen ---------------------------------------------------------------------

    def count(self) -> int:
        """How many are active."""
        return self._count.get(_COUNT) or 0

    def pending_at(self, key: int) -> list[int]:
        """The partitions that have not acknowledged a distribution."""
        return [partition for (_, partition), _ in self._pending.scan((key,))]

    def is_pending(self, key: int, partition: int) -> bool:
        return self._pending.get((key, partition)) is not None

    def flight(self, partition: int, key: int) -> Flight | None:
        return self._flights.get((partition, key))

    def flights(self, partition: int) -> Iterator[tuple[int, Flight]]:
        """What is in flight to a partition, by key."""
        for (_, key), flight in self._flights.scan((partition,)):
            yield key, flight

    def line(self, partition: int) -> PendingLine:
        return self._lines.get(partition) or PendingLine()

    def lines(self) -> list[tuple[int, PendingLine]]:
        """Every partition at which something is pending."""
        return list(self._lines.scan())

    def head(self, queue: str, partition: int) -> int | None:
        """The key that is first in a queue at a partition."""
        found = self._queued.first_keys((queue, partition), None, 1)
        return found[0][2] if found else None

    def must_wait(self, queue: str, partition: int) -> bool:
        """Whether a new distribution comes after others at a partition."""
        if queue:
            return self.head(queue, partition) is not None
        return self.line(partition).unordered >= DISTRIBUTIONS_IN_FLIGHT_MAX

    def is_drained(self, queue: str, before: int, partitions: Iterable[int]) -> bool:
        """Whether all that stood in a queue before a key are done with."""
        heads = (self.head(queue, partition) for partition in partitions)
        return all(head is None or head > before for head in heads)

    def first_continuation(self, queue: str) -> int | None:
        """The key of what waits longest for a queue."""
        found = self._continuations.first_keys((queue,), None, 1)
        return found[0][2] if found else None

    def continuation(self, queue: str, key: int) -> StoredContinuation | None:
        return self._continuations.get((queue, self._partition, key))

    def received(self, origin: int, queue: str) -> int:
        """The last key of another partition's queue that was taken here."""
        return self._received.get((origin, queue)) or 0

    # --- what appliers change -----------------------------------------------------------------

    def start(self, key: int, stored: StoredDistribution) -> None:
        self.active.insert(key, stored)
        self._count.put(_COUNT, self.count() + 1)

    def enqueue(self, key: int, queue: str, partition: int) -> None:
        """It is pending at a partition, and waits."""
        self._pending.insert((key, partition), EMPTY)
        self._queued.insert((queue, partition, key), EMPTY)
        line = self.line(partition)
        self._lines.put(partition, _replace(line, pending=line.pending + 1))

    def send(self, key: int, queue: str, partition: int, now_ms: int) -> None:
        """It is pending at a partition, and on its way there at once."""
        self.enqueue(key, queue, partition)
        self.take_off(key, queue, partition, now_ms)

    def take_off(self, key: int, queue: str, partition: int, now_ms: int) -> None:
        """What waited is on its way; if the partition has no room, as soon as it has."""
        line = self.line(partition)
        if line.closed_until_ms > now_ms:
            flight = Flight(line.closed_until_ms, 0)
        else:
            flight = Flight(now_ms + pause_ms(1))
        self._flights.insert((partition, key), flight)
        if not queue:
            self._queued.delete((queue, partition, key))
        line = _replace(line, in_flight=line.in_flight + 1, unordered=line.unordered + (not queue))
        self._put_line(partition, line, min(line.due_ms or flight.due_ms, flight.due_ms))

    def settle(self, key: int, queue: str, partition: int) -> None:
        """It is not pending at a partition any more."""
        self._pending.delete((key, partition))
        line = self.line(partition)
        line = _replace(line, pending=line.pending - 1)
        flight = self.flight(partition, key)
        if flight is not None:
            self._flights.delete((partition, key))
            line = _replace(
                line,
                in_flight=line.in_flight - 1,
                unordered=line.unordered - (not queue),
                lost=line.lost - flight.is_lost,
            )
        if queue or flight is None:
            self._queued.delete((queue, partition, key))
        # With others in flight the due date may now be too early. Then they are looked at for
        # nothing, which costs less than finding the next one at every acknowledgement.
        self._put_line(partition, line, line.due_ms if line.in_flight else 0)

    def finish(self, key: int) -> None:
        self.active.delete(key)
        if left := self.count() - 1:
            self._count.put(_COUNT, left)
        else:
            self._count.delete(_COUNT)

    def resent(self, partition: int, attempts: Iterable[tuple[int, int]], now_ms: int) -> None:
        """Distributions went to a partition again."""
        for key, attempt in attempts:
            flight = self.flight(partition, key)
            assert flight is not None, "what is not in flight cannot be sent again"
            due_ms = now_ms + pause_ms(attempt)
            self._flights.put((partition, key), Flight(due_ms, attempt, flight.refusal))
        self._look_after(partition, _replace(self.line(partition), closed_until_ms=0))

    def resumed(self, partition: int, keys: Iterable[int], now_ms: int) -> None:
        """A partition can be reached: these are sent as if for the first time, and at once."""
        for key in keys:
            flight = self.flight(partition, key)
            assert flight is not None, "what is not in flight cannot be resumed"
            self._flights.put((partition, key), Flight(now_ms, 0, flight.refusal))
        self._look_after(partition, _replace(self.line(partition), closed_until_ms=0))

    def postponed(self, partition: int, keys: Iterable[int], until_ms: int) -> None:
        """A partition had no room for these: they count as not sent, and all others wait too."""
        refused_room = set(keys)
        for key, flight in list(self.flights(partition)):
            attempts = flight.attempts
            if key in refused_room:
                attempts = max(attempts - 1, 0)
            elif flight.due_ms >= until_ms:
                continue
            later = _replace(flight, due_ms=until_ms, attempts=attempts)
            self._flights.put((partition, key), later)
        self._look_after(partition, _replace(self.line(partition), closed_until_ms=until_ms))

    def refused(self, partition: int, key: int, reason: str) -> None:
        flight = self.flight(partition, key)
        assert flight is not None, "what is not in flight cannot be refused"
        self._flights.put((partition, key), Flight(flight.due_ms, flight.attempts, reason, True))
        line = self.line(partition)
        self._lines.put(partition, _replace(line, lost=line.lost - flight.is_lost))

    def wait(self, queue: str, key: int, continuation: StoredContinuation) -> None:
        self._continuations.insert((queue, self._partition, key), continuation)

    def continued(self, queue: str, key: int) -> None:
        self._continuations.delete((queue, self._partition, key))

    def receive(self, key: int, queue: str) -> None:
        self._received.put((partition_of(key), queue), key)

    def _look_after(self, partition: int, line: PendingLine) -> None:
        """Counts the flights of a line anew, and finds the soonest."""
        flights = [flight for _, flight in self.flights(partition)]
        line = _replace(line, lost=sum(flight.is_lost for flight in flights))
        self._put_line(partition, line, min((flight.due_ms for flight in flights), default=0))

    def _put_line(self, partition: int, line: PendingLine, due_ms: int) -> None:
        if due_ms != line.due_ms:
            if line.due_ms:
                self._due.remove(line.due_ms, DueKind.DISTRIBUTION, partition)
            if due_ms:
                self._due.add(due_ms, DueKind.DISTRIBUTION, partition)
        if line.pending:
            self._lines.put(partition, _replace(line, due_ms=due_ms))
        else:
            self._lines.delete(partition)
