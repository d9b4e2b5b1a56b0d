"""Snapshots: copies of the store to fall back on, and the positions that they stand for.

    state/live                the store that is written
    state/snapshots/<number>  independent copies, newest highest; `manifest.json` inside
    state/damaged-<number>    a live store that was found damaged and replaced
    state/restored            a copy of a snapshot that is about to become the live store

A snapshot is copied from a RocksDB checkpoint, read back, and walked over with all of RocksDB's own
checksums before it counts. A node starts from `live`. Where that is missing or damaged, the newest
snapshot that matches its manifest takes its place, as a copy; the log brings the rest. A snapshot
without a manifest is one of an earlier version: it is walked over before it is used, and the log
is never cut behind it.
"""

import errno
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

from holdfast.errors import DataLoss
from holdfast.files import make_folder, sync_folder
from holdfast.limits import DAMAGED_KEPT, SNAPSHOTS_KEPT
from holdfast.state.api import Store
from holdfast.state.copies import (
    Pieces,
    Positions,
    SnapshotManifest,
    check_files,
    copy_folder,
    finish,
    load_manifest,
    store_manifest,
    total_bytes,
)
from holdfast.state.rocks import RocksStore

_LIVE = "live"
_SNAPSHOTS = "snapshots"
_RESTORED = "restored"
_DAMAGED = ".damaged"  # behind the number of a snapshot that does not verify
_ROCKSDB_IS_THERE = "CURRENT"  # the file that every RocksDB has


