"""One segment file as it is read: its frames by partition, each checked as it is read."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.errors import DataLoss
from holdfast.journal.local.disk import Disk, File
from holdfast.journal.local.frame import (
    HEADER_BYTES,
    FrameFault,
    FrameHeader,
    Scan,
    decode_header,
    is_intact,
    scan,
)
from holdfast.journal.local.index import Points, Summary, index_of, load_points
from holdfast.journal.local.names import index_name, segment_name
from holdfast.limits import KIB

_WINDOW_BYTES_MIN = 4 * KIB  # when frames of a partition lie far apart, read little
_WINDOW_BYTES_MAX = 256 * KIB  # when they are neighbours, read much


class Frame(NamedTuple):
    """A frame in the bytes that were read."""

    header: FrameHeader
    data: bytes
    body_at: int


class Segment:
    """A segment; the file is opened and its points are loaded when they are needed first."""

    def __init__(
        self, disk: Disk, folder: str, summary: Summary, points: Points | None = None
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._file: File | None = None
        self._points = points
        self.summary = summary

    @property
    def sequence(self) -> int:
        return self.summary.sequence

    @property
    def path(self) -> str:
        return f"{self._folder}/{segment_name(self.sequence)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    @property
    def points(self) -> Points:
        if self._points is None:
            self._points = self._load_points() or self._rebuild_points()
        return self._points

    def release(self) -> None:
        """Gives back what can be had again: the file and, with an index file, the points."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._points = None

    def add(self, headers: Sequence[FrameHeader]) -> None:
        """Makes frames visible that were written behind the others."""
        self.points.add(headers)
        self.summary.add(headers)

    def unread(self, end: int) -> list[FrameHeader]:
        """The frames that another process wrote since, as far as `end`, where the last one ends."""
        headers, fault = self.unread_at_most(end)
        if fault is not None:
            raise damaged(self.path, fault.position, fault.reason)
        return headers

    def unread_at_most(self, end: int) -> tuple[list[FrameHeader], FrameFault | None]:
        """The frames that another process wrote since, and what stands behind them before `end`."""
        start = self.summary.end
        found = scan(self.file.read(start, end - start), self.sequence, start)
        return found.headers, found.fault

    def scan(self) -> Scan:
        """Walks the whole file, checking every byte."""
        return scan(self.file.read(0, self.file.size_bytes()), self.sequence)

    def frames_from(self, partition: int, offset: int) -> Iterator[Frame]:
        """The partition's frames from the one that holds an offset on."""
        points = self.points.by_partition[partition]
        position = points.positions[points.by_offset(offset)]
        for frame in self._walk(partition, position):
            if frame.header.next_offset > offset:
                yield frame

    def first_at(self, partition: int, timestamp_ms: int) -> int | None:
        """The partition's first offset in this segment that was written at or after a time."""
        points = self.points.by_partition[partition]
        position = points.positions[points.by_time(timestamp_ms)]
        for frame in self._walk(partition, position):
            if frame.header.timestamp_ms >= timestamp_ms:
                return frame.header.first_offset
        return None

    def _walk(self, partition: int, position: int) -> Iterator[Frame]:
        points = self.points.by_partition[partition]
        window = _Window(self.file, self.summary.end)
        while position < self.summary.end:
            data, at = window.at(position, HEADER_BYTES)
            header = decode_header(data, at, self.sequence, position)
            if header is None:
                raise damaged(self.path, position, "there is no intact header")
            position = header.end
            if header.partition != partition:
                continue
            data, at = window.at(header.body_position, header.body_bytes)
            if not is_intact(data, at, header):
                raise damaged(
                    self.path,
                    header.position,
                    "the body does not match its checksum",
                    header.first_offset,
                )
            yield Frame(header, data, at)
            if header.next_offset >= self.summary.next[partition]:
                return
            position = points.position_of(header.next_offset) or position

    def _load_points(self) -> Points | None:
        try:
            file = self._disk.open(f"{self._folder}/{index_name(self.sequence)}")
        except FileNotFoundError:
            return None
        try:
            return load_points(file)
        finally:
            file.close()

    def _rebuild_points(self) -> Points:
        found = scan(self.file.read(0, self.summary.end), self.sequence)
        if found.fault is not None:
            raise damaged(self.path, found.fault.position, found.fault.reason)
        return index_of(self.sequence, found.headers)[1]


class _Window:
    """The part of a file that was read last; it grows while the reading goes straight on."""

    def __init__(self, file: File, end: int) -> None:
        self._file = file
        self._end = end
        self._base = 0
        self._data = b""
        self._size_bytes = _WINDOW_BYTES_MIN

    def at(self, position: int, size_bytes: int) -> tuple[bytes, int]:
        """Bytes that hold a range of the file, and where in them the range begins."""
        window_end = self._base + len(self._data)
        if not self._base <= position <= position + size_bytes <= window_end:
            straight_on = self._base <= position <= window_end and self._data
            self._size_bytes = (
                min(2 * self._size_bytes, _WINDOW_BYTES_MAX) if straight_on else _WINDOW_BYTES_MIN
            )
            wanted_bytes = max(size_bytes, min(self._size_bytes, self._end - position))
            self._data = self._file.read(position, wanted_bytes)
            self._base = position
        return self._data, position - self._base


def damaged(path: str, position: int, reason: str, offset: int | None = None) -> DataLoss:
    """The error for bytes that are no longer what was written."""
    return DataLoss(
        f"expected an intact frame in {path} at byte {position}"
        f"{'' if offset is None else f' (offset {offset})'}, but {reason}; "
        "restore the file from a copy, or run `holdfast doctor` to see all damage",
        file=path,
        position=position,
        offset=offset,
    )
