"""Snapshots of partitions in a blob store, for members whose disk is empty.

    partitions/00007/00000000000000001200.export   partition 7, up to position 1,200 of its log
    partitions/00007/00000000000000001200.json     it was read back and is as it was written

A snapshot counts when its second blob is there. The newest two of each partition are kept.
"""

from collections.abc import Generator, Iterator

import msgspec

from holdfast.blobs import Blobs, put
from holdfast.errors import DataLoss, InvalidArgument, InvalidState, NotFound
from holdfast.limits import SNAPSHOTS_KEPT
from holdfast.state.api import Store
from holdfast.state.copies import Pieces, Positions
from holdfast.state.moving import export_partition, import_partition, next_position
from holdfast.state.portable import ExportReader

_EXPORT, _MANIFEST = ".export", ".json"


class StoredSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """What is known of a snapshot that was read back."""

    partition: int
    position: int  # the first that it does not stand for
    next_position: int  # how far the log was
    rows: int
    size_bytes: int


class StoredSnapshots:
    """The snapshots in a blob store. Its calls block."""

    def __init__(self, blobs: Blobs) -> None:
        self.url = blobs.url
        self._blobs = blobs
        self._kept: dict[int, list[int]] = {}  # positions by partition, oldest first

    def take(self, store: Store, partition: int) -> Pieces:
        """Puts a snapshot of a partition into the blob store, reads it back, and drops old ones."""
        found = self.positions(partition)
        header, stream = export_partition(store, partition)
        position = header.position
        if found and found[-1] > position:
            raise InvalidState(
                f"Expected {self.url} to have snapshots of this node alone, but it has one of"
                f" partition {partition} at position {found[-1]}, and this node's is at {position};"
                " give each node a store, or a prefix in it, of its own",
                partition=partition, store=self.url,
            )  # fmt: skip
        if position not in found:
            rows, size_bytes = yield from self._write(partition, position, stream)
            manifest = StoredSnapshot(
                partition, position, next_position(header), rows, size_bytes
            )  # fmt: skip
            name = _name(partition, position, _MANIFEST)
            put(self._blobs, name, [msgspec.json.encode(manifest)])
            found = [*found, position]
        self._kept[partition] = found[-SNAPSHOTS_KEPT:]
        self._drop_old(partition)

    def _write(
        self, partition: int, position: int, stream: Iterator[bytes]
    ) -> Generator[None, None, tuple[int, int]]:
        """Uploads an export and reads it back; how many rows and bytes it has."""
        name, size_bytes = _name(partition, position, _EXPORT), 0
        with self._blobs.upload(name) as upload:
            for piece in stream:
                upload.write(piece)
                size_bytes += len(piece)
                yield
        reader = self._reader(name)
        for _ in reader.pages():
            yield
        if (reader.header.partition, reader.header.position) != (partition, position):
            raise DataLoss(f"Expected {reader.source} to be as it was written, but it is another")
        return reader.rows, size_bytes

    def _reader(self, name: str) -> ExportReader:
        return ExportReader(self._blobs.get(name), f"{name} in {self.url}")

    def _drop_old(self, partition: int) -> None:
        """Deletes what no longer counts and what never did; the manifest goes first."""
        kept = {_name(partition, each, "") for each in self._kept[partition]}
        names = [blob.name for blob in self._blobs.list(_folder(partition))]
        for name in sorted(names, key=lambda each: each.endswith(_EXPORT)):
            if name.removesuffix(_EXPORT).removesuffix(_MANIFEST) not in kept:
                self._blobs.delete(name)

    def positions(self, partition: int) -> list[int]:
        """The positions of the snapshots that count, oldest first."""
        names = [blob.name for blob in self._blobs.list(_folder(partition))]
        return [int(each[-25:-5]) for each in names if each.endswith(_MANIFEST)]

    def kept_from(self) -> Positions:
        """The position of the older of two snapshots: the log behind it is not needed for them.

        A partition is missing until two of its snapshots were read back by this process.
        """
        return {
            partition: positions[0]
            for partition, positions in self._kept.items()
            if len(positions) >= SNAPSHOTS_KEPT
        }

    def restore(
        self, store: Store, partition: int, earliest: int, end: int
    ) -> Generator[None, None, tuple[bool, list[str]]]:
        """Imports the newest good snapshot that the log, from `earliest` to `end`, goes on from.

        Whether there was one, and what was done. DataLoss where a snapshot is ahead of the log.
        """
        done: list[str] = []
        for position in reversed(self.positions(partition)):
            name = _name(partition, position, _EXPORT)
            try:
                reached = next_position(self._reader(name).header)
            except (DataLoss, InvalidArgument, NotFound) as error:
                done.append(f"{name} is not used: {error.message}")
                continue
            if reached > end:
                raise self._ahead(partition, reached, end)
            if position < earliest:
                done.append(f"{name} is not used: it ends before the log begins, at {earliest}")
                continue
            source = f"{name} in {self.url}"
            try:
                yield from import_partition(store, self._blobs.get(name), source, partition)
            except (DataLoss, NotFound) as error:
                done.append(f"{name} is not used: {error.message}")
                continue
            done.append(f"partition {partition} begins with {source}")
            return True, done
        return False, done

    def _ahead(self, partition: int, reached: int, end: int) -> DataLoss:
        return DataLoss(
            f"Expected the log of partition {partition} to reach to position {reached}, as a"
            f" snapshot in {self.url} does, but it ends before {end}: records that were"
            " acknowledged are missing; restore the journal's folder from a copy, or, if this is"
            " another node, give it a snapshot store of its own",
            partition=partition, store=self.url,
        )  # fmt: skip


def _folder(partition: int) -> str:
    return f"partitions/{partition:05}/"


def _name(partition: int, position: int, kind: str) -> str:
    return f"{_folder(partition)}{position:020}{kind}"
