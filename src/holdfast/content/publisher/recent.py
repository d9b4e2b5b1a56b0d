"""The entries of a topic that were read just now, for readers that follow one another.

A hundred subscribers read the same packages within a second or so. The first one makes the node
read them from the log; the others are given the same objects.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from holdfast.content.ports import TopicEntry
from holdfast.limits import READ_BYTES_MAX

ENTRY_BYTES = 200  # what an entry takes in memory beside its payload


class _Block:
    """Neighbouring entries, and the offsets that they are all there is of: start <= ... < end."""

    __slots__ = ("end", "ends_bytes", "entries", "offsets", "start", "used")

    def __init__(self, start: int, end: int, entries: list[TopicEntry]) -> None:
        self.start = start
        self.end = end
        self.entries = entries
        self.offsets = [entry[0] for entry in entries]
        self.ends_bytes = list(accumulate(len(entry[2]) for entry in entries))
        self.used = 0

    @property
    def payload_bytes(self) -> int:
        return self.ends_bytes[-1] if self.ends_bytes else 0

    @property
    def size_bytes(self) -> int:
        return self.payload_bytes + ENTRY_BYTES * len(self.entries)

    def extend(self, end: int, entries: list[TopicEntry]) -> None:
        at = self.payload_bytes
        for entry in entries:
            at += len(entry[2])
            self.ends_bytes.append(at)
            self.offsets.append(entry[0])
        self.entries += entries
        self.end = end

    def read(self, offset: int, bytes_max: int, least: int) -> tuple[list[TopicEntry], int, int]:
        """Entries from an offset on, where to read on, and how many bytes they have."""
        first = bisect_left(self.offsets, offset)
        if first == len(self.entries):
            return [], self.end, 0
        before_bytes = self.ends_bytes[first - 1] if first else 0
        last = max(first + least, bisect_right(self.ends_bytes, before_bytes + bytes_max))
        if last == len(self.entries):
            return self.entries[first:], self.end, self.payload_bytes - before_bytes
        found = self.entries[first:last]
        return found, self.offsets[last], sum(len(entry[2]) for entry in found)


class RecentEntries:
    """Blocks of entries in the order of offsets; those not used for longest are dropped."""

    def __init__(self, bytes_max: int, block_bytes: int = READ_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._block_bytes = block_bytes
        self._blocks: list[_Block] = []
        self._starts: list[int] = []
        self._reads = 0
        self.size_bytes = 0

    def read(self, offset: int, bytes_max: int) -> tuple[list[TopicEntry], int] | None:
        """Entries from an offset on, and where to read on; None if they are not kept."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or offset >= self._blocks[at].end:
            return None
        self._reads += 1
        found: list[TopicEntry] = []
        while bytes_max > 0 and at < len(self._blocks) and self._starts[at] <= offset:
            block = self._blocks[at]
            block.used = self._reads
            some, offset, some_bytes = block.read(offset, bytes_max, least=0 if found else 1)
            found += some
            bytes_max -= some_bytes
            at += 1
            if offset < block.end:
                break
        return found, offset

    def add(self, start: int, end: int, entries: Iterable[TopicEntry]) -> None:
        """Keeps all entries there are from `start` up to `end`."""
        at = bisect_right(self._starts, start)
        if at < len(self._blocks):
            end = min(end, self._starts[at])  # what follows is kept already
        if at and start < self._blocks[at - 1].end:
            start = self._blocks[at - 1].end
        if start >= end:
            return
        added = [entry for entry in entries if start <= entry[0] < end]
        before = self._blocks[at - 1] if at else None
        if before is not None and before.end == start and self._has_room(before, added):
            self.size_bytes -= before.size_bytes
            before.extend(end, added)
            block = before
        else:
            block = _Block(start, end, added)
            self._blocks.insert(at, block)
            self._starts.insert(at, start)
        self._reads += 1
        block.used = self._reads
        self.size_bytes += block.size_bytes
        self._drop_unused()

    def _has_room(self, block: _Block, added: list[TopicEntry]) -> bool:
        more_bytes = sum(len(entry[2]) for entry in added)
        return block.payload_bytes + more_bytes <= self._block_bytes

    def _drop_unused(self) -> None:
        while self.size_bytes > self._bytes_max and len(self._blocks) > 1:
            at = min(range(len(self._blocks)), key=lambda each: self._blocks[each].used)
            self.size_bytes -= self._blocks.pop(at).size_bytes
            del self._starts[at]
