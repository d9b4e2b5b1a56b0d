"""What is counted and measured of calls to etcd."""

from bisect import bisect_left
from collections.abc import Sequence

# Of the histogram: a guarded write takes 2 ms, a late tick begins at 62.
_BOUNDS_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class EtcdNumbers:
    """Plain counters, since the start."""

    def __init__(self) -> None:
        self.seconds = 0.0  # that calls took which were answered
        self.bounds_seconds: Sequence[float] = _BOUNDS_SECONDS
        self.buckets = [0] * (len(_BOUNDS_SECONDS) + 1)  # how many took up to so long, or longer
        self.failures = 0  # calls that were not answered, or refused
        self.unknowns = 0  # of them, writes that may have been done
        self.lapses = 0  # leases that ran out
        self.watches = 0  # begun: the first, and one for each that broke

    def answered(self, seconds: float) -> None:
        """A call was answered after so long."""
        self.seconds += seconds
        self.buckets[bisect_left(_BOUNDS_SECONDS, seconds)] += 1

    def failed(self, *, is_unknown: bool) -> None:
        """A call was not done, or nobody knows."""
        self.failures += 1
        self.unknowns += is_unknown
