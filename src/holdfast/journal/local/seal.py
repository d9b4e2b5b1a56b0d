"""What is done to a segment when no more is written to it, and when nobody needs it any more."""

from collections.abc import Sequence

from holdfast.journal.local.disk import Disk, replace_whole
from holdfast.journal.local.frame import scan
from holdfast.journal.local.index import Points, Summary, encode_index, index_of
from holdfast.journal.local.names import index_name, segment_name, spare_name, spare_names
from holdfast.journal.local.numbers import PartitionNumbers
from holdfast.limits import SPARE_SEGMENTS_MAX
from holdfast.logs import log


def seal(disk: Disk, folder: str, summary: Summary, points: Points) -> None:
    """Cuts a segment to its frames and writes its index.

    The index comes last: a segment with an index has no remainder in which a flipped bit could
    hide.
    """
    file = disk.open(f"{folder}/{segment_name(summary.sequence)}", writable=True)
    try:
        file.truncate(summary.end)
        file.sync()
    finally:
        file.close()
    replace_whole(disk, folder, index_name(summary.sequence), encode_index(summary, points))


def seal_if_possible(disk: Disk, folder: str, summary: Summary, points: Points) -> None:
    """Seals beside the appends; without it the next start scans the segment and seals it then."""
    try:
        seal(disk, folder, summary, points)
    except OSError as error:
        log.warning(
            "segment not sealed", folder=folder, sequence=summary.sequence, error=str(error)
        )


def seal_again(disk: Disk, folder: str, sequence: int) -> None:
    """Writes the index of a sealed segment anew from its frames, if all of them are intact."""
    try:
        file = disk.open(f"{folder}/{segment_name(sequence)}")
        try:
            found = scan(file.read(0, file.size_bytes()), sequence)
        finally:
            file.close()
        if found.fault is None:
            data = encode_index(*index_of(sequence, found.headers))
            replace_whole(disk, folder, index_name(sequence), data)
    except OSError as error:  # it may be gone: then nobody needs the index
        log.warning("index not written", folder=folder, sequence=sequence, error=str(error))


def remove_segments(
    disk: Disk,
    folder: str,
    marks: Sequence[tuple[PartitionNumbers, list[int]]],
    sequences: list[int],
) -> None:
    """Removes segments, oldest first, once the numbers that then are true are durable.

    In that order the next offset of a partition is known even when no entry of it is left, and so
    is its epoch. Some
    files are kept to be used again: writing over old blocks is several times faster than having new
    ones allocated.
    """
    try:
        for file, numbers in marks:
            file.store(numbers)
        for sequence in sequences:
            disk.remove(f"{folder}/{index_name(sequence)}")
            if len(spare_names(disk.list(folder))) < SPARE_SEGMENTS_MAX:
                disk.rename(
                    f"{folder}/{segment_name(sequence)}", f"{folder}/{spare_name(sequence)}"
                )
            else:
                disk.remove(f"{folder}/{segment_name(sequence)}")
            disk.sync_folder(folder)
    except OSError as error:
        log.warning("segments not removed", folder=folder, sequences=sequences, error=str(error))
