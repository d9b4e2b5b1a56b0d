"""Snapshots of partitions in a blob store, for members whose disk is empty.

    partitions/00007/00000000000000001200.export   partition 7, up to its record 1,200
    partitions/00007/00000000000000001200.json     it was read back and is as it was written

A snapshot counts when its second blob is there. The newest two of each partition are kept.

Members over one log share a store: the owner of a partition stores it. A former owner that has not
noticed yet may do so, too, so what is newer than one's own is left alone there.
"""

from collections.abc import Generator, Iterator

import msgspec

from holdfast.blobs import Blobs, put
from holdfast.errors import DataLoss, InvalidArgument, InvalidState, NotFound
from holdfast.limits import SNAPSHOTS_KEPT
from holdfast.state.api import Store
from holdfast.state.copies import Pieces, Positions
from holdfast.state.moving import export_partition, import_partition
from holdfast.state.portable import ExportReader, Header, header_of

_EXPORT, _MANIFEST = ".export", ".json"


class StoredSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """What is known of a snapshot that was read back."""

    partition: int
    position: int  # the first record that it does not have
    offset: int  # where the journal is read on from
    rows: int
    size_bytes: int


class StoredSnapshots:
    """The snapshots in a blob store. Its calls block."""

    def __init__(self, blobs: Blobs, *, is_shared: bool = False) -> None:
        self.url = blobs.url
        self._blobs = blobs
        self._is_shared = is_shared  # with other members, over the same log
        self._kept: dict[int, list[StoredSnapshot]] = {}  # by partition, oldest first

    def take(self, store: Store, partition: int) -> Pieces:
        """Puts a snapshot of a partition into the blob store, reads it back, and drops old ones."""
        header, stream = export_partition(store, partition)
        position = header.position
        if not position:
            return  # nothing has happened there yet
        found = self.found(partition)
        if found and found[-1].position > position and not self._is_shared:
            raise InvalidState(
                f"Expected {self.url} to have snapshots of this node alone, but it has one of"
                f" partition {partition} up to record {found[-1].position}, and this node has"
                f" {position}; give each node a store, or a prefix in it, of its own",
                partition=partition, store=self.url,
            )  # fmt: skip
        if not found or found[-1].position < position:
            rows, size_bytes = yield from self._write(header, stream)
            taken = StoredSnapshot(partition, position, header.offset, rows, size_bytes)
            name = _name(partition, position, _MANIFEST)
            put(self._blobs, name, [msgspec.json.encode(taken)])
            found.append(taken)
        self._kept[partition] = found[-SNAPSHOTS_KEPT:]
        self._drop_old(partition)

    def _write(
        self, header: Header, stream: Iterator[bytes]
    ) -> Generator[None, None, tuple[int, int]]:
        """Uploads an export and reads it back; how many rows and bytes it has."""
        name, size_bytes = _name(header.partition, header.position, _EXPORT), 0
        with self._blobs.upload(name) as upload:
            for piece in stream:
                upload.write(piece)
                size_bytes += len(piece)
                yield
        reader = ExportReader(self._blobs.get(name), f"{name} in {self.url}")
        for _ in reader.pages():
            yield
        if reader.header != header:
            raise DataLoss(f"Expected {reader.source} to be as it was written, but it is another")
        return reader.rows, size_bytes

    def _drop_old(self, partition: int) -> None:
        """Deletes what no longer counts and what never did; the manifest goes first."""
        kept = {_name(partition, each.position, "") for each in self._kept[partition]}
        oldest = min(kept)
        names = [blob.name for blob in self._blobs.list(_folder(partition))]
        for name in sorted(names, key=lambda each: each.endswith(_EXPORT)):
            snapshot = name.removesuffix(_EXPORT).removesuffix(_MANIFEST)
            if snapshot not in kept and (snapshot < oldest or not self._is_shared):
                self._blobs.delete(name)

    def found(self, partition: int) -> list[StoredSnapshot]:
        """The snapshots of a partition that count, oldest first."""
        names = [blob.name for blob in self._blobs.list(_folder(partition))]
        read = (self._manifest(name) for name in names if name.endswith(_MANIFEST))
        return [manifest for manifest in read if manifest is not None]

    def _manifest(self, name: str) -> StoredSnapshot | None:
        """What is known of a snapshot; None if that cannot be read: then it does not count."""
        try:
            content = b"".join(self._blobs.get(name))
            return msgspec.json.decode(content, type=StoredSnapshot)
        except (NotFound, msgspec.MsgspecError):  # it was deleted meanwhile, or is damaged
            return None

    def kept_from(self) -> Positions:
        """From which offset on the log is needed: that of the older of two snapshots.

        A partition is missing until this process has seen two that count.
        """
        return {
            partition: kept[0].offset
            for partition, kept in self._kept.items()
            if len(kept) >= SNAPSHOTS_KEPT
        }

    def restore(
        self, store: Store, partition: int, earliest: int, end: int
    ) -> Generator[None, None, tuple[bool, list[str]]]:
        """Imports the newest good snapshot that the log, from `earliest` to `end`, goes on from.

        Whether there was one, and what was done. DataLoss where a snapshot is ahead of the log.
        """
        done: list[str] = []
        for each in reversed(self.found(partition)):
            name = _name(partition, each.position, _EXPORT)
            try:
                header = header_of(self._blobs, name)
            except (DataLoss, InvalidArgument, NotFound) as error:
                done.append(f"{name} is not used: {error.message}")
                continue
            if header.offset > end:
                raise self._ahead(header, end)
            if header.offset < earliest:
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

    def _ahead(self, header: Header, end: int) -> DataLoss:
        return DataLoss(
            f"Expected the log of partition {header.partition} to reach to {header.offset}, as a"
            f" snapshot in {self.url} does, but it ends before {end}: records that were"
            " acknowledged are missing; restore the journal's folder from a copy, or, if this is"
            " another node, give it a snapshot store of its own",
            partition=header.partition, store=self.url,
        )  # fmt: skip


def _folder(partition: int) -> str:
    return f"partitions/{partition:05}/"


def _name(partition: int, position: int, kind: str) -> str:
    return f"{_folder(partition)}{position:020}{kind}"