class Snapshots:
    """The snapshots in a node's state folder."""

    def __init__(self, folder: Path) -> None:
        self.live = folder / _LIVE
        self.restored = folder / _RESTORED
        self._folder = folder / _SNAPSHOTS
        for each in (folder, self._folder):
            make_folder(each)  # its name must be as durable as what the log is cut for

    # --- starting -----------------------------------------------------------------------------

    def open_store(self) -> tuple[RocksStore, list[str]]:
        """The live store, or a copy of the newest good snapshot; and what was done for it."""
        self._clean_up()
        done: list[str] = []
        if (self.live / _ROCKSDB_IS_THERE).exists():
            try:
                return RocksStore(self.live), done
            except DataLoss as error:
                done.append(error.message)
        elif self.live.exists() or self.numbers():
            done.append(f"there is no state in {self.live}")
        if done:
            done += self.go_back()
        return RocksStore(self.live), done

    def go_back(self) -> list[str]:
        """Replaces the live store, which is closed, by a good snapshot; what was done.

        Where no snapshot is good there is no live store afterwards: a new one begins at the log's
        first position, and recovery tells whether the log reaches back so far.
        """
        restoring = self.restore()
        try:
            while True:
                next(restoring)
        except StopIteration as end:
            done: list[str] = end.value
        return done + self.replace_live()

    def restore(self) -> Generator[None, None, list[str]]:
        """Copies the newest good snapshot to `restored`, if there is one; what was done."""
        done: list[str] = []
        for number in reversed(self.numbers()):
            shutil.rmtree(self.restored, ignore_errors=True)
            try:
                yield from self._restore(number)
            except (DataLoss, OSError) as error:
                done.append(f"snapshot {number} is not used: {error}")
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise
                continue
            done.append(f"went back to snapshot {number}")
            return done
        shutil.rmtree(self.restored, ignore_errors=True)
        done.append("no snapshot is good: the state is rebuilt from the log")
        return done

    def _restore(self, number: int) -> Pieces:
        path = self._path(number)
        manifest = load_manifest(path)
        files = yield from copy_folder(path, self.restored)
        if manifest is None:
            yield from _walk(self.restored)
        elif files != manifest.files:
            names = [name for name, copied in manifest.files.items() if files.get(name) != copied]
            raise DataLoss(
                f"Expected the files of {path} to match its manifest, but"
                f" {', '.join(names) or 'others'} differ",
                path=str(path),
            )

    def replace_live(self) -> list[str]:
        """Sets the live store aside, and puts what was restored in its place."""
        done: list[str] = []
        if self.live.exists() and any(self.live.iterdir()):
            aside = self.live.with_name(f"damaged-{(self._damaged() or [0])[-1] + 1}")
            self.live.rename(aside)
            done.append(f"set the state aside as {aside}")
            for old in self._damaged()[:-DAMAGED_KEPT]:
                shutil.rmtree(self.live.with_name(f"damaged-{old}"))
        if self.restored.exists():
            shutil.rmtree(self.live, ignore_errors=True)
            self.restored.rename(self.live)
        sync_folder(self.live.parent)
        return done

    def _damaged(self) -> list[int]:
        names = (path.name.removeprefix("damaged-") for path in self.live.parent.glob("damaged-*"))
        return sorted(int(name) for name in names if name.isdigit())

    def _clean_up(self) -> None:
        """Removes what a process that was interrupted had begun."""
        shutil.rmtree(self.restored, ignore_errors=True)
        for path in self._folder.iterdir():
            if path.suffix in {".making", ".links"}:
                shutil.rmtree(path)

    # --- taking -------------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """The snapshots there are, oldest first, without those that were found damaged."""
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def newest(self) -> tuple[Path, Positions] | None:
        """The folder of the newest snapshot that was read back, and what it stands for."""
        for number in reversed(self.numbers()):
            if (manifest := self._manifest(number)) is not None:
                return self._path(number), manifest.positions
        return None

    def take(self, store: Store, positions: Positions) -> Pieces:
        """Takes a snapshot that stands at least for these positions; drops those no longer kept.

        DataLoss where it does not verify. If RocksDB's checksums say so, the live store is damaged.
        """
        number = self._next_number()
        links, making = (self._folder / f"{number}.{step}" for step in ("links", "making"))
        try:
            store.checkpoint(links)  # RocksDB's files by hard links, to be copied
            self._check_room(total_bytes(links.iterdir()))
            files = yield from copy_folder(links, making)
            shutil.rmtree(links)
            yield from check_files(making, files)
            try:
                yield from _walk(making)
            except DataLoss as error:
                raise store.damaged(f"a copy of it does not verify: {error.message}") from error
            store_manifest(making, SnapshotManifest(files, positions))
            making.rename(self._path(number))
        finally:
            for each in (links, making):
                shutil.rmtree(each, ignore_errors=True)
        sync_folder(self._folder)
        self._drop_old()

    def _next_number(self) -> int:
        names = (path.name.removesuffix(_DAMAGED) for path in self._folder.iterdir())
        return max((int(name) for name in names if name.isdigit()), default=0) + 1

    def _check_room(self, size_bytes: int) -> None:
        # Asked first: a disk that a snapshot fills has no room for the log.
        if shutil.disk_usage(self._folder).free < 2 * size_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))

    def _drop_old(self) -> None:
        """Keeps the newest; those without a manifest until there are enough that have one."""
        checked = [each for each in self.numbers() if self._manifest(each) is not None]
        if len(checked) >= SNAPSHOTS_KEPT:
            for old in self.numbers():
                if old < checked[-SNAPSHOTS_KEPT]:
                    shutil.rmtree(self._path(old))
            for path in self._folder.glob(f"*{_DAMAGED}"):
                shutil.rmtree(path)

    def kept_from(self) -> Positions:
        """The positions of the oldest snapshot that is kept: the log behind them is not needed."""
        found = [
            manifest for each in self.numbers() if (manifest := self._manifest(each)) is not None
        ]
        return found[-SNAPSHOTS_KEPT].positions if len(found) >= SNAPSHOTS_KEPT else {}

    def _manifest(self, number: int) -> SnapshotManifest | None:
        try:
            return load_manifest(self._path(number))
        except DataLoss:
            return None

    # --- files for a copy elsewhere -----------------------------------------------------------

    def links(self, name: str) -> Path:
        """A folder for links to the files of the live store; what is in it is removed.

        A start removes what a process that was interrupted has left of it.
        """
        links = self._folder / f"{name}.links"
        shutil.rmtree(links, ignore_errors=True)
        return links

    @staticmethod
    def drop_links(links: Path) -> None:
        """Nobody needs them any more."""
        shutil.rmtree(links, ignore_errors=True)

    # --- reading again ------------------------------------------------------------------------

    def scrub_live(self, store: Store) -> Pieces:
        """Reads the files of the live store again, past what RocksDB has in its cache."""
        links = self._folder / "live.links"
        shutil.rmtree(links, ignore_errors=True)
        try:
            store.checkpoint(links)  # files that are compacted away meanwhile stay until the end
            yield
            yield from _walk(links)
        except DataLoss as error:
            raise store.damaged(f"its files do not verify: {error.message}") from error
        finally:
            shutil.rmtree(links, ignore_errors=True)

    def scrub(self) -> Iterator[str | None]:
        """Reads all snapshots again, a piece at a time; says which one is damaged.

        A damaged one is not used any more. It is deleted when there are enough others.
        """
        for number in self.numbers():
            path = self._path(number)
            try:
                manifest = load_manifest(path)
                for _ in check_files(path, manifest.files) if manifest is not None else _walk(path):
                    yield None
            except DataLoss as error:
                if not path.exists():  # dropped meanwhile: a newer one took its place
                    continue
                path.rename(path.with_name(f"{number}{_DAMAGED}"))
                yield error.message

    def _path(self, number: int) -> Path:
        return self._folder / str(number)


def verify_state(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Each store in a state folder by its name, and what is wrong with it, or None."""
    snapshots = [path for path in (folder / _SNAPSHOTS).glob("*") if path.name.isdigit()]
    stores = [(f"snapshot {path.name}", path) for path in sorted(snapshots)]
    for name, path in [(_LIVE, folder / _LIVE), *stores]:
        if name == _LIVE and not path.exists() and not stores:
            continue
        try:
            manifest = load_manifest(path) if name != _LIVE else None
            finish(check_files(path, manifest.files) if manifest is not None else _walk(path))
        except DataLoss as error:
            if name == _LIVE or path.exists():
                yield name, error.message
        else:
            yield name, None


def _walk(path: Path) -> Pieces:
    """Reads all rows of a store that nobody has open, with all of RocksDB's checksums."""
    store = RocksStore(path, read_only=True)
    try:
        for _ in store.walk():
            yield
    finally:
        store.abandon()
