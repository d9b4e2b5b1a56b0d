"""Moving the state of one partition: out of a store as a stream, and into another.

Both are generators of small pieces, so that their driver decides where they run. An export
shows the rows of when it began, whatever is written meanwhile. An import is visible as a whole when
it ends, and not at all before.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import msgspec

from holdfast.errors import AlreadyExists, DataLoss, InvalidArgument, InvalidState, NotFound
from holdfast.folder_format import FORMAT
from holdfast.state.api import Store
from holdfast.state.families import Progress, partition_range, progress_key
from holdfast.state.portable import (
    PROGRAM,
    VERSION,
    ExportReader,
    Header,
    Row,
    pages,
    written,
)

_PARTITION_BYTES = 2  # of every key, which an export leaves out

_encode = msgspec.msgpack.Encoder().encode
_decode_progress = msgspec.msgpack.Decoder(Progress).decode


class Imported(NamedTuple):
    """An export that was taken in."""

    header: Header
    rows: int


def export_partition(
    store: Store, partition: int, *, end: int | None = None, partitions: int = 0
) -> tuple[Header, Iterator[bytes]]:
    """What an export of this moment stands for, and its stream.

    `end` is the offset at which the log ends, if nobody writes to it; `partitions` is how many the
    node has.
    """
    low, high = partition_range(partition)
    found = store.scan_once(low, high)
    first = next(found, None)
    if first is None or first[0] != progress_key(partition):
        raise NotFound(
            f"Expected state of partition {partition}, but the store has none; a partition has"
            " state when its first record was written",
            partition=partition,
        )
    try:
        progress = _decode_progress(first[1])
    except msgspec.MsgspecError as error:
        raise store.damaged(f"the progress of {partition} does not decode: {error}") from error
    offset = progress.replay_from
    header = Header(
        VERSION, partition, progress.applied_position + 1, offset, first[1], offset == end,
        partitions, FORMAT, PROGRAM,
    )  # fmt: skip
    return header, written(header, pages(_without_partition(found)))


def _without_partition(rows: Iterator[Row]) -> Iterator[Row]:
    for key, value in rows:
        yield key[_PARTITION_BYTES:], value


def import_partition(
    store: Store,
    stream: Iterable[bytes],
    source: str,
    partition: int | None = None,
    *,
    offset: int | None = None,
) -> Generator[None, None, Imported]:
    """Takes in an export, of which every byte is checked first; what it was.

    With an `offset` the partition goes on there in another journal, without its former log.
    DataLoss where it is not whole, InvalidArgument where it is another partition's or of another
    version, AlreadyExists where the store has rows of the partition: they are never mixed.
    """
    reader = ExportReader(stream, source)
    header = reader.header
    if partition not in (None, header.partition):
        raise _another(partition, reader)
    if has_rows(store, header.partition):
        raise AlreadyExists(
            f"Expected no state of partition {header.partition} where {source} is imported, but"
            " there is; import it where the partition was never open, or after it was removed",
            partition=header.partition,
        )
    stored = header.progress
    if offset is not None:
        if not header.is_whole:
            raise InvalidState(
                f"Expected {source} to need nothing of its log, but commands there wait to be"
                " processed; start the node it was made from, stop it and export the partition"
                " again",
                partition=header.partition,
            )
        stored = _encode(msgspec.structs.replace(_decode_progress(stored), replay_offset=offset))
    first = progress_key(header.partition)
    own, progress = first[:_PARTITION_BYTES], first[_PARTITION_BYTES:]

    def rows() -> Iterator[list[Row]]:
        yield [(first, stored)]
        for page in reader.pages():
            if page[0][0] <= progress:  # the least key, for they are in order
                raise DataLoss(f"Expected rows in {source}, but found a second progress")
            yield [(own + key, value) for key, value in page]

    yield from store.ingest(rows())
    return Imported(header, reader.rows)


def _another(partition: int | None, reader: ExportReader) -> InvalidArgument:
    return InvalidArgument(
        f"Expected an export of partition {partition} in {reader.source}, but it is of"
        f" {reader.header.partition}",
        partition=partition,
    )


def check_export(
    stream: Iterable[bytes], source: str, partition: int
) -> Generator[None, None, Header]:
    """Reads what is to be an export of a partition, as a whole; what it stands for.

    DataLoss where it is not whole, InvalidArgument where it is another partition's.
    """
    reader = ExportReader(stream, source)
    if reader.header.partition != partition:
        raise _another(partition, reader)
    for _ in reader.pages():
        yield
    return reader.header


def remove_partition(store: Store, partition: int) -> None:
    """Forgets all that the store knows of a partition, at once; nobody has it open."""
    store.remove(*partition_range(partition))


def offset_of(store: Store, partition: int) -> int | None:
    """Where the log goes on from what a store has of a partition; None if it has nothing."""
    stored = store.get(progress_key(partition))
    try:
        return None if stored is None else _decode_progress(stored).replay_from
    except msgspec.MsgspecError as error:
        raise store.damaged(f"the progress of {partition} does not decode: {error}") from error


def has_rows(store: Store, partition: int) -> bool:
    """Whether the store knows anything of a partition."""
    return next(store.scan(*partition_range(partition)), None) is not None
