"""What a start makes of a topic's files: frames that stand, a torn tail, or damage.

A crash may leave the last commit in any state, since nobody was told that it is durable. So bad
bytes are a torn tail only where they can belong to that commit: above the durable mark, with no
frame of a later commit behind them. Bad bytes anywhere else once were good, and the start is
refused.
"""

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import DataLoss
from holdfast.journal.local.disk import Disk, File, fill
from holdfast.journal.local.frame import LINK_BYTES, Scan, decode_link, is_zero
from holdfast.journal.local.index import Points, Summary, index_of, load_summary
from holdfast.journal.local.mark import ANYWHERE, NOWHERE, DurableMark, Place, encode_mark
from holdfast.journal.local.names import (
    DURABLE,
    EARLIEST,
    EPOCHS,
    index_name,
    index_sequences,
    segment_name,
    segment_sequences,
)
from holdfast.journal.local.numbers import PartitionNumbers, file_bytes
from holdfast.journal.local.seal import seal
from holdfast.journal.local.segment import Segment, damaged
from holdfast.journal.local.view import TopicView
from holdfast.logs import log


class Recovered(NamedTuple):
    """A topic that can be written on."""

    view: TopicView
    file: File  # of the view's last segment
    mark: DurableMark
    earliest: PartitionNumbers
    epochs: PartitionNumbers  # the newest of what was discarded
    prepared: int | None  # the sequence number of an empty segment that stands ready


class _Found(NamedTuple):
    segment: Segment
    sealed: bool

    @property
    def is_empty(self) -> bool:
        return self.segment.summary.end == 0


def recover(disk: Disk, folder: str, topic: str, partitions: int) -> Recovered:
    """Opens a topic for writing; DataLoss names the file and the place of damage."""
    sealed = _clean_up(disk, folder)
    earliest = open_earliest(disk, folder, partitions, writable=True)
    mark = open_mark(disk, folder, writable=True)
    durable = mark.load()
    if durable is None:
        log.warning("durable mark damaged: written anew", file=f"{folder}/{DURABLE}")
        durable = NOWHERE
    view = TopicView(topic, partitions, earliest.load())
    if not earliest.is_whole:
        log.warning("earliest offsets damaged: written anew", file=f"{folder}/{EARLIEST}")
        earliest.store(view.earliest[1:])
    epochs = _open_epochs_for_writing(disk, folder, partitions)
    view.epochs[1:] = epochs.load()
    if not epochs.is_whole:
        log.warning("epochs damaged: written anew", file=f"{folder}/{EPOCHS}")
        epochs.store(view.epochs[1:])

    found = list(_load(disk, folder, sealed, durable))
    check_continuity(view, [each.segment for each in found])
    kept, trailing = _split(found)
    for each in kept[:-1]:
        if not each.sealed:
            seal(disk, folder, each.segment.summary, each.segment.points)
    last = kept[-1].segment
    if kept[-1].sealed:  # an empty one that is written on after all
        disk.remove(f"{folder}/{index_name(last.sequence)}")
        disk.sync_folder(folder)
    prepared = _keep_prepared(disk, folder, trailing)
    file = disk.open(last.path, writable=True)
    start = durable.position if durable.sequence == last.sequence else 0
    _make_durable(file, start, last.summary.end)
    mark.store(encode_mark(last.sequence, last.summary.end))
    mark.sync()
    for each in kept:
        view.add_segment(each.segment)
    return Recovered(view, file, mark, earliest, epochs, prepared)


def open_mark(disk: Disk, folder: str, *, writable: bool = False) -> DurableMark:
    """The durable mark of a topic; DataLoss if its file is gone."""
    return DurableMark(_open_marker(disk, f"{folder}/{DURABLE}", writable))


def open_earliest(
    disk: Disk, folder: str, partitions: int, *, writable: bool = False
) -> PartitionNumbers:
    """The earliest offsets of a topic; DataLoss if their file is gone."""
    path = f"{folder}/{EARLIEST}"
    return PartitionNumbers(_open_marker(disk, path, writable), partitions, path)


def open_epochs(
    disk: Disk, folder: str, partitions: int, *, writable: bool = False
) -> PartitionNumbers | None:
    """The newest epochs of what was discarded; None in a folder of an earlier version."""
    path = f"{folder}/{EPOCHS}"
    try:
        file = disk.open(path, writable=writable)
    except FileNotFoundError:
        return None
    return PartitionNumbers(file, partitions, path, "the epochs")


def _open_epochs_for_writing(disk: Disk, folder: str, partitions: int) -> PartitionNumbers:
    """A folder of an earlier version gets the file: all that was discarded there was epoch 0."""
    found = open_epochs(disk, folder, partitions, writable=True)
    if found is None:
        disk.create(f"{folder}/{EPOCHS}", file_bytes(partitions)).close()
        disk.sync_folder(folder)
        found = open_epochs(disk, folder, partitions, writable=True)
        assert found is not None
    return found


def _open_marker(disk: Disk, path: str, writable: bool) -> File:
    try:
        return disk.open(path, writable=writable)
    except FileNotFoundError:
        raise DataLoss(
            f"expected the file {path}, but it is missing, so the log cannot be verified;"
            " restore it, or the whole journal, from a copy",
            file=path,
            position=0,
        ) from None


