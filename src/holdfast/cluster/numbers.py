"""What a member of a cluster counts of moves and take-overs."""

from collections import deque

_KEPT = 1_000  # durations of take-overs, for their percentiles: 8 KB


class ClusterNumbers:
    """Counted since the start."""

    def __init__(self) -> None:
        self.take_overs = 0
        self.moves = 0  # planned ones, away from here
        self.take_over_seconds: deque[float] = deque(maxlen=_KEPT)

    def taken_over(self, seconds: float) -> None:
        """A partition was taken from an owner that was gone."""
        self.take_overs += 1
        self.take_over_seconds.append(seconds)
