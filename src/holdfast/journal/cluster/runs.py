"""Where the entries of ranges are in the log of one disk. Pure.

The log of a disk takes entries in the order of their arrival: those of a range may come in several
runs, with entries of other ranges between them. A run is noted before its first entry is written,
with the physical offset of that entry; it ends where the next run begins, or the log.
"""

from typing import NamedTuple

from holdfast.sequence.api import Chain


class Run(NamedTuple):
    """Consecutive entries of one range at consecutive physical offsets."""

    epoch: int
    number: int  # of its first entry, within the range
    physical: int  # the offset of its first entry in the log of the disk


class RunPiece(NamedTuple):
    """Entries of a range that can be read in one go."""

    physical: int
    length: int


class LogRuns:
    """The runs of one topic's partition, in the order in which they were written."""

    def __init__(self, following: int = 0, runs: list[Run] | None = None) -> None:
        self.following = following  # the physical offset of the next entry
        self.runs: list[Run] = [] if runs is None else runs

    def counts(self) -> dict[int, int]:
        """By epoch, how many entries are here, with those below a jump."""
        counts: dict[int, int] = {}
        for at, run in enumerate(self.runs):
            count = run.number + self._end(at) - run.physical
            counts[run.epoch] = max(counts.get(run.epoch, 0), count)
        return counts

    def goes_on(self, epoch: int, number: int) -> bool:
        """Whether an entry can be written without a new run."""
        if not self.runs:
            return False
        run = self.runs[-1]
        return run.epoch == epoch and self.following - run.physical == number - run.number

    def begin(self, epoch: int, number: int) -> None:
        """Begins a run, in the place of an empty one of the same range."""
        if self.runs and self.runs[-1].physical >= self.following and self.runs[-1].epoch == epoch:
            self.runs.pop()
        self.runs.append(Run(epoch, number, self.following))

    def add(self, count: int) -> int:
        """Entries follow in the last run; the physical offset of the first."""
        physical, self.following = self.following, self.following + count
        return physical

    def find(self, epoch: int, number: int) -> RunPiece | None:
        """Where an entry of a range is, and how many follow it there; None if it is not here."""
        for at in range(len(self.runs) - 1, -1, -1):  # what was written last is asked for most
            run = self.runs[at]
            if run.epoch == epoch and run.number <= number:
                physical = run.physical + number - run.number
                if (end := self._end(at)) > physical:
                    return RunPiece(physical, end - physical)
        return None

    def free(self, chain: Chain, topic: str, before: int) -> int:
        """The physical offset below which nothing is needed from a logical offset on.

        Entries at or behind the end of their closed range are void and not needed. Those of ranges
        that the chain does not know yet are.
        """
        spans = spans_of(chain, topic)
        for at, run in enumerate(self.runs):
            end = self._end(at)
            if run.epoch in spans:
                span = spans[run.epoch]
                first_needed = max(before - span.start, run.number)
                last = run.number + end - run.physical
                if span.length is not None:
                    last = min(last, span.length)
                if first_needed >= last:
                    continue
                return run.physical + first_needed - run.number
            if run.epoch > chain.epoch and end > run.physical:
                return run.physical
        return self.following

    def dropped(self, chain: Chain, topic: str, physical: int) -> int:
        """The logical offset below which entries are gone, if the log begins at a physical one."""
        spans, gone = spans_of(chain, topic), 0
        for at, run in enumerate(self.runs):
            end = min(self._end(at), physical)
            if end > run.physical and run.epoch in spans:
                span = spans[run.epoch]
                number = run.number + end - run.physical
                gone = max(
                    gone, span.start + (number if span.length is None else min(number, span.length))
                )
        return gone

    def lost(self, following: int) -> bool:
        """What was on its way to the disk did not get there; whether runs are to be noted anew."""
        self.following = following
        before = len(self.runs)
        self.runs[:] = [run for run in self.runs if run.physical <= following]
        return len(self.runs) < before

    def forget(self, earliest: int) -> bool:
        """Drops the oldest runs of which nothing is left; whether there were any.

        The last ones of the two newest epochs stay: they say how far a range has come that may
        still be fenced.
        """
        newest = max((run.epoch for run in self.runs), default=0)
        gone = 0
        while gone < len(self.runs) and self._end(gone) <= earliest:
            epoch = self.runs[gone].epoch
            if epoch >= newest - 1 and all(run.epoch != epoch for run in self.runs[gone + 1 :]):
                break
            gone += 1
        del self.runs[:gone]
        return gone > 0

    def _end(self, at: int) -> int:
        return self.runs[at + 1].physical if at + 1 < len(self.runs) else self.following


class RangeSpan(NamedTuple):
    """The logical offsets of a range."""

    start: int
    length: int | None  # None while it is open


def spans_of(chain: Chain, topic: str) -> dict[int, RangeSpan]:
    """The offsets of a topic's ranges, by epoch."""
    starts = [each.starts.get(topic, 0) for each in chain.ranges]
    ends: list[int | None] = [*starts[1:], None]
    return {
        each.epoch: RangeSpan(start, None if end is None else end - start)
        for each, start, end in zip(chain.ranges, starts, ends, strict=False)
    }
