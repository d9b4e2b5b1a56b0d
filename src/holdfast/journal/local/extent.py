"""The files of a journal as of one moment, for a copy of them that begins where they end."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.journal.api import Retention
from holdfast.journal.local.disk import RealDisk
from holdfast.journal.local.mark import MARK_BYTES, DurableMark, encode_mark
from holdfast.journal.local.names import (
    DURABLE,
    EARLIEST,
    EPOCHS,
    Settings,
    segment_name,
    store_settings,
)
from holdfast.journal.local.numbers import PartitionNumbers, file_bytes
from holdfast.journal.local.view import TopicView


class SegmentExtent(msgspec.Struct, frozen=True, array_like=True):
    """A segment, as far as it is durable. These bytes do not change while the file is there."""

    sequence: int
    end: int

    @property
    def name(self) -> str:
        return segment_name(self.sequence)


class TopicExtent(msgspec.Struct, frozen=True):
    """What a topic has at one moment: every append that was acknowledged, and no other."""

    partitions: int
    retention: Retention
    earliest: list[int]  # the first offset that is not discarded, of each partition
    epochs: list[int]  # the newest that each partition was written in
    segments: list[SegmentExtent]


class Pinned:
    """A journal at one moment; its segments are not removed or used again before `release`."""

    def __init__(self, extents: dict[str, TopicExtent], release: Callable[[], None]) -> None:
        self.extents = extents
        self.release = release


def extent_of(settings: Settings, view: TopicView) -> TopicExtent:
    """A topic that is open, now."""
    segments = [SegmentExtent(each.sequence, each.summary.end) for each in view.segments]
    return TopicExtent(
        settings.partitions, settings.retention, view.earliest[1:], view.epochs[1:], segments
    )


def lay_out(folder: Path, extent: TopicExtent) -> None:
    """Makes a topic of segments that are in a folder.

    The settings come last, and with them it is there. The next open scans the segments,
    checks every byte, and writes their indexes.
    """
    disk, root, last = RealDisk(), str(folder), extent.segments[-1]
    file = disk.create(f"{root}/{DURABLE}", MARK_BYTES)
    mark = DurableMark(file)
    mark.store(encode_mark(last.sequence, last.end))
    mark.sync()
    mark.close()
    for name, numbers in ((EARLIEST, extent.earliest), (EPOCHS, extent.epochs)):
        file = disk.create(f"{root}/{name}", file_bytes(extent.partitions))
        written = PartitionNumbers(file, extent.partitions, f"{root}/{name}")
        written.store(numbers)
        written.close()
    disk.sync_folder(root)
    store_settings(disk, root, Settings(extent.partitions, extent.retention))
