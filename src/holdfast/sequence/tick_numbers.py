"""What a member counts of its part in the order, in plain integers."""

from bisect import bisect_left

from holdfast.limits import TICK_LATENESS_BUCKETS
from holdfast.sequence.api import Cut
from holdfast.sequence.cut_codec import encode_cut


class TickNumbers:
    """Counted since the member started."""

    def __init__(self) -> None:
        self.written = 0  # cuts that this member published
        self.beaten = 0  # attempts that somebody else was quicker than
        self.unknown = 0  # attempts whose answer was lost
        self.away = 0  # calls that the store did not answer
        self.late = 0  # cuts that came more than a tick after they were due
        self.jumps = 0  # times that cuts were missed for good
        self.lateness = [0] * (len(TICK_LATENESS_BUCKETS) + 1)  # cuts, by how late they were
        self.lateness_seconds = 0.0  # all together
        self.last: Cut | None = None  # that this member published

    def saw_written(self, cut: Cut, lateness: float, is_late: bool) -> None:
        """A cut was published this long after it was due."""
        self.written += 1
        self.late += is_late
        self.lateness[bisect_left(TICK_LATENESS_BUCKETS, lateness)] += 1
        self.lateness_seconds += lateness
        self.last = cut

    @property
    def cut_bytes(self) -> int:
        """The size of the last cut that this member published."""
        return 0 if self.last is None else len(encode_cut(self.last))
