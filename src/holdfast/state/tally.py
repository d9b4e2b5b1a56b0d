"""Counts of rows by name: what a scan of all of them would count, kept while they change.

Counts are in memory and reach the store in the same write as the rows they count. So they are right
after a restart: the store has both of one moment, and replay counts the rest. Whether the counts in
a store are of the same moment as its rows is in its progress: a version that did not count has left
the mark out, and the rows are counted once when the state is opened.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from holdfast.state.api import Store
from holdfast.state.keys import after
from holdfast.state.packed import DELETED, Packed
from holdfast.state.undo import UndoLog

_decode = msgspec.msgpack.Decoder(int).decode


def _as_they_are(keys: Iterable[bytes]) -> Iterable[bytes]:
    return keys


class Tally:
    """How many rows there are of each name."""

    def __init__(self, store: Store, undo_log: UndoLog, prefix: bytes, *, is_valid: bool) -> None:
        self._undo = undo_log
        self._prefix = prefix
        self._stored: dict[str, int] = {}  # or will be, when the write that is under way ends
        self._frozen: dict[bytes, int | None] = {}
        for raw, stored in store.scan(prefix, after(prefix)):
            try:
                self._stored[raw[len(prefix) :].decode()] = _decode(stored)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                problem = f"the count {raw.hex()} does not decode: {error}"
                raise store.damaged(problem) from error
        self.counts: dict[str, int] = defaultdict(int, self._stored if is_valid else {})

    def add(self, name: str, by: int) -> None:
        """So many more rows of a name, or fewer."""
        self.counts[name] += by
        self._undo.extend((self, name, by, False))

    def restore(self, name: str, by: int, _: bool) -> None:
        """Takes back one change; called by `PartitionState.undo_to`."""
        self.counts[name] -= by

    def freeze(self) -> Packed:
        """The counts that the store does not have; it gets them with the rows."""
        self._frozen = self._changes()
        self._stored = {name: count for name, count in self.counts.items() if count}
        return Packed(self._frozen, _as_they_are)

    def thaw(self) -> None:
        """The store has the counts that stood still."""
        self._frozen = {}

    def layers(self) -> list[Packed]:
        """What lies over the store, the lower layer first."""
        return [Packed(each, _as_they_are) for each in (self._frozen, self._changes())]

    def _changes(self) -> dict[bytes, int | None]:
        stored, counts = self._stored, self.counts
        changed: dict[bytes, int | None] = {}
        for name in {**stored, **counts}:
            count = counts.get(name, 0)
            if count != stored.get(name, 0):
                changed[self._prefix + name.encode()] = count or DELETED
        return changed
