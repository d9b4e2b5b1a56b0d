"""Reads everything that a journal holds and says what is damaged, for `holdfast doctor`."""

from collections.abc import Callable

import msgspec

from holdfast.errors import DataLoss
from holdfast.journal.local.disk import Disk, RealDisk
from holdfast.journal.local.earliest import EarliestOffsets
from holdfast.journal.local.frame import scan
from holdfast.journal.local.index import Summary, index_of
from holdfast.journal.local.mark import NOWHERE, DurableMark, Place
from holdfast.journal.local.names import (
    DURABLE,
    EARLIEST,
    Settings,
    index_sequences,
    load_settings,
    segment_sequences,
)
from holdfast.journal.local.recovery import check_continuity, load_sealed
from holdfast.journal.local.segment import Segment
from holdfast.journal.local.view import TopicView


class Damage(msgspec.Struct, frozen=True):
    """One thing that is not as it was written."""

    file: str
    position: int
    reason: str


class TopicReport(msgspec.Struct):
    """What was found in a topic."""

    topic: str
    partitions: int
    segments: int = 0
    entries: int = 0
    size_bytes: int = 0
    damage: list[Damage] = msgspec.field(default_factory=list[Damage])


Progress = Callable[[int, int], None]  # segments read, and how many there are


def verify(
    root: str, *, disk: Disk | None = None, progress: Progress | None = None
) -> list[TopicReport]:
    """Checks every durable byte of every topic; a writer may be at work meanwhile."""
    disk = disk or RealDisk()
    topics = {
        name: settings
        for name in disk.list(str(root))
        if (settings := load_settings(disk, f"{root}/{name}")) is not None
    }
    total = sum(len(segment_sequences(disk.list(f"{root}/{name}"))) for name in topics)
    done = 0

    def count_segment() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return [
        _verify_topic(disk, f"{root}/{name}", name, settings, count_segment)
        for name, settings in topics.items()
    ]


def _verify_topic(
    disk: Disk, folder: str, topic: str, settings: Settings, count_segment: Callable[[], None]
) -> TopicReport:
    report = TopicReport(topic, settings.partitions)
    mark = DurableMark(disk.open(f"{folder}/{DURABLE}"))
    earliest = EarliestOffsets(disk.open(f"{folder}/{EARLIEST}"), settings.partitions)
    try:
        durable = mark.load() or NOWHERE
        view = TopicView(topic, settings.partitions, earliest.load())
    finally:
        mark.close()
        earliest.close()
    names = disk.list(folder)
    indexed = index_sequences(names)
    segments: list[Segment] = []
    for sequence in segment_sequences(names):
        count_segment()
        if sequence <= durable.sequence:
            segment = Segment(disk, folder, Summary(sequence))
            try:
                _verify_segment(report, segment, durable, sequence in indexed)
            except FileNotFoundError:  # the writer removed it meanwhile
                continue
            segments.append(segment)
            if sequence in indexed and load_sealed(disk, folder, sequence) != segment.summary:
                reason = "the index does not agree with the segment; the next start rebuilds it"
                report.damage.append(Damage(segment.path, 0, reason))
    try:
        check_continuity(view, segments)
    except DataLoss as gap:
        report.damage.append(Damage(gap.fields["file"], 0, gap.message))
    return report


def _verify_segment(report: TopicReport, segment: Segment, durable: Place, sealed: bool) -> None:
    """Walks one segment, the last one only as far as it is durable."""
    is_last = segment.sequence == durable.sequence
    end = durable.position if is_last else segment.file.size_bytes()
    found = scan(segment.file.read(0, end), segment.sequence)
    segment.release()
    segment.summary, _ = index_of(segment.sequence, found.headers)
    report.segments += 1
    report.size_bytes += found.end
    report.entries += sum(header.entry_count for header in found.headers)
    if found.fault is not None and (sealed or found.fault.later is not None):
        report.damage.append(Damage(segment.path, found.fault.position, found.fault.reason))
    elif is_last and found.end < end:
        reason = f"the frames end there although the log was durable up to byte {end}"
        report.damage.append(Damage(segment.path, found.end, reason))
