"""Where a processor stands in its log: by positions, which it counts, and by the journal's offsets.

Positions number the records of a partition without gaps. Offsets are the journal's: they only go
up. What ties the two together is kept here and nowhere else.
"""

from collections import deque
from collections.abc import Sequence

from holdfast.errors import DataLoss
from holdfast.records import Record
from holdfast.state import PartitionState


class LogStanding:
    """How far the log was read or written, and from where on it is needed."""

    def __init__(self, state: PartitionState) -> None:
        self.partition = state.partition
        self.state = state
        self._leftover: deque[Record] = deque()  # on the log, not processed yet
        # appends with commands that are not processed yet: their last position, their first offset
        self._held: deque[tuple[int, int]] = deque()
        self.next_offset = self.stored_offset  # where the log is read on, and appended to
        self.replayed_position = -1  # the last one that was read
        self._last_ms = 0  # the time of the last record

    @property
    def has_leftover(self) -> bool:
        """Whether commands on the log are still waiting to be processed."""
        return bool(self._leftover)

    @property
    def stored_offset(self) -> int:
        """Where the journal is read from to bring what the store has to the end of the log."""
        return self.state.stored_progress.replay_from

    @property
    def replay_offset(self) -> int:
        """Where the journal is read from to get all commands that are not processed yet."""
        return self._held[0][1] if self._held else self.next_offset

    def time_ms(self, clock_ms: int) -> int:
        """What time it is here: never before the last record, though the clock may be behind it.

        It may be after a move from a machine whose clock is ahead.
        """
        return max(clock_ms, self._last_ms)

    def turn_clock_back(self) -> None:
        """The clock was set by hand, as a test does: time need not go on from the last record."""
        self._last_ms = 0

    def _hold(self, last_position: int, first_offset: int) -> None:
        """Remembers where the journal has the commands that are not processed yet."""
        held, leftover = self._held, self._leftover
        held.append((last_position, first_offset))
        while held and not (leftover and held[0][0] >= leftover[0].position):
            held.popleft()

    def _check_no_gap(self, records: Sequence[Record], already: int) -> None:
        """Positions have no gaps, whatever the offsets do: a missing record is not passed over."""
        first, last = records[0].position, records[-1].position
        if first > already + 1 or last - first + 1 != len(records):
            raise DataLoss(
                f"Expected the records from {min(first, already + 1)} to {last} in the log of"
                f" partition {self.partition}, but some of them are missing; restore the journal"
                " from a copy",
                partition=self.partition,
            )
