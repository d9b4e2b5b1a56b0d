"""The parcels of a partition: those it has sent, and how far those of others have come."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.parcels.values import Parcel
from holdfast.limits import PARCEL_PAUSE_MS
from holdfast.state import PartitionState
from holdfast.state.keys import U64, U64_U64


class ParcelLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The parcels from this partition to another."""

    sent: int = 0  # the last number
    acknowledged: int = 0
    due_ms: int = 0  # when those between are sent again
    pause_ms: int = PARCEL_PAUSE_MS


_replace = msgspec.structs.replace


class Parcels:
    """What was sent and not acknowledged, and what was received."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self._outbox = state.family(Tag.OUTBOX, U64_U64, Parcel)  # (receiver, number)
        self._lines = state.family(Tag.LINES, U64, ParcelLine)  # receiver -> line
        self._received = state.family(Tag.RECEIVED, U64, int)  # sender -> last number

    def line(self, receiver: int) -> ParcelLine:
        return self._lines.get(receiver) or ParcelLine()

    def received(self, sender: int) -> int:
        """The number of the last parcel that came from a partition."""
        return self._received.get(sender) or 0

    def open(self, receiver: int) -> list[Parcel]:
        """What a partition has not acknowledged, in order."""
        return [parcel for _, parcel in self._outbox.scan((receiver,))]

    def all_open(self) -> Iterator[Parcel]:
        for _, parcel in self._outbox.scan():
            yield parcel

    # --- what appliers change -----------------------------------------------------------------

    def sent(self, parcel: Parcel, now_ms: int) -> None:
        line = self.line(parcel.receiver)
        self._outbox.insert((parcel.receiver, parcel.number), parcel)
        if line.acknowledged == line.sent:  # the first that waits starts the clock
            line = _replace(line, due_ms=now_ms + PARCEL_PAUSE_MS, pause_ms=PARCEL_PAUSE_MS)
            self._due.add(line.due_ms, DueKind.PARCEL, parcel.receiver)
        self._lines.put(parcel.receiver, _replace(line, sent=parcel.number))

    def acknowledged(self, receiver: int, number: int, now_ms: int) -> None:
        line = self.line(receiver)
        for each in range(line.acknowledged + 1, number + 1):
            self._outbox.delete((receiver, each))
        self._due.remove(line.due_ms, DueKind.PARCEL, receiver)
        due_ms = 0
        if number < line.sent:
            due_ms = now_ms + PARCEL_PAUSE_MS
            self._due.add(due_ms, DueKind.PARCEL, receiver)
        self._lines.put(receiver, ParcelLine(line.sent, number, due_ms))

    def resent(self, receiver: int, due_ms: int, pause_ms: int) -> None:
        line = self.line(receiver)
        self._due.remove(line.due_ms, DueKind.PARCEL, receiver)
        self._due.add(due_ms, DueKind.PARCEL, receiver)
        self._lines.put(receiver, _replace(line, due_ms=due_ms, pause_ms=pause_ms))

    def take(self, sender: int, number: int) -> None:
        self._received.put(sender, number)
