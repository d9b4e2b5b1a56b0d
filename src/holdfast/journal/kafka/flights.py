"""What is sent to a partition together: a flight, formed of the appends that wait. Pure."""

import asyncio
from collections import deque
from collections.abc import Iterator
from enum import Enum

from holdfast.errors import HoldfastError, ResourceExhausted, Unknown
from holdfast.journal.api import Append, Appended, Refused
from holdfast.journal.kafka.marks import EXPECTED, PLAIN, pack
from holdfast.journal.kafka.producing import Marked
from holdfast.limits import KAFKA_FLIGHT_BYTES_MAX, KAFKA_FLIGHT_RECORDS_MAX


class WaitingAppend:
    """An append, and the caller that waits for its outcome."""

    def __init__(self, append: Append, size_bytes: int) -> None:
        self.append = append
        self.size_bytes = size_bytes
        self.answer: asyncio.Future[Appended | Refused] = asyncio.get_running_loop().create_future()

    @property
    def is_plain(self) -> bool:
        return not self.append.epoch and self.append.offset is None

    def tell(self, outcome: Appended | Refused | HoldfastError) -> None:
        """The outcome is known, or it is known that it is not."""
        if self.answer.done():
            return
        if isinstance(outcome, (Appended, Refused)):
            self.answer.set_result(outcome)
        else:
            # The owner of the partition undoes its step: nothing of it was written.
            if self.append.epoch and not isinstance(outcome, (ResourceExhausted, Unknown)):
                outcome = ResourceExhausted(outcome.message)
            self.answer.set_exception(outcome)
            self.answer.exception()  # a caller that has gone need not be told


class AppendFlight:
    """Appends of one kind to one partition that stand in the log together, or not at all."""

    def __init__(self, first: WaitingAppend, epoch: int) -> None:
        self.is_plain = first.is_plain
        self.epoch = epoch
        self.appends = [first]
        self.count = len(first.append.entries)
        self.size_bytes = first.size_bytes
        self.sent = 0  # so many times

    def has_room_for(self, more: WaitingAppend) -> bool:
        return (
            more.is_plain == self.is_plain
            and self.count + len(more.append.entries) <= KAFKA_FLIGHT_RECORDS_MAX
            and self.size_bytes + more.size_bytes <= KAFKA_FLIGHT_BYTES_MAX
        )

    def add(self, more: WaitingAppend) -> None:
        self.appends.append(more)
        self.count += len(more.append.entries)
        self.size_bytes += more.size_bytes

    def records(self, where: int) -> list[Marked]:
        """As they are sent: where they are expected, or the number of a plain flight."""
        kind, epoch, count = PLAIN if self.is_plain else EXPECTED, self.epoch, self.count
        entries = [entry for each in self.appends for entry in each.append.entries]
        return [
            (pack(kind, epoch, where, index, count), entry) for index, entry in enumerate(entries)
        ]

    def landed(self, first: int) -> None:
        """It is in the log, from an offset on."""
        for each in self.appends:
            following = first + len(each.append.entries)
            each.tell(Appended(first, following))
            first = following

    def tell(self, error: HoldfastError) -> None:
        """Nobody knows what became of it, or nothing did."""
        for each in self.appends:
            each.tell(error)


class WriterStanding:
    """Where a partition stands for its writer here."""

    def __init__(self, end: int, epoch: int = 0) -> None:
        self.epoch = epoch  # the newest that is known
        self.held: int | None = None  # the epoch in which it was taken here, and not lost since
        self.end = end  # of the log
        self.is_sure = False  # nobody else writes, or the end was looked at just now

    def refused(self, append: Append, reason: str) -> Refused:
        return Refused(append.partition, self.epoch, self.end, reason)


class NotYet(Enum):
    """What is missing before the next append can be sent."""

    END = "end"  # the log may reach further than is known
    EPOCH = "epoch"  # nobody has taken the partition in it


def form(queue: deque[WaitingAppend], standing: WriterStanding) -> AppendFlight | NotYet | None:
    """The next flight; those that cannot be written are told so and leave the queue.

    None if nothing is left.
    """
    flight: AppendFlight | None = None
    end = standing.end
    while queue:
        waiting = queue[0]
        judged = _judge(waiting.append, standing, end)
        if isinstance(judged, NotYet):
            return flight or judged
        if isinstance(judged, Refused):
            waiting.tell(judged)
        elif flight is None:
            flight = AppendFlight(waiting, waiting.append.epoch or 0)
        elif flight.has_room_for(waiting):
            flight.add(waiting)
        else:
            return flight
        queue.popleft()
        if judged is None:
            end += len(waiting.append.entries)
    return flight


def _judge(append: Append, standing: WriterStanding, end: int) -> Refused | NotYet | None:
    """Why an append is not written now; None if it is."""
    epoch, offset = append.epoch, append.offset
    if epoch and epoch <= standing.epoch and standing.held != epoch:
        return standing.refused(
            append,
            f"epoch {standing.epoch} has the partition, and this append is of epoch {epoch}"
            if epoch < standing.epoch
            else f"epoch {epoch} has ended here: the partition has to be taken in a newer one",
        )
    if offset is not None and offset != end:
        if offset > end and not standing.is_sure:
            return NotYet.END
        reason = f"the log ends at {end}, and this append expects {offset}"
        return Refused(append.partition, standing.epoch, end, reason)
    if epoch and epoch > standing.epoch:
        return NotYet.EPOCH
    return None


def drain(queue: deque[WaitingAppend]) -> Iterator[WaitingAppend]:
    """All that wait, which leave the queue."""
    while queue:
        yield queue.popleft()
