"""A store in memory, for the simulation: on `crash` it falls back to what was last flushed."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.errors import DataLoss


class MemoryStore:
    """An ordered map of bytes that forgets what was not flushed when the power goes."""

    def __init__(self, rows: dict[bytes, bytes] | None = None) -> None:
        self._rows = dict(rows or {})
        self._order = sorted(self._rows)
        self._durable = dict(self._rows)
        self.checkpoints: dict[Path, dict[bytes, bytes]] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [self._rows.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        order, rows = self._order, self._rows
        low, high = bisect_left(order, start), bisect_left(order, end)
        return ((order[at], rows[order[at]]) for at in range(low, high))

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        puts, deletes = list(puts), list(deletes)  # should the caller fail, nothing has changed
        for key, value in puts:
            if key not in self._rows:
                insort(self._order, key)
            self._rows[key] = value
        for key in deletes:
            if self._rows.pop(key, None) is not None:
                del self._order[bisect_left(self._order, key)]

    def flush(self) -> None:
        self._durable = dict(self._rows)

    def checkpoint(self, path: Path) -> None:
        self.checkpoints[path] = dict(self._rows)

    def damaged(self, reason: str) -> DataLoss:
        return DataLoss(f"Expected the state to be as it was written, but {reason}")

    def crash(self) -> "MemoryStore":
        """The store as the next process finds it."""
        return MemoryStore(self._durable)

    def close(self) -> None:
        self.flush()
