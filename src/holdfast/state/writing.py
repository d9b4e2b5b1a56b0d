"""A write of states to the store in slices, so that nobody waits long behind it.

What is written stands still; the states go on changing above it, and read it until the store has
it. The store gets all of it with one write: after a crash it holds this write or the one before.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from holdfast.state.api import Store
from holdfast.state.families import PartitionState, Progress, encode_row, progress_key
from holdfast.state.family import DELETED


class Writing:
    """The committed changes of some states on their way to the store."""

    def __init__(self, store: Store, states: Iterable[tuple[PartitionState, Progress]]) -> None:
        self._store = store
        self._states = list(states)
        self._batch = store.batch()
        frozen = [layer for state, _ in self._states for layer in state.freeze()]
        self._rows: Iterator[tuple[bytes, Any]] = chain.from_iterable(frozen)

    def go_on(self, rows: int) -> bool:
        """Prepares so many rows more; whether the store has all of them now."""
        put, delete, count = self._batch.put, self._batch.delete, 0
        for raw, value in islice(self._rows, rows):
            count += 1
            if value is DELETED:
                delete(raw)
            else:
                put(raw, encode_row(value))
        if count == rows:
            return False
        self._end()
        return True

    def finish(self) -> None:
        """Writes all that is left."""
        self.go_on(sys.maxsize)

    def _end(self) -> None:
        for state, progress in self._states:
            self._batch.put(progress_key(state.partition), encode_row(progress))
        self._store.write_batch(self._batch)
        for state, progress in self._states:
            state.thaw(progress)
