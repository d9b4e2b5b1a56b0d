"""The index of a segment: which offsets of which partitions it holds, and sparsely, where.

The summary of every segment stays in memory: it says which segment holds an offset or a time. The
points say where in it; they are loaded when the segment is read. A sealed segment's index is a file
of two parts with a checksum each, so that a start reads the summaries alone.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec
from crc32c import crc32c

from holdfast.journal.local.disk import File
from holdfast.journal.local.frame import LINK_PARTITION, FrameHeader
from holdfast.limits import INDEX_INTERVAL_BYTES

_MAGIC = b"HFX1"
_PART = struct.Struct("<4sII")  # magic, bytes, CRC32C


class Summary(msgspec.Struct):
    """What a segment holds: enough to choose the segment for an offset or a time."""

    sequence: int
    end: int = 0  # where its last frame ends
    last_ms: int = 0  # the latest time of a frame; copies are not in the order of time
    first: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # by partition
    next: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # by partition
    epoch: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # the last, unless 0

    def add(self, headers: Sequence[FrameHeader]) -> None:
        """Takes frames up that follow the others."""
        first, following = self.first, self.next
        for _, _, offset, timestamp_ms, _, epoch, _, _, count, partition in headers:
            if partition != LINK_PARTITION:
                if partition not in first:
                    first[partition] = offset
                following[partition] = offset + count
                if epoch:
                    self.epoch[partition] = epoch
            if timestamp_ms > self.last_ms:
                self.last_ms = timestamp_ms
        if headers:
            self.end = headers[-1].end


class PartitionPoints:
    """Some frames of one partition, by offset and by time; the first frame is always among them."""

    __slots__ = ("offsets", "positions", "times_ms")

    def __init__(self, offsets: bytes = b"", times_ms: bytes = b"", positions: bytes = b"") -> None:
        self.offsets = array("Q", offsets)
        self.times_ms = array("Q", times_ms)
        self.positions = array("I", positions)

    def by_offset(self, offset: int) -> int:
        """The number of the last point at or before an offset."""
        return bisect_right(self.offsets, offset) - 1

    def by_time(self, timestamp_ms: int) -> int:
        """The number of a point before which every frame is older than a time."""
        return max(0, bisect_left(self.times_ms, timestamp_ms) - 1)

    def position_of(self, offset: int) -> int | None:
        """Where the frame that begins with an offset is, if it is one of the points."""
        number = bisect_left(self.offsets, offset)
        if number < len(self.offsets) and self.offsets[number] == offset:
            return self.positions[number]
        return None


class Points:
    """Where frames are in a segment: for each partition at most one point per interval."""

    def __init__(self) -> None:
        self.by_partition: dict[int, PartitionPoints] = {}

    def add(self, headers: Sequence[FrameHeader]) -> None:
        """Takes frames up that follow the others, if their partition's last point is far enough."""
        by_partition = self.by_partition
        for _, _, offset, timestamp_ms, _, _, position, _, _, partition in headers:
            points = by_partition.get(partition)
            if points is None:
                if partition == LINK_PARTITION:
                    continue
                points = by_partition[partition] = PartitionPoints()
            elif position - points.positions[-1] < INDEX_INTERVAL_BYTES:
                continue
            points.offsets.append(offset)
            points.times_ms.append(timestamp_ms)
            points.positions.append(position)


def index_of(sequence: int, headers: Sequence[FrameHeader]) -> tuple[Summary, Points]:
    """The index of frames that were found by a walk over their segment."""
    summary, points = Summary(sequence), Points()
    summary.add(headers)
    points.add(headers)
    return summary, points


def encode_index(summary: Summary, points: Points) -> bytes:
    """The contents of an index file."""
    places = {
        partition: (found.offsets.tobytes(), found.times_ms.tobytes(), found.positions.tobytes())
        for partition, found in points.by_partition.items()
    }
    return _encode_part(msgspec.msgpack.encode(summary)) + _encode_part(
        msgspec.msgpack.encode(places)
    )


def load_summary(file: File, sequence: int) -> Summary | None:
    """The first part of an index file; None if it is damaged or of another segment."""
    data = _read_part(file, 0)
    if data is None:
        return None
    try:
        summary = msgspec.msgpack.decode(data, type=Summary)
    except msgspec.MsgspecError:
        return None
    return summary if summary.sequence == sequence else None


def load_points(file: File) -> Points | None:
    """The second part of an index file; None if it is damaged."""
    summary = _read_part(file, 0)
    data = None if summary is None else _read_part(file, _PART.size + len(summary))
    if data is None:
        return None
    try:
        places = msgspec.msgpack.decode(data, type=dict[int, tuple[bytes, bytes, bytes]])
        points = Points()
        points.by_partition = {
            partition: PartitionPoints(*arrays) for partition, arrays in places.items()
        }
    except (msgspec.MsgspecError, ValueError):
        return None
    return points


def _encode_part(data: bytes) -> bytes:
    return _PART.pack(_MAGIC, len(data), crc32c(data)) + data


def _read_part(file: File, position: int) -> bytes | None:
    prefix = file.read(position, _PART.size)
    if len(prefix) < _PART.size:
        return None
    magic, size_bytes, crc = _PART.unpack(prefix)
    if magic != _MAGIC or size_bytes > file.size_bytes():
        return None
    data = file.read(position + _PART.size, size_bytes)
    return data if len(data) == size_bytes and crc32c(data) == crc else None
