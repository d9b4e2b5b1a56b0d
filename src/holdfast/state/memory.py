"""A store in memory, for the simulation: on `crash` it falls back to what was last flushed."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from weakref import WeakSet

from holdfast.errors import DataLoss
from holdfast.state.api import Batch


class _Scan:
    """The rows of when it began: it reads as it goes, and takes the rest before a write."""

    def __init__(self, order: list[bytes], rows: dict[bytes, bytes], low: int, high: int) -> None:
        self._order = order
        self._rows = rows
        self._places = range(low, high)
        self._rest: Iterator[tuple[bytes, bytes]] = self._read()

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        return next(self._rest)

    def take_the_rest(self) -> None:
        self._rest = iter(list(self._rest))

    def _read(self) -> Iterator[tuple[bytes, bytes]]:
        for at in self._places:
            key = self._order[at]
            yield key, self._rows[key]


class MemoryBatch:
    """Changes, put together before they are written."""

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self.changes[key] = value

    def delete(self, key: bytes) -> None:
        self.changes[key] = None


class MemoryStore:
    """An ordered map of bytes that forgets what was not flushed when the power goes."""

    def __init__(self, rows: dict[bytes, bytes] | None = None) -> None:
        self._rows = dict(rows or {})
        self._order = sorted(self._rows)
        self._durable = dict(self._rows)
        self._scans: WeakSet[_Scan] = WeakSet()  # that began since the last write
        self.checkpoints: dict[Path, dict[bytes, bytes]] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [self._rows.get(key) for key in keys]

    def first(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return [(key, self._rows[key]) for key in self.first_keys(start, end, limit)]

    def first_keys(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        low, high = bisect_left(self._order, start), bisect_left(self._order, end)
        return self._order[low : min(high, low + limit)]

    def scan_once(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.scan(start, end)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        low, high = bisect_left(self._order, start), bisect_left(self._order, end)
        scan = _Scan(self._order, self._rows, low, high)
        self._scans.add(scan)
        return scan

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        puts, deletes = list(puts), list(deletes)  # should the caller fail, nothing has changed
        for scan in list(self._scans):
            scan.take_the_rest()
        self._scans.clear()
        for key, value in puts:
            if key not in self._rows:
                insort(self._order, key)
            self._rows[key] = value
        for key in deletes:
            if self._rows.pop(key, None) is not None:
                del self._order[bisect_left(self._order, key)]

    def batch(self) -> Batch:
        return MemoryBatch()

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch), "a batch of another store"
        rows = batch.changes.items()
        self.write([(k, v) for k, v in rows if v is not None], [k for k, v in rows if v is None])

    def remove(self, start: bytes, end: bytes) -> None:
        keys = [key for key, _ in self.scan(start, end)]
        self.write([], keys)
        for key in keys:
            self._durable.pop(key, None)

    def ingest(self, pages: Iterator[Sequence[tuple[bytes, bytes]]]) -> Iterator[None]:
        rows: dict[bytes, bytes] = {}
        for page in pages:
            rows.update(page)
            yield
        self.write(rows.items(), [])
        self._durable.update(rows)

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
