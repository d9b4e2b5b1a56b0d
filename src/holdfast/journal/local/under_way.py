"""A commit on its way to the disk, and what is told of it once it is durable."""

from typing import NamedTuple

from holdfast.journal.api import Appended, Outcome
from holdfast.journal.local.disk import File
from holdfast.journal.local.frame import LINK_PARTITION, FrameHeader
from holdfast.journal.local.mark import encode_mark
from holdfast.journal.local.stage import Stage


class Told(NamedTuple):
    """What is told of a commit, and to whom."""

    outcomes: list[Outcome]  # the appends
    entry_count: int  # the observer
    mark: bytes  # the next start, and readers in other processes


class Commit:
    """A commit that has its place in a file."""

    __slots__ = ("_told", "file", "headers", "stage", "start")

    def __init__(self, stage: Stage, headers: list[FrameHeader], file: File, start: int) -> None:
        self.stage = stage
        self.headers = headers
        self.file = file
        self.start = start
        self._told: Told | None = None

    def told(self) -> Told:
        """What is told; it may be asked for before it is true."""
        if self._told is None:
            last = self.headers[-1]
            mark = encode_mark(last.sequence, last.end)
            self._told = Told(self.outcomes(), self.stage.entry_count, mark)
        return self._told

    def outcomes(self) -> list[Outcome]:
        """What became of each append."""
        outcomes: list[Outcome] = [
            Appended(each.first_offset, each.first_offset + each.entry_count)
            for each in self.headers
            if each.partition != LINK_PARTITION
        ]
        if self.stage.refused:
            for number, refused in sorted(self.stage.refused.items()):
                outcomes.insert(number, refused)
        return outcomes
