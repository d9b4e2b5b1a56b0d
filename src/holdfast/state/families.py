"""Column families of one partition, with the progress they stand for.

Changes of a step live in the families' overlays until a `Writing` hands them to the store together
with the progress they stand for. Until a step is committed its changes can be undone, one command
or the whole step.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.state.api import Store
from holdfast.state.family import EMPTY, Family
from holdfast.state.keys import KeyCodec
from holdfast.state.packed import Packed
from holdfast.state.tally import Tally
from holdfast.state.undo import UNDO_ITEMS, UndoLog, undo_last

__all__ = ["EMPTY", "Family", "PartitionState", "Progress"]

K = TypeVar("K")
V = TypeVar("V")

_PREFIX = struct.Struct(">HB")  # partition, family tag
_UNCOUNTED_MAX = 64  # changes, before rows are counted again
_PROGRESS_TAG = 0


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a partition's state stands for its log; written in one piece with the state."""

    applied_position: int = -1  # events up to here are in the state
    processed_position: int = -1  # commands up to here were processed
    key_counter: int = 0  # the last key counter that was given out
    # where the journal is read on from, by its own count; -1: an earlier version, which counted as
    # positions do
    replay_offset: int = -1
    last_ms: int = 0  # the time of the last record
    is_counted: bool = False  # the counts in the store are those of its rows

    @property
    def replay_from(self) -> int:
        """Where the journal is read from to bring the state to the end of the log: an offset."""
        if self.replay_offset >= 0:
            return self.replay_offset
        return min(self.applied_position, self.processed_position) + 1


def partition_range(partition: int) -> tuple[bytes, bytes]:
    """Where the rows of a partition begin in the store, and the first key behind them."""
    return _PREFIX.pack(partition, _PROGRESS_TAG), _PREFIX.pack(partition + 1, _PROGRESS_TAG)


def progress_key(partition: int) -> bytes:
    """The key of a partition's progress: the first of its rows."""
    return _PREFIX.pack(partition, _PROGRESS_TAG)


_decode_progress = msgspec.msgpack.Decoder(Progress).decode


class PartitionState:
    """All column families of one partition, with the progress they stand for."""

    def __init__(self, store: Store, partition: int) -> None:
        self.store = store
        self.partition = partition
        self.undo_log: UndoLog = []
        self._families: dict[int, Family[Any, Any]] = {}
        self._tallies: dict[int, Tally] = {}
        self._overlays: list[dict[Any, Any]] = []  # what the families have for the store
        self._counted = 0  # rows in them, when they were counted last
        self._uncounted = 0  # changes that were committed since
        self._undone: list[Callable[[], None]] = []
        self._progress_key = progress_key(partition)
        stored = store.get(self._progress_key)
        try:
            self.stored_progress = Progress() if stored is None else _decode_progress(stored)
        except msgspec.MsgspecError as error:
            raise store.damaged(f"the progress of {partition} does not decode: {error}") from error

    def family(self, tag: int, key: KeyCodec[K], value: type[V]) -> Family[K, V]:
        """Declares a family; its tag is on disk and never changes."""
        assert tag != _PROGRESS_TAG, "tag 0 holds the progress"
        assert tag not in self._families, f"two families with the tag {tag}"
        prefix = _PREFIX.pack(self.partition, tag)
        family: Family[K, V] = Family(self.store, self.undo_log, prefix, key, value)
        self._families[tag] = family
        self._overlays += family.overlay
        return family

    def tally(self, tag: int) -> Tally:
        """Declares counts of rows; their tag is on disk and never changes."""
        assert tag not in {_PROGRESS_TAG, *self._families, *self._tallies}, f"{tag} is used twice"
        prefix = _PREFIX.pack(self.partition, tag)
        is_valid = self.stored_progress.is_counted
        tally = self._tallies[tag] = Tally(self.store, self.undo_log, prefix, is_valid=is_valid)
        return tally

    def when_undone(self, forget: Callable[[], None]) -> None:
        """Caches of rows register here what to forget when changes are taken back."""
        self._undone.append(forget)

    def mark(self) -> int:
        """A point that `undo_to` can go back to."""
        return len(self.undo_log)

    def undo_to(self, mark: int) -> None:
        """Takes back every change since the mark."""
        log = self.undo_log
        while len(log) > mark:
            undo_last(log)
        for forget in self._undone:
            forget()

    def commit(self) -> None:
        """The step's records are durable: its changes can no longer be taken back."""
        self._uncounted += len(self.undo_log) // UNDO_ITEMS
        self.undo_log.clear()

    def replayed(self) -> None:
        """Changes were made without a commit, because the log has them already."""
        self._uncounted = _UNCOUNTED_MAX + 1

    def changed_rows(self) -> int:
        """How many rows are waiting for the store."""
        self._counted, self._uncounted = sum(map(len, self._overlays)), 0
        return self._counted

    def changed_rows_at_most(self) -> int:
        """An upper bound of `changed_rows`: each change since the last count counts as a row.

        It is asked for after every step, and an exact count looks at 150 dicts: 10 us, because
        their memory is not in the cache.
        """
        if self._uncounted > _UNCOUNTED_MAX:
            return self.changed_rows()
        return self._counted + self._uncounted

    def freeze(self) -> list[Packed]:
        """What was changed stands still from now on, for a write; the state goes on changing."""
        assert not self.undo_log, "only committed changes may reach the store"
        frozen = [each.freeze() for each in (*self._families.values(), *self._tallies.values())]
        self._overlays = [each for family in self._families.values() for each in family.overlay]
        self._counted = self._uncounted = 0
        return frozen

    def thaw(self, progress: Progress) -> None:
        """The store has what stood still, and the progress that it stands for."""
        for each in (*self._families.values(), *self._tallies.values()):
            each.thaw()
        self.stored_progress = progress

    def dump(self) -> list[tuple[bytes, bytes]]:
        """Every row of the partition as the store would hold it, for comparing two states."""
        low = _PREFIX.pack(self.partition, 1)
        rows = dict(self.store.scan(low, _PREFIX.pack(self.partition + 1, 0)))
        for each in (*self._families.values(), *self._tallies.values()):
            for layer in each.layers():
                for raw, stored in layer.as_bytes():
                    if stored is None:
                        rows.pop(raw, None)
                    else:
                        rows[raw] = stored
        return sorted(rows.items())
