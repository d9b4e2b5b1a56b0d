"""Rows on their way from a column family to the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress, repeat
from operator import is_, is_not
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.state.api import Batch

DELETED: Final = None  # the value of a row that the store is to delete

encode_row = msgspec.msgpack.Encoder().encode


class Packed(NamedTuple):
    """Rows for the store: a value, or `DELETED`, and how their keys become bytes, many together."""

    rows: Mapping[Any, Any]
    pack: Callable[[Iterable[Any]], Iterable[bytes]]

    def into(self, batch: Batch) -> Iterator[None]:
        """Puts a row into a batch, or its deletion, with each step; as many steps as rows.

        Nothing here is code of ours that runs for each row: half of a write's time is saved so.
        """
        rows, pack = self.rows, self.pack
        deleted = compress(rows, map(is_, rows.values(), repeat(DELETED)))
        keys = compress(rows, map(is_not, rows.values(), repeat(DELETED)))
        values = compress(rows.values(), map(is_not, rows.values(), repeat(DELETED)))
        deletes = map(batch.delete, pack(deleted))
        return chain(deletes, map(batch.put, pack(keys), map(encode_row, values)))

    def as_bytes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """The rows as the store would have them; None: deleted."""
        for raw, value in zip(self.pack(self.rows), self.rows.values(), strict=True):
            yield raw, None if value is DELETED else encode_row(value)
