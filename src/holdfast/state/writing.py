"""A write of states to the store in slices, so that nobody waits long behind it.

What is written stands still; the states go on changing above it, and read it until the store has
it. The store gets all of it with one write: after a crash it holds this write or the one before.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from holdfast.state.api import Store
from holdfast.state.families import PartitionState, Progress, progress_key
from holdfast.state.packed import encode_row


class Writing:
    """The committed changes of some states on their way to the store."""

    def __init__(self, store: Store, states: Iterable[tuple[PartitionState, Progress]]) -> None:
        self._store = store
        self._states = list(states)
        self._batch = store.batch()
        frozen = [layer for state, _ in self._states for layer in state.freeze()]
        self._left = sum(len(layer.rows) for layer in frozen)
        self._changes: Iterator[None] = chain.from_iterable(
            layer.into(self._batch) for layer in frozen
        )

    def go_on(self, rows: int) -> bool:
        """Prepares so many rows more; whether the store has all of them now."""
        deque(islice(self._changes, rows), maxlen=0)
        self._left -= rows
        if self._left > 0:
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
