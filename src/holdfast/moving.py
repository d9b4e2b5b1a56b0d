"""The partitions of a node that is stopped: exported from its folder, and imported into it."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast.blobs import Blobs, put
from holdfast.config import load_config
from holdfast.engine.kernel.recovery import TOPIC, recover_one, write_state
from holdfast.engine.partition import open_partition
from holdfast.errors import DataLoss, InvalidState, NotFound
from holdfast.journal.local import LocalJournal
from holdfast.journal.local.names import SETTINGS
from holdfast.layout import layout_of
from holdfast.pieces import end_of
from holdfast.state.moving import export_partition, import_partition
from holdfast.state.portable import ExportReader, Header, header_of
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import Snapshots

Told = Callable[[int], None]  # is told how many more bytes went by


class MovedPartition(msgspec.Struct, frozen=True, rename="camel"):
    """A partition that was exported or imported."""

    partition: int
    position: int  # the first record that the rows do not have
    offset: int  # where the journal is read on from
    rows: int
    size_bytes: int


class StoppedNode:
    """The files of a node's folder while no node runs there."""

    def __init__(self, folder: Path, journal: LocalJournal, store: RocksStore) -> None:
        self._folder = folder
        self._journal = journal
        self._store = store

    async def export(self, partition: int, blobs: Blobs, name: str, told: Told) -> MovedPartition:
        """Stores a partition as it is at the end of its log as a blob, and reads it back."""
        if not self._log(partition)[1]:
            raise NotFound(
                f"Expected records of partition {partition} in {self._folder}, but nothing has"
                " happened there yet",
                partition=partition,
            )
        count = self._journal.topics()[TOPIC]
        processor = open_partition(self._store, partition, count)
        async for _ in recover_one(processor, self._journal, self._store):
            pass
        write_state([processor], self._store)
        end = self._log(partition)[1]
        header, stream = export_partition(self._store, partition, end=end, partitions=count)
        size_bytes = put(blobs, name, _counted(stream, told))
        reader = ExportReader(blobs.get(name), f"{name} in {blobs.url}")
        for _ in reader.pages():
            pass
        if reader.header != header:
            raise DataLoss(f"Expected {reader.source} to be as it was written, but it is another")
        return _moved(header, reader.rows, size_bytes)

    def import_(
        self, blobs: Blobs, name: str, told: Told, *, new_log: bool = False
    ) -> MovedPartition:
        """Takes in an export of a partition that has no state here.

        Its log is here, or, with `new_log`, it begins one: what it did before is not in it.
        """
        source, size_bytes = f"{name} in {blobs.url}", 0
        offset = self._go_on_from(header_of(blobs, name), source, new_log=new_log)

        def count(more: int) -> None:
            nonlocal size_bytes
            size_bytes += more
            told(more)

        stream = _counted(blobs.get(name), count)
        importing = import_partition(self._store, stream, source, offset=offset)
        header, rows = end_of(importing)
        return _moved(header, rows, size_bytes)

    def _go_on_from(self, header: Header, source: str, *, new_log: bool) -> int | None:
        """Where the partition goes on, if not where it was; refused where that is not possible."""
        earliest, end = self._log(header.partition)
        count = self._journal.topics()[TOPIC]
        if header.partitions not in (0, count):
            raise InvalidState(
                f"Expected {self._folder} to have {header.partitions} partitions, as the node that"
                f" {source} was made from, but it has {count}: keys would be looked for elsewhere",
                partition=header.partition,
            )
        if new_log and end:
            raise InvalidState(
                f"Expected no log of partition {header.partition} in {self._folder}, but it has"
                f" {end} records; a new log begins in a new folder",
                partition=header.partition,
            )
        if not new_log and not earliest <= header.offset <= end:
            raise InvalidState(
                f"Expected the log of partition {header.partition} in {self._folder} to go on from"
                f" {header.offset}, as {source} does, but it has {earliest} to {end}: bring the"
                " journal of the node that the export was made from, or begin a new log with"
                " --new-log",
                partition=header.partition,
            )
        return end if new_log else None

    def _log(self, partition: int) -> tuple[int, int]:
        count = self._journal.topics()[TOPIC]
        if not 1 <= partition <= count:
            raise NotFound(
                f"Expected a partition from 1 to {count}, as {self._folder} was made with, but"
                f" found {partition}",
                partition=partition,
            )
        return self._journal.bounds(TOPIC, partition)


@asynccontextmanager
async def open_stopped(folder: Path, partition: int) -> AsyncIterator[StoppedNode]:
    """The files of a node, or of its member that has the partition.

    Unavailable while it runs, NotFound if the folder is no node's.
    """
    layout = layout_of(folder)
    member = layout.member_folder(layout.owner(partition))
    if not (member / "journal" / TOPIC / SETTINGS).exists():
        raise NotFound(
            f"Expected the data folder of a node in {folder}, but it has no log; check the path",
            path=str(folder),
        )
    segment_bytes = load_config(folder, {}).segment_bytes
    journal = LocalJournal.open(member / "journal", segment_bytes=segment_bytes)
    try:
        store, _ = Snapshots(member / "state").open_store()
        try:
            yield StoppedNode(folder, journal, store)
        finally:
            store.close()
    finally:
        await journal.close()


def _counted(pieces: Iterable[bytes], told: Told) -> Iterator[bytes]:
    for piece in pieces:
        told(len(piece))
        yield piece


def _moved(header: Header, rows: int, size_bytes: int) -> MovedPartition:
    return MovedPartition(header.partition, header.position, header.offset, rows, size_bytes)
