"""Which records of a partition are entries: those of whole flights that stand where they must."""

from collections.abc import Iterable

from holdfast.journal.api import Entry
from holdfast.journal.kafka.marks import BARRIER, Mark, Raw, stands, unpack


class Sieve:
    """Takes the records of a partition in their order; gives the entries among them.

    Records of a flight that is not whole yet are held back. `settled` is the offset below which
    everything is decided.
    """

    def __init__(self, start: int) -> None:
        self.settled = start
        self._start = start
        self._flight: Mark | None = None  # the mark of its first record that was seen
        self._held: list[Entry] = []

    def add(self, records: Iterable[Raw]) -> list[Entry]:
        """The entries that these records complete."""
        entries: list[Entry] = []
        for offset, timestamp_ms, key, payload in records:
            mark = unpack(key)
            if mark is None:
                self._drop(offset)
                continue
            entry = Entry(offset, timestamp_ms, payload)
            if self._flight is not None and self._goes_on(mark, offset):
                self._held.append(entry)
                if mark.place + 1 == mark.records:
                    entries += self._held
                    self._flight, self._held = None, []
                    self.settled = offset + 1
                continue
            self._drop(offset)
            if mark.kind == BARRIER or not stands(mark, offset) or not self._begins(mark, offset):
                continue
            if mark.place + 1 == mark.records:
                entries.append(entry)
            else:
                self._flight, self._held = mark, [entry]
                self.settled = offset
        return entries

    def _goes_on(self, mark: Mark, offset: int) -> bool:
        """Whether a record is the next one of the flight at hand."""
        first, held = self._flight, self._held
        assert first is not None
        return (
            mark[:3] == first[:3]
            and mark.records == first.records
            and mark.place == first.place + len(held)
            and offset == held[-1].offset + 1
        )

    def _begins(self, mark: Mark, offset: int) -> bool:
        """Whether a flight may begin here: with its first record, or where reading began.

        What was before the start is gone, or the caller that chose the start has looked at it.
        """
        return mark.place == 0 or offset == self._start

    def _drop(self, offset: int) -> None:
        """What is held does not go on here: it is void. All before the next record is decided."""
        self._flight, self._held = None, []
        self.settled = offset + 1


def flight_start(record: Raw) -> int:
    """Where to begin reading, to judge the flight that a record is in the middle of."""
    mark = unpack(record.key)
    if mark is None or mark.kind == BARRIER or not stands(mark, record.offset):
        return record.offset
    return record.offset - mark.place


def is_under_way(record: Raw) -> bool:
    """Whether the flight of a record may go on behind it."""
    mark = unpack(record.key)
    return mark is not None and stands(mark, record.offset) and mark.place + 1 < mark.records


class Reign:
    """Who writes a partition, by the records in their order: the epoch and how it was begun."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch
        self.barrier = 0  # the number of the barrier that began it; 0: not seen
        self.entries = 0  # records that stand at their places
        self.last_ms = 0

    def add(self, records: Iterable[Raw]) -> None:
        """Goes on with further records."""
        for offset, timestamp_ms, key, _ in records:
            mark = unpack(key)
            if mark is None:
                continue
            self.last_ms = max(self.last_ms, timestamp_ms)
            if mark.kind == BARRIER:
                if mark.epoch > self.epoch:
                    self.epoch, self.barrier = mark.epoch, mark.where
            elif stands(mark, offset):
                self.entries += 1
                self.epoch = max(self.epoch, mark.epoch)


def anchor(records: list[Raw]) -> int | None:
    """The index of the last record that proves the epoch at its place; None without one.

    A record of an epoch that stands where it was expected has no newer barrier before it. A barrier
    proves nothing by itself: it may be void.
    """
    for index in range(len(records) - 1, -1, -1):
        mark = unpack(records[index].key)
        if (
            mark is not None
            and mark.kind != BARRIER
            and mark.epoch > 0
            and stands(mark, records[index].offset)
        ):
            return index
    return None
