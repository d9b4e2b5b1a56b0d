"""A topic as it can be read: bounds, entries by offset, offsets by time, over all its segments."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import NamedTuple

from holdfast.journal.api import Bounds, Entry
from holdfast.journal.checks import check_offset, check_partition
from holdfast.journal.local.frame import LINK_PARTITION, FrameHeader, payload_ends, payloads
from holdfast.journal.local.segment import Frame, Segment
from holdfast.limits import SEGMENTS_OPEN_MAX


class WrittenAppend(NamedTuple):
    """One append as the log has it; of one that was discarded in part, the rest."""

    offset: int  # of its first entry
    timestamp_ms: int
    epoch: int
    entries: list[bytes]


class TopicView:
    """The readable segments of a topic, oldest first."""

    def __init__(self, topic: str, partitions: int, earliest: Sequence[int]) -> None:
        self.topic = topic
        self.partitions = partitions
        self.earliest = [0, *earliest]  # partitions count from 1
        self.next = [0, *earliest]
        self.epochs = [0] * (partitions + 1)  # the newest that each partition was written in
        self.segments: list[Segment] = []
        self._segments_of: list[list[Segment]] = [[] for _ in range(partitions + 1)]
        self._opened: OrderedDict[int, Segment] = OrderedDict()

    def add_segment(self, segment: Segment) -> None:
        """Makes a segment readable that follows the others."""
        self.segments.append(segment)
        for partition, following in segment.summary.next.items():
            self._segments_of[partition].append(segment)
            self.next[partition] = max(self.next[partition], following)
        for partition, epoch in segment.summary.epoch.items():
            self.epochs[partition] = max(self.epochs[partition], epoch)

    def add_frames(self, headers: Sequence[FrameHeader]) -> None:
        """Makes frames readable that were written to the last segment."""
        last = self.segments[-1]
        begun, following, epochs = last.summary.first, self.next, self.epochs
        for _, _, offset, _, _, epoch, _, _, count, partition in headers:
            if partition != LINK_PARTITION:
                if partition not in begun and self._segments_of[partition][-1:] != [last]:
                    self._segments_of[partition].append(last)
                following[partition] = offset + count
                epochs[partition] = epoch
        last.add(headers)

    def drop_oldest(self) -> Segment:
        """Forgets the oldest segment, whose offsets are no longer readable from now on."""
        segment = self.segments.pop(0)
        for partition, following in segment.summary.next.items():
            self._segments_of[partition].pop(0)
            self.earliest[partition] = max(self.earliest[partition], following)
        self._opened.pop(segment.sequence, None)
        segment.release()
        return segment

    def oldest_is_discarded(self) -> bool:
        """Whether nothing in the oldest segment can be read any more; the last one is kept."""
        return len(self.segments) > 1 and all(
            following <= self.earliest[partition]
            for partition, following in self.segments[0].summary.next.items()
        )

    def bounds(self, partition: int) -> Bounds:
        check_partition(self.topic, partition, self.partitions)
        return Bounds(self.earliest[partition], self.next[partition])

    def read(
        self, partition: int, offset: int, bytes_max: int, end: int | None = None, shift: int = 0
    ) -> list[Entry]:
        """Entries from an offset on, until they are `bytes_max` together, or up to an end.

        They are given out with offsets that are shifted.
        """
        bounds = self.bounds(partition)
        check_offset(self.topic, partition, offset, bounds)
        entries: list[Entry] = []
        left_bytes = bytes_max
        end = bounds.next if end is None else end
        while offset < end:
            for frame in self._segment_of(partition, offset).frames_from(partition, offset):
                least = 0 if entries else 1
                taken, taken_bytes = _entries_of(frame, offset, left_bytes, least, shift)
                entries += taken
                offset += len(taken)
                left_bytes -= taken_bytes
                if offset > end:
                    del entries[end - offset :]
                if offset < frame.header.next_offset or left_bytes <= 0 or offset >= end:
                    return entries
        return entries

    def appends(self, partition: int, offset: int, bytes_max: int) -> list[WrittenAppend]:
        """Whole appends from an offset on, until they are `bytes_max` together."""
        bounds = self.bounds(partition)
        check_offset(self.topic, partition, offset, bounds)
        found: list[WrittenAppend] = []
        left_bytes = bytes_max
        while offset < bounds.next:
            for header, data, body_at in self._segment_of(partition, offset).frames_from(
                partition, offset
            ):
                entries = payloads(data, body_at, header)[offset - header.first_offset :]
                found.append(WrittenAppend(offset, header.timestamp_ms, header.epoch, entries))
                offset = header.next_offset
                left_bytes -= header.body_bytes
                if left_bytes <= 0:
                    return found
        return found

    def offset_at(self, partition: int, timestamp_ms: int) -> int:
        """The first readable offset written at or after a time; `next` if there is none."""
        bounds = self.bounds(partition)
        segments = self._segments_of[partition]
        # Timestamps of a topic never go back, so the segments' last times are in order.
        for segment in segments[_first_reaching(segments, timestamp_ms) :]:
            offset = self._touch(segment).first_at(partition, timestamp_ms)
            if offset is not None:
                return max(offset, bounds.earliest)
        return bounds.next

    def close(self) -> None:
        for segment in self.segments:
            segment.release()

    def _segment_of(self, partition: int, offset: int) -> Segment:
        segments = self._segments_of[partition]
        number = bisect_right(segments, offset, key=lambda each: each.summary.first[partition])
        return self._touch(segments[number - 1])

    def _touch(self, segment: Segment) -> Segment:
        """Keeps a segment open, and closes the one that was longest not read."""
        self._opened[segment.sequence] = segment
        self._opened.move_to_end(segment.sequence)
        if len(self._opened) > SEGMENTS_OPEN_MAX:
            _, oldest = self._opened.popitem(last=False)
            if oldest is not self.segments[-1]:
                oldest.release()
        return segment


def _first_reaching(segments: list[Segment], timestamp_ms: int) -> int:
    return bisect_right(segments, timestamp_ms - 1, key=lambda each: each.summary.last_ms)


def _entries_of(
    frame: Frame, offset: int, bytes_max: int, least: int, shift: int
) -> tuple[list[Entry], int]:
    """A frame's entries from an offset on, up to `bytes_max` but not fewer than `least`."""
    header, data, body_at = frame
    ends = payload_ends(data, body_at, header)
    first = max(0, offset - header.first_offset)
    last = max(first + least, bisect_right(ends, ends[first] + bytes_max) - 1)
    payloads = [data[start:end] for start, end in pairwise(ends[first : last + 1])]
    first_offset = header.first_offset + shift
    offsets = range(first_offset + first, first_offset + last)
    entries = list(map(Entry, offsets, repeat(header.timestamp_ms), payloads))
    return entries, ends[last] - ends[first]
