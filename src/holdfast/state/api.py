"""What a store of state promises; RocksDB and memory keep it under one contract suite."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from holdfast.errors import DataLoss


class Batch(Protocol):
    """Changes for a store, put together before they are written."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...


class Store(Protocol):
    """An ordered map of bytes with atomic writes.

    What `write` was given is visible at once and durable after `flush` (or earlier). After a crash
    the store holds the writes up to some point in their order, never a part of one.
    """

    def get(self, key: bytes) -> bytes | None:
        """The row, or None if there is none. What cannot be read is DataLoss, here and below."""
        ...

    def get_many(self, keys: list[bytes]) -> list[bytes | None]: ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end in the order of their bytes, as they are now."""
        ...

    def first(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first rows that `scan` would give; many of them cost less than by it."""
        ...

    def first_keys(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        """The keys of these rows."""
        ...

    def scan_once(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Like `scan`, for very many rows that are not read again: they are not cached."""
        ...

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        """Applies all of it or none."""
        ...

    def batch(self) -> Batch:
        """An empty batch for `write_batch`."""
        ...

    def write_batch(self, batch: Batch) -> None:
        """Applies all changes of a batch, in their order, or none."""
        ...

    def remove(self, start: bytes, end: bytes) -> None:
        """Deletes all rows with start <= key < end as a whole, and durably."""
        ...

    def ingest(self, pages: Iterator[Sequence[tuple[bytes, bytes]]]) -> Iterator[None]:
        """Takes in any number of new rows, in the order of their keys, in bounded memory.

        A generator, to be driven to its end: then all of them are there, and durable; before,
        none. Nobody else writes rows of that range meanwhile.
        """
        ...

    def flush(self) -> None:
        """Makes everything written so far durable."""
        ...

    def checkpoint(self, path: Path) -> None:
        """A consistent copy that can be opened on its own; cheap where the store can link files."""
        ...

    def damaged(self, reason: str) -> DataLoss:
        """Notes that the store does not hold what was written to it; the error to raise."""
        ...

    def close(self) -> None: ...
