"""Reads everything that a journal holds and says what is damaged, for `holdfast doctor`."""

from collections.abc import Callable

import msgspec

from holdfast.errors import DataLoss
from holdfast.journal.local.damage import Damage
from holdfast.journal.local.disk import Disk, RealDisk
from holdfast.journal.local.frame import scan
from holdfast.journal.local.index import Summary, index_of
from holdfast.journal.local.mark import ANYWHERE, NOWHERE, Place
from holdfast.journal.local.names import (
    DURABLE,
    Settings,
    index_sequences,
    load_settings,
    segment_name,
    segment_sequences,
)
from holdfast.journal.local.recovery import (
    check_continuity,
    load_sealed,
    missing_sequences,
    open_earliest,
    open_epochs,
    open_mark,
)
from holdfast.journal.local.segment import Segment
from holdfast.journal.local.view import TopicView


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
    durable, earliest = _load_marks(disk, folder, settings, report)
    view = TopicView(topic, settings.partitions, earliest)
    names = disk.list(folder)
    indexed = index_sequences(names)
    segments: list[Segment] = []
    sequences = segment_sequences(names)
    for missing in missing_sequences(sequences, durable):
        reason = "it is missing: the log was durable beyond it"
        report.damage.append(Damage(f"{folder}/{segment_name(missing)}", 0, reason))
    for sequence in sequences:
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


def _load_marks(
    disk: Disk, folder: str, settings: Settings, report: TopicReport
) -> tuple[Place, list[int]]:
    """How far the log was durable and where it begins, as far as that can be told."""
    durable, earliest = NOWHERE, [0] * settings.partitions
    try:
        mark = open_mark(disk, folder)
        loaded = mark.load() or mark.load()  # the first look may have met a write
        mark.close()
        if loaded is None:  # the log is read to its end, as the next start does
            durable = ANYWHERE
            reason = "it does not match its checksum; the next start writes it anew"
            report.damage.append(Damage(f"{folder}/{DURABLE}", 0, reason))
        else:
            durable = loaded
        offsets = open_earliest(disk, folder, settings.partitions)
        earliest = offsets.load()
        offsets.close()
        epochs = open_epochs(disk, folder, settings.partitions)
        if epochs is not None:
            epochs.load()
            epochs.close()
    except DataLoss as error:
        report.damage.append(Damage(str(error.fields["file"]), 0, error.message))
    return durable, earliest


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
