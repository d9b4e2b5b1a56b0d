"""Which jobs wait for a worker: a bit for each job, sixty-four to a row.

The jobs of a row have the same type and priority, and keys that differ in their last six bits only.
Jobs that are made together have neighbouring keys, so a deep queue is written, read and deleted at
a sixty-fourth of what a row for each job would cost. Which row a job is in follows from its key:
that state does not depend on when it was written.
"""

from collections.abc import Iterable, Iterator, Mapping

from holdfast.engine.families import Tag
from holdfast.limits import WAITING_ROWS_REPACKED
from holdfast.state import PartitionState
from holdfast.state.keys import TEXT_U32_U64, check_u32

_KEY_BITS = 6
_JOBS = 1 << _KEY_BITS
_LAST_BITS = _JOBS - 1
_ALL = (1 << _JOBS) - 1
_NUMBER_TOP = 1 << (64 - _KEY_BITS)  # no row has this number
_PRIORITY_TOP = 1 << 31  # priorities are stored upside down, so that the highest is scanned first

# Rows that are looked at for so many jobs: with a sixteenth, every fourth key is that of a job.
_JOBS_A_ROW = 16
_ROWS_SPARE = 4

_Row = tuple[str, int, int]
"""Type, place by priority, and the first bits of the keys."""


class WaitingJobs:
    """The queue of each type of jobs, the most urgent first."""

    def __init__(self, state: PartitionState) -> None:
        self._rows = state.family(Tag.JOBS_WAITING_ROWS, TEXT_U32_U64, int)
        self._single = state.family(Tag.JOBS_WAITING, TEXT_U32_U64, bytes)
        self._tally = state.tally(Tag.JOBS_WAITING_COUNTS)  # by type
        # Where the first waiting job of a type can be at the earliest: keeps a scan from walking
        # over the graves of those that were taken before.
        self._first: dict[str, _Row] = {}
        state.when_undone(self._first.clear)

    # --- what can be asked --------------------------------------------------------------------

    @property
    def counts(self) -> Mapping[str, int]:
        """How many jobs wait, by type."""
        return self._tally.counts

    def has(self, type_: str) -> bool:
        """Whether a job of a type waits."""
        return self._tally.counts.get(type_, 0) > 0

    def next(self, type_: str, limit: int) -> list[int]:
        """The keys of the next jobs of a type, most urgent first."""
        limit = min(limit, self._tally.counts.get(type_, 0))
        if limit <= 0:
            return []
        start, rows_max = self._first.get(type_), limit // _JOBS_A_ROW + _ROWS_SPARE
        found: list[int] = []
        while True:
            rows = self._rows.first_keys((type_,), start, rows_max)
            if rows and not found:
                self._first[type_] = rows[0]
            for row, bits in zip(rows, self._rows.get_many(rows), strict=True):
                found += _keys(row, bits or 0)
                if len(found) >= limit:
                    return found[:limit]
            if len(rows) < rows_max:
                return found
            start = _behind(rows[-1])

    def firsts(self, type_: str, limit: int) -> Iterator[list[int]]:
        """The keys of the first jobs of each priority, the highest priority first."""
        start = self._first.get(type_)
        while rows := self._rows.first_keys((type_,), start, limit):
            if start is None:
                self._first[type_] = rows[0]
            place = rows[0][1]
            same = [row for row in rows if row[1] == place]
            keys: list[int] = []
            for row, bits in zip(same, self._rows.get_many(same), strict=True):
                keys += _keys(row, bits or 0)
            yield keys[:limit]
            start = (type_, place, _NUMBER_TOP)

    # --- what appliers change -----------------------------------------------------------------

    def add(self, type_: str, priority: int, key: int) -> None:
        """A job waits from now on."""
        place, bit = _PRIORITY_TOP - priority, 1 << (key & _LAST_BITS)
        check_u32(place)
        row = (type_, place, key >> _KEY_BITS)
        bits = self._rows.add(row, bit)
        assert bits & bit, "a job begins to wait that waits already"
        if bits == bit:  # it is the only one of its row
            first = self._first.get(type_)
            if first is not None and row < first:
                self._first[type_] = row
        self._tally.add(type_, 1)

    def remove(self, type_: str, priority: int, key: int) -> None:
        """A job that waited does so no longer."""
        row = (type_, _PRIORITY_TOP - priority, key >> _KEY_BITS)
        self._remove(row, 1 << (key & _LAST_BITS))

    def take(self, type_: str, priority: int, keys: tuple[int, ...]) -> None:
        """Jobs that waited, in the order of their keys, go to a worker."""
        place = _PRIORITY_TOP - priority
        number, bits = keys[0] >> _KEY_BITS, 0
        if self._first.get(type_) == (type_, place, number):
            # A worker gets all jobs from the first on: those between these go with other leases.
            self._first[type_] = (type_, place, keys[-1] >> _KEY_BITS)
        for key in keys:
            if key >> _KEY_BITS != number:
                self._remove((type_, place, number), bits)
                number, bits = key >> _KEY_BITS, 0
            bits |= 1 << (key & _LAST_BITS)
        self._remove((type_, place, number), bits)

    def _remove(self, row: _Row, bits: int) -> None:
        there = self._rows.get(row)
        assert there is not None, "jobs of a row that is not there stop waiting"
        assert there & bits == bits, "a job stops waiting that did not wait"
        if left := there ^ bits:
            self._rows.put(row, left)
        else:
            self._rows.delete(row)
        self._tally.add(row[0], -bits.bit_count())

    # --- what an earlier version wrote --------------------------------------------------------

    def repack(self) -> Iterator[None]:
        """Puts jobs that have a row each, as in folders of format 1, into rows of many."""
        start: _Row | None = None
        while rows := self._single.first_keys((), start, WAITING_ROWS_REPACKED):
            for row in rows:
                type_, place, key = row
                packed = (type_, place, key >> _KEY_BITS)
                bits = self._rows.get(packed) or 0
                self._rows.put(packed, bits | 1 << (key & _LAST_BITS))
                self._single.delete(row)
            yield
            type_, place, key = rows[-1]
            start = (type_, place, key + 1)

    def count(self) -> None:
        """Counts the jobs of a state that an earlier version has written without counts."""
        for (type_, _, _), bits in self._rows.scan():
            self._tally.add(type_, bits.bit_count())


def check_priority(priority: int) -> None:
    """Raises unless a job of this priority can wait."""
    check_u32(_PRIORITY_TOP - priority)


def _behind(row: _Row) -> _Row:
    type_, place, number = row
    return type_, place, number + 1


def _keys(row: _Row, bits: int) -> Iterable[int]:
    """The keys of the jobs of a row, in order."""
    first = row[2] << _KEY_BITS
    if bits == _ALL:
        return range(first, first + _JOBS)
    keys: list[int] = []
    while bits:
        lowest = bits & -bits
        keys.append(first + lowest.bit_length() - 1)
        bits ^= lowest
    return keys
