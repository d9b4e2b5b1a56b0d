"""The packages of one publisher by offset: what all queues of its subscribers are views of.

There is one map for all subscribers. The tail follows the log; what is older is put in when
somebody looks at it, a part at a time. Entries are packed in blocks, about 80 bytes each, and the
blocks that were not looked at for longest are dropped: what is missing is read from the log again.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.content.messages import PackageAction
from holdfast.limits import (
    CONTENT_QUEUE_BLOCK_ENTRIES,
    CONTENT_QUEUE_BYTES_MAX,
    CONTENT_QUEUE_ENTRIES_MAX,
)

_BLOCK_BYTES = 500  # what a block takes beside its entries


class QueueEntry(NamedTuple):
    """A package as a queue shows it."""

    offset: int
    number: int
    package_id: str
    action: PackageAction | None  # None: nothing is known of it
    paths: list[str]
    size_bytes: int
    published_ms: int


class QueuePart(NamedTuple):
    """Entries of a queue, and where to look on."""

    entries: list[QueueEntry]
    next: int


_Packed = tuple[int, int, int, PackageAction | None, bytes, list[str]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


class _Block:
    """All entries from `start` up to `end`, packed."""

    __slots__ = ("data", "end", "ends", "number", "offsets", "published_ms", "start", "used")

    def __init__(self, start: int, end: int, entries: Sequence[QueueEntry]) -> None:
        self.start = start
        self.end = end
        self.used = 0
        self.offsets = array("q", [entry.offset for entry in entries])
        self.number = entries[0].number if entries else 0
        self.published_ms = entries[0].published_ms if entries else 0
        packed = [self._pack(entry) for entry in entries]
        self.data = b"".join(packed)
        self.ends = array("I")
        at = 0
        for each in packed:
            at += len(each)
            self.ends.append(at)

    def _pack(self, entry: QueueEntry) -> bytes:
        return _encode((
            entry.number - self.number, entry.published_ms - self.published_ms, entry.size_bytes,
            entry.action, _short(entry.package_id), entry.paths,
        ))  # fmt: skip

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        return _BLOCK_BYTES + len(self.data) + 12 * len(self.offsets)

    def read(self, offset: int, limit: int) -> QueuePart:
        first = bisect_left(self.offsets, offset)
        last = min(first + limit, len(self.offsets))
        entries = [self._entry(at) for at in range(first, last)]
        whole = last == len(self.offsets)
        return QueuePart(entries, self.end if whole else self.offsets[last])

    def _entry(self, at: int) -> QueueEntry:
        begin = self.ends[at - 1] if at else 0
        number, ms, size_bytes, action, short, paths = _decode(self.data[begin : self.ends[at]])
        return QueueEntry(
            self.offsets[at], self.number + number, _long(short), action, paths, size_bytes,
            self.published_ms + ms,
        )  # fmt: skip


class OffsetMap:
    """Packages in the order of their offsets, with parts that are not kept."""

    def __init__(
        self,
        start: int = 0,
        entries_max: int = CONTENT_QUEUE_ENTRIES_MAX,
        bytes_max: int = CONTENT_QUEUE_BYTES_MAX,
    ) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._blocks: list[_Block] = []
        self._starts: list[int] = []
        self._tail: list[QueueEntry] = []  # not packed yet; from `_tail_start` to the log's end
        self._tail_start = start
        self._looks = 0
        self._packed_entries = 0
        self.size_bytes = 0  # of the packed entries

    def __len__(self) -> int:
        return self._packed_entries + len(self._tail)

    def append(self, entry: QueueEntry) -> None:
        """The next package of the publisher."""
        assert not self._tail or entry.offset > self._tail[-1].offset, "offsets only go up"
        assert entry.offset >= self._tail_start, "the tail follows the log"
        self._tail.append(entry)
        if len(self._tail) >= CONTENT_QUEUE_BLOCK_ENTRIES:
            end = entry.offset + 1
            self._insert(_Block(self._tail_start, end, self._tail))
            self._tail, self._tail_start = [], end

    def read(self, offset: int, limit: int) -> QueuePart | None:
        """Entries from an offset on, of one block; None if they are not kept."""
        if offset >= self._tail_start:
            first = bisect_left(self._tail, offset, key=_offset)
            entries = self._tail[first : first + limit]
            behind = first + len(entries)
            end = self._tail[behind].offset if behind < len(self._tail) else END
            return QueuePart(entries, end)
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or offset >= self._blocks[at].end:
            return None
        self._looks += 1
        self._blocks[at].used = self._looks
        return self._blocks[at].read(offset, limit)

    def gap_end(self, offset: int) -> int:
        """Where a part that is not kept ends, from one of its offsets."""
        at = bisect_right(self._starts, offset)
        return self._starts[at] if at < len(self._starts) else self._tail_start

    def fill(self, start: int, end: int, entries: Sequence[QueueEntry]) -> None:
        """Keeps a part: all packages of the publisher from `start` up to `end`."""
        end = min(end, self.gap_end(start))
        assert self.read(start, 1) is None, "a part that is kept is not filled again"
        found = [entry for entry in entries if start <= entry.offset < end]
        for at in range(0, max(len(found), 1), CONTENT_QUEUE_BLOCK_ENTRIES):
            some = found[at : at + CONTENT_QUEUE_BLOCK_ENTRIES]
            behind = at + CONTENT_QUEUE_BLOCK_ENTRIES
            block_end = found[behind].offset if behind < len(found) else end
            self._insert(_Block(start, block_end, some))
            start = block_end

    def _insert(self, block: _Block) -> None:
        at = bisect_right(self._starts, block.start)
        self._blocks.insert(at, block)
        self._starts.insert(at, block.start)
        self._looks += 1
        block.used = self._looks
        self._packed_entries += len(block)
        self.size_bytes += block.size_bytes
        while (
            self._packed_entries > self._entries_max or self.size_bytes > self._bytes_max
        ) and len(self._blocks) > 1:
            self._drop(min(range(len(self._blocks)), key=lambda each: self._blocks[each].used))

    def _drop(self, at: int) -> None:
        dropped = self._blocks.pop(at)
        del self._starts[at]
        self._packed_entries -= len(dropped)
        self.size_bytes -= dropped.size_bytes


END = 2**63 - 1  # behind everything: the tail has all there is


def _offset(entry: QueueEntry) -> int:
    return entry.offset


def _short(package_id: str) -> bytes:
    """An id of 32 hexadecimal digits is 16 bytes; any other is its text, and never 16 bytes."""
    if len(package_id) == 32:
        try:
            packed = bytes.fromhex(package_id)
        except ValueError:
            packed = b""
        if packed.hex() == package_id:
            return packed
    text = package_id.encode()
    return b"\0" + text if len(text) == 16 or text[:1] == b"\0" else text


def _long(short: bytes) -> str:
    if len(short) == 16:
        return short.hex()
    return (short[1:] if short[:1] == b"\0" else short).decode()
