"""The order of everything: the sequence id of every entry, derived from cuts alone.

Cuts come one after the other; inside a cut its logs are sorted by their key, and the entries of a
log keep their order. So the first id of a cut is the number of entries in all cuts before it, which
is the sum of the positions as of the cut before: nothing has to be stored.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cuts import follow


class Ordered(NamedTuple):
    """Entries of one log in one cut: they have consecutive offsets and consecutive ids."""

    key: LogKey
    offset: int  # of the first
    entries: int
    id: int  # of the first
    cut: int


def first_id(before: CutPositions) -> int:
    """The sequence id of the first entry behind a cut."""
    return sum(before.offsets.values())


def ordered(before: CutPositions, cut: Cut) -> Iterator[Ordered]:
    """What a cut orders, in its order."""
    assert cut.number == before.number + 1, (before.number, cut.number)
    number = first_id(before)
    for key in sorted(cut.grown):
        count = cut.grown[key]
        yield Ordered(key, before.offsets.get(key, 0), count, number, cut.number)
        number += count


class TotalOrder:
    """Ids of entries and entries of ids, over the cuts that it was given, one after the other."""

    def __init__(self, before: CutPositions) -> None:
        self.before = before  # the cut that it begins behind
        self.at = before
        self._spans: list[Ordered] = []
        self._ids: list[int] = []
        self._by_log: dict[LogKey, tuple[list[int], list[Ordered]]] = {}  # by first offset

    def extend(self, cut: Cut) -> None:
        """Takes the next cut."""
        for span in ordered(self.at, cut):
            self._spans.append(span)
            self._ids.append(span.id)
            offsets, spans = self._by_log.setdefault(span.key, ([], []))
            offsets.append(span.offset)
            spans.append(span)
        self.at = follow(self.at, cut)

    def id_of(self, key: LogKey, offset: int) -> int | None:
        """The sequence id of an entry; None if it is in none of these cuts."""
        span = self.span_of(key, offset)
        return None if span is None else span.id + offset - span.offset

    def span_of(self, key: LogKey, offset: int) -> Ordered | None:
        """The span, and so the cut, that an entry is in; None if it is in none of these cuts."""
        offsets, spans = self._by_log.get(key, ([], []))
        found = bisect_right(offsets, offset) - 1
        if found < 0 or offset >= spans[found].offset + spans[found].entries:
            return None
        return spans[found]

    def entry_of(self, sequence_id: int) -> tuple[LogKey, int] | None:
        """The log and offset of a sequence id; None if it is in none of these cuts."""
        found = bisect_right(self._ids, sequence_id) - 1
        if found < 0:
            return None
        span = self._spans[found]
        past = sequence_id - span.id
        return (span.key, span.offset + past) if past < span.entries else None

    def spans(self) -> Iterator[Ordered]:
        """Everything that is ordered, in order."""
        return iter(self._spans)
