"""The keys that a selection found: files that never change, with a manifest that is written last.

There is a file for each partition, with its keys in their order, in groups of a page: a reader
of the page after a key reads one or two groups of it.
"""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

import os
import re
import shutil
from bisect import bisect_right
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.errors import InvalidArgument, NotFound
from holdfast.limits import PAGE_ITEMS_MAX
from holdfast.pipeline.select.tree import Condition

FOLDER = "_selections"
KEY = "key"
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Run(msgspec.Struct, frozen=True):
    """The file with the keys of one partition, in their order."""

    partition: int
    file: str
    count: int


class SelectionManifest(msgspec.Struct, frozen=True):
    """What was selected, from what, and where it is."""

    table: str
    version: int  # of the table
    positions: dict[int, int]  # by partition, the first that the table did not have yet
    filter: Condition
    visible: Condition  # what the asker may see; a key had to meet both
    runs: dict[int, Run]  # by partition; none of one without keys


class KeyPage(msgspec.Struct, frozen=True):
    """Some keys of a partition, and the cursor for those that follow; None if there are none."""

    keys: list[int]
    next: int | None


class Snapshot:
    """The keys of one selection, to be read page by page."""

    def __init__(self, folder: Path, manifest: SelectionManifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @property
    def name(self) -> str:
        return self.folder.name

    def count(self, partition: int | None = None) -> int:
        if partition is None:
            return sum(run.count for run in self.manifest.runs.values())
        run = self.manifest.runs.get(partition)
        return 0 if run is None else run.count

    def page(
        self, partition: int, cursor: int | None = None, limit: int = PAGE_ITEMS_MAX
    ) -> KeyPage:
        """The keys of a partition that come after a cursor, which is the last key of a page."""
        if not 1 <= limit <= PAGE_ITEMS_MAX:
            raise InvalidArgument(
                f"Expected a limit from 1 to {PAGE_ITEMS_MAX}, but found {limit}", field="limit"
            )
        run = self.manifest.runs.get(partition)
        if run is None:
            return KeyPage([], None)
        # One more than wanted tells whether there is a next page.
        keys = _keys_after(self.folder / run.file, cursor, limit + 1)
        has_more = len(keys) > limit
        return KeyPage(keys[:limit], keys[limit - 1] if has_more else None)

    def sample(self, limit: int) -> list[int]:
        """A few of the keys, from every partition about as many as its share."""
        total = self.count()
        found: list[int] = []
        for partition in self.manifest.runs:
            share = -(-limit * self.count(partition) // total)
            found += self.page(partition, None, max(1, min(share, PAGE_ITEMS_MAX))).keys
        return found[:limit]


def _keys_after(path: Path, cursor: int | None, limit: int) -> list[int]:
    keys: list[int] = []
    with pq.ParquetFile(path) as file:
        for group in range(file.metadata.num_row_groups):
            high = file.metadata.row_group(group).column(0).statistics.max
            if cursor is not None and high <= cursor:
                continue
            found = file.read_row_group(group).column(0).to_pylist()
            start = 0 if cursor is None else bisect_right(found, cursor)
            keys += found[start : start + limit - len(keys)]
            if len(keys) == limit:
                break
    return keys


def write_run(folder: Path, partition: int, keys: pa.Array, file: str) -> Run:
    """Writes some sorted keys; they are safe when this returns."""
    path = folder / file
    with path.open("wb") as out:
        pq.write_table(
            pa.table({KEY: keys}), out, row_group_size=PAGE_ITEMS_MAX, compression="snappy",
            use_dictionary=False, column_encoding={KEY: "DELTA_BINARY_PACKED"},
        )  # fmt: skip
        out.flush()
        os.fsync(out.fileno())
    return Run(partition, file, len(keys))


def folder_of(root: Path, name: str) -> Path:
    """Where a snapshot is, or would be."""
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"Expected a name of letters, digits, - and _, but found {name[:100]!a}", field="name"
        )
    return root / FOLDER / name


def store_manifest(folder: Path, manifest: SelectionManifest) -> Snapshot:
    """Makes a snapshot of what was written: at once and whole, or not at all."""
    draft = folder / f"{_MANIFEST}.draft"
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(manifest))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / _MANIFEST)
    return Snapshot(folder, manifest)


def find_snapshot(root: Path, name: str) -> Snapshot | None:
    """A snapshot that was completed."""
    folder = folder_of(root, name)
    try:
        found = (folder / _MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    return Snapshot(folder, msgspec.json.decode(found, type=SelectionManifest))


def open_snapshot(root: Path, name: str) -> Snapshot:
    """A snapshot that has to be there."""
    found = find_snapshot(root, name)
    if found is None:
        raise NotFound(f"There is no selection with the name {name}", name=name)
    return found


def drop_snapshot(root: Path, name: str) -> None:
    """Removes a snapshot, or what a selection that never ended left; again changes nothing."""
    folder = folder_of(root, name)
    (folder / _MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