def check_continuity(view: TopicView, segments: list[Segment]) -> None:
    """Refuses segments between which entries are missing."""
    expected: dict[int, int] = {}
    for segment in segments:
        for partition, first in segment.summary.first.items():
            known = expected.get(partition)
            # Of what was discarded some may still be there; nothing above may be missing.
            reaches = first == known if known is not None else first <= view.earliest[partition]
            if not reaches:
                wanted = view.earliest[partition] if known is None else known
                raise DataLoss(
                    f"expected offset {wanted} of partition {partition} next in {segment.path}, "
                    f"but found {first}: entries between them are missing",
                    file=segment.path,
                    position=0,
                    partition=partition,
                    offset=wanted,
                )
            expected[partition] = segment.summary.next[partition]


def _clean_up(disk: Disk, folder: str) -> set[int]:
    """Removes what an interrupted writer left half done; the sequences that have an index."""
    names = disk.list(folder)
    indexed = index_sequences(names)
    orphans = indexed - set(segment_sequences(names))
    for name in [name for name in names if name.endswith(".new")] + list(map(index_name, orphans)):
        disk.remove(f"{folder}/{name}")
    return indexed - orphans


def _load(disk: Disk, folder: str, sealed: set[int], durable: Place) -> Iterator[_Found]:
    """The segments, oldest first: by their index if they have one, else by a scan."""
    sequences = segment_sequences(disk.list(folder))
    for sequence in missing_sequences(sequences, durable):
        raise DataLoss(
            f"expected the segment {folder}/{segment_name(sequence)}, but it is missing; restore it"
            " from a copy",
            file=f"{folder}/{segment_name(sequence)}",
            position=0,
        )
    for sequence in sequences:
        summary = load_sealed(disk, folder, sequence) if sequence in sealed else None
        if summary is not None:
            yield _Found(Segment(disk, folder, summary), sealed=True)
        else:
            end = _linked_end(disk, folder, sequence + 1) if sequence != sequences[-1] else None
            yield _Found(_scan(disk, folder, sequence, durable, end), sealed=False)


def missing_sequences(sequences: list[int], durable: Place) -> list[int]:
    """The segments that must be there and are not: between others, and up to the durable mark."""
    if not sequences:
        return [max(durable.sequence, 1)]
    last = max(sequences[-1], 0 if durable == ANYWHERE else durable.sequence)
    return sorted(set(range(sequences[0], last + 1)) - set(sequences))


def load_sealed(disk: Disk, folder: str, sequence: int) -> Summary | None:
    """The summary of a sealed segment, if its index is intact and agrees with the file's size."""
    try:
        file = disk.open(f"{folder}/{index_name(sequence)}")
    except FileNotFoundError:
        return None
    try:
        summary = load_summary(file, sequence)
    finally:
        file.close()
    segment = disk.open(f"{folder}/{segment_name(sequence)}")
    try:
        return summary if summary is not None and segment.size_bytes() == summary.end else None
    finally:
        segment.close()


def _linked_end(disk: Disk, folder: str, sequence: int) -> int | None:
    """Where the segment before this one ended, if anything was written to this one."""
    file = disk.open(f"{folder}/{segment_name(sequence)}")
    try:
        return decode_link(file.read(0, LINK_BYTES), sequence)
    finally:
        file.close()


def _scan(disk: Disk, folder: str, sequence: int, durable: Place, end: int | None) -> Segment:
    """A segment by its frames, which end at `end` if that is known, else maybe in a torn tail."""
    segment = Segment(disk, folder, Summary(sequence), Points())
    found = segment.scan()
    segment.release()
    if end is None and durable.sequence == sequence:
        end = max(found.end, durable.position)
    if end is not None and found.end != end:
        reason = f"the log was durable up to byte {end}"
        raise damaged(segment.path, found.end, reason, _last_offset(found))
    if end is None and found.fault is not None:
        later = found.fault.later
        if later is not None and later.commit_position > found.end:
            raise damaged(segment.path, found.end, found.fault.reason, _last_offset(found))
    summary, points = index_of(sequence, found.headers)
    return Segment(disk, folder, summary, points)


def _last_offset(found: Scan) -> int | None:
    """The offset before which the damage is not: where the last intact frame ends."""
    return found.headers[-1].next_offset if found.headers else None


def _split(found: list[_Found]) -> tuple[list[_Found], list[_Found]]:
    """The segments up to the one to write on, and the empty ones behind it."""
    last = max((number for number, each in enumerate(found) if not each.is_empty), default=0)
    if found[last].sealed and last + 1 < len(found):
        last += 1
    return found[: last + 1], found[last + 1 :]


def _keep_prepared(disk: Disk, folder: str, trailing: list[_Found]) -> int | None:
    """Keeps the first segment behind the last if it is untouched; removes the others."""
    prepared: int | None = None
    for number, each in enumerate(trailing):
        segment = each.segment
        untouched = not each.sealed and segment.scan().fault is None
        segment.release()
        if number == 0 and untouched and not each.sealed:
            prepared = segment.sequence
        else:
            disk.remove(f"{folder}/{index_name(segment.sequence)}")
            disk.remove(segment.path)
            disk.sync_folder(folder)
    return prepared


def _make_durable(file: File, start: int, end: int) -> None:
    """Makes frames above the mark as durable as those below, and the rest zeros.

    Frames that were read may be in the system's cache only, even clean there after a failed sync.
    Written again, they are durable or the sync says so. Zeros make sure that no byte of the tail is
    ever taken for a frame.
    """
    size_bytes = file.size_bytes()
    if start < end:
        file.write(start, file.read(start, end - start))
    if not is_zero(file.read(end, size_bytes - end), 0):
        fill(file, end, size_bytes)
    file.sync()
