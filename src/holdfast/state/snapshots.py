"""Snapshots: copies of the store to fall back on, and the positions that they stand for.

    state/live                the store that is written
    state/snapshots/<number>  RocksDB checkpoints, newest highest; `positions.json` inside

A node starts from `live`. Where that does not open, it is set aside and the newest snapshot that
opens takes its place; the log brings the rest.
"""

import os
import shutil
from pathlib import Path

import msgspec

from holdfast.errors import DataLoss
from holdfast.limits import SNAPSHOTS_KEPT
from holdfast.state.api import Store
from holdfast.state.rocks import RocksStore

_LIVE = "live"
_SNAPSHOTS = "snapshots"
_POSITIONS = "positions.json"

Positions = dict[int, int]  # partition -> first position that the snapshot does not stand for


class Snapshots:
    """The snapshots in a node's state folder."""

    def __init__(self, folder: Path) -> None:
        self._live = folder / _LIVE
        self._folder = folder / _SNAPSHOTS
        self._folder.mkdir(parents=True, exist_ok=True)

    def open_store(self) -> tuple[RocksStore, list[str]]:
        """The live store, or the newest snapshot that opens; and what had to be done for it."""
        done: list[str] = []
        try:
            return RocksStore(self._live), done
        except DataLoss as error:
            done.append(error.message)
        aside = self._live.with_name(
            f"damaged-{len(list(self._live.parent.glob('damaged-*'))) + 1}"
        )
        self._live.rename(aside)
        done.append(f"set the damaged state aside as {aside}")
        for number in reversed(self.numbers()):
            shutil.copytree(self._path(number), self._live, copy_function=os.link)
            (self._live / _POSITIONS).unlink(missing_ok=True)
            try:
                store = RocksStore(self._live)
            except DataLoss as error:
                done.append(error.message)
                shutil.rmtree(self._live)
                continue
            done.append(f"went back to snapshot {number}")
            return store, done
        done.append("no snapshot opens: the state is rebuilt from the log")
        return RocksStore(self._live), done

    def numbers(self) -> list[int]:
        """The snapshots there are, oldest first."""
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def take(self, store: Store, positions: Positions) -> int:
        """Takes a snapshot that stands at least for these positions; drops those no longer kept."""
        number = (self.numbers() or [0])[-1] + 1
        making = self._folder / f"{number}.making"
        shutil.rmtree(making, ignore_errors=True)
        store.checkpoint(making)
        (making / _POSITIONS).write_bytes(msgspec.json.encode(positions))
        making.rename(self._path(number))
        _sync_folder(self._folder)
        for old in self.numbers()[:-SNAPSHOTS_KEPT]:
            shutil.rmtree(self._path(old))
        return number

    def kept_from(self) -> Positions:
        """The positions of the oldest snapshot that is kept: the log behind them is not needed."""
        numbers = self.numbers()
        if len(numbers) < SNAPSHOTS_KEPT:
            return {}
        raw = (self._path(numbers[0]) / _POSITIONS).read_bytes()
        return msgspec.json.decode(raw, type=dict[int, int], strict=False)

    def _path(self, number: int) -> Path:
        return self._folder / str(number)


def _sync_folder(folder: Path) -> None:
    """A rename is durable once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
