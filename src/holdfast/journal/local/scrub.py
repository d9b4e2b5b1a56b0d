"""Reads the log again, a piece at a time: a flipped bit is found before anybody needs it.

A writer may be at work: segments that it discards meanwhile are not damaged, they are gone.
"""

from collections.abc import Generator, Iterator
from itertools import chain

from holdfast.errors import DataLoss
from holdfast.journal.local.damage import Damage
from holdfast.journal.local.disk import Disk, RealDisk
from holdfast.journal.local.frame import FrameFault, FrameHeader, scan
from holdfast.journal.local.index import Summary
from holdfast.journal.local.mark import NOWHERE
from holdfast.journal.local.names import (
    EARLIEST,
    EPOCHS,
    SETTINGS,
    are_settings_whole,
    index_name,
    index_sequences,
    load_settings,
    segment_name,
)
from holdfast.journal.local.recovery import load_sealed, open_earliest, open_epochs, open_mark
from holdfast.journal.local.segment import Segment
from holdfast.limits import SCRUB_SLICE_BYTES

_GROWTH = 4  # of a slice in which no frame ended


def scrub(root: str, *, disk: Disk | None = None) -> Iterator[Damage | None]:
    """Reads what is at rest in all topics; yields None after each piece, and what is damaged."""
    disk = disk or RealDisk()
    for name in disk.list(root):
        folder = f"{root}/{name}"
        try:
            settings = load_settings(disk, folder)
            if settings is None:
                continue
            if not are_settings_whole(disk, folder, settings):
                yield Damage(f"{folder}/{SETTINGS}", 0, "it differs from its copy")
            yield from _scrub_numbers(disk, folder, settings.partitions, EARLIEST)
            yield from _scrub_numbers(disk, folder, settings.partitions, EPOCHS)
        except DataLoss as error:
            yield Damage(f"{folder}/{SETTINGS}", 0, error.message)
        for sequence in sorted(index_sequences(disk.list(folder))):
            yield from _scrub_sealed(disk, folder, sequence)
        yield from _scrub_last(disk, folder)


def _scrub_numbers(disk: Disk, folder: str, partitions: int, name: str) -> Iterator[Damage | None]:
    path = f"{folder}/{name}"
    opened = open_earliest if name == EARLIEST else open_epochs
    try:
        for _ in range(2):  # the first look may have met a write
            numbers = opened(disk, folder, partitions)
            if numbers is None:
                return
            numbers.load()
            numbers.close()
            if numbers.is_whole:
                return
            yield None
    except DataLoss as error:
        yield Damage(path, 0, error.message)
    else:
        yield Damage(path, 0, "one of its two copies does not match its checksum")


def _scrub_last(disk: Disk, folder: str) -> Iterator[Damage | None]:
    """The segment that is written, as far as it is durable."""
    mark = open_mark(disk, folder)
    durable = mark.load()
    mark.close()
    if durable is None or durable == NOWHERE:
        return
    segment = Segment(disk, folder, Summary(durable.sequence))
    try:
        _, fault = yield from scan_slowly(segment, durable.position)
    except OSError:  # it was sealed and discarded meanwhile
        return
    finally:
        segment.release()
    if fault is not None and segment_name(durable.sequence) in disk.list(folder):
        yield Damage(segment.path, fault.position, fault.reason)


def _scrub_sealed(disk: Disk, folder: str, sequence: int) -> Iterator[Damage | None]:
    segment = Segment(disk, folder, Summary(sequence))
    try:
        if load_sealed(disk, folder, sequence) is None:
            found = Damage(f"{folder}/{index_name(sequence)}", 0, "it does not fit the segment")
        else:
            end = segment.file.size_bytes()
            _, fault = yield from scan_slowly(segment, end)
            found = None if fault is None else Damage(segment.path, fault.position, fault.reason)
    except OSError as error:
        found = Damage(segment.path, 0, f"it cannot be read: {error}")
    finally:
        segment.release()
    # A discarded segment loses its name before its file is used again.
    if found is not None and segment_name(sequence) in disk.list(folder):
        yield found


def scan_slowly(
    segment: Segment, end: int
) -> Generator[None, None, tuple[list[FrameHeader], FrameFault | None]]:
    """The frames of a segment up to `end`, read in slices; and where they stop, if that is before.

    Yields after each slice.
    """
    found: list[list[FrameHeader]] = []
    position, size_bytes = 0, SCRUB_SLICE_BYTES
    while position < end:
        wanted_bytes = min(size_bytes, end - position)
        slice_ = scan(segment.file.read(position, wanted_bytes), segment.sequence, position)
        found.append(slice_.headers)
        if slice_.end == position:
            if position + wanted_bytes == end or slice_.fault is None:
                fault = slice_.fault or FrameFault(position, "zeros follow the last frame", None)
                return list(chain.from_iterable(found)), fault
            size_bytes *= _GROWTH
        else:
            size_bytes = SCRUB_SLICE_BYTES
        position = slice_.end
        yield
    return list(chain.from_iterable(found)), None
