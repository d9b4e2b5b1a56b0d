"""One column family: typed rows by key, changed in memory, with ordered scans over all of them.

Two layers lie over the store. The overlay has what changed since the store was last written; while
a write is under way, the rows that it writes stand still below the overlay until the store has
them. A row that is born and dies in the overlay never reaches the store, which is why short-lived
work is cheap.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from functools import lru_cache
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from holdfast.errors import DataLoss
from holdfast.state.api import Store
from holdfast.state.keys import KeyCodec

K = TypeVar("K")
V = TypeVar("V")

EMPTY: Final = b""  # the value of a row that is only its key
DELETED: Final = None  # the value of a row that the store is to delete
_ABSENT: Final = object()

_REMEMBERED_ROWS_MAX = 8_192  # about 4 MiB; besides what the store was last given

_NEIGHBOURS_MIN = 32  # below it a walk costs more than a look for each

Changes = dict[bytes, Any]
"""Rows by packed key: a value, or `DELETED`."""


class Undoable(Protocol):
    """What can take back one of its changes."""

    def restore(self, what: Any, old: Any, fresh: bool, /) -> None: ...


UndoLog = list[tuple[Undoable, Any, Any, bool]]
"""What was there before each change of a step."""


class Family(Generic[K, V]):
    """One column family: rows by typed key, with ordered scans."""

    def __init__(
        self, store: Store, undo_log: UndoLog, prefix: bytes, key: KeyCodec[K], value: Any
    ) -> None:
        self._prefix = prefix
        self._pack = key.packer(prefix)
        self._unpack = key.unpack
        self._decode: Callable[[bytes], V] = msgspec.msgpack.Decoder(value).decode
        self._store = store
        self._undo = undo_log
        self._rows: Changes = {}  # the overlay: changed since the store was last written
        # As the store has them, or will when the write that is under way ends: saves reading back.
        self._recent: Changes = {}
        self._is_frozen = False  # `_recent` is being written: it does not change until then
        self._frozen_order: list[bytes] | None = None  # its keys in order, from the first scan on
        self._fresh: set[bytes] = set()  # rows of the overlay that the store does not have
        # The overlay's keys in order, kept up from the first scan on: a family that nobody scans
        # pays nothing. It may name rows that are gone, and a row that died and was born again
        # twice.
        self._order: list[bytes] | None = None
        self._counts: dict[str, int] | None = None

    def get(self, key: K) -> V | None:
        """The row, from memory if it is there, else from the store; None if there is none."""
        raw = self._pack(key)
        value = self._rows.get(raw, _ABSENT)
        if value is not _ABSENT:
            return value
        value = self._recent.get(raw, _ABSENT)
        if value is not _ABSENT:
            return value
        stored = self._store.get(raw)
        if stored is None:
            return None
        try:
            return self._remember(raw, self._decode(stored))
        except msgspec.MsgspecError as error:
            raise self._undecodable(raw, error) from error

    def get_many(self, keys: list[K]) -> list[V | None]:
        """Like `get` for each key, with one look into the store for all that are not in memory."""
        rows, recent = self._rows, self._recent
        raws = list(map(self._pack, keys))
        values = [rows.get(raw, _ABSENT) for raw in raws]
        for i, value in enumerate(values):
            if value is _ABSENT:
                values[i] = recent.get(raws[i], _ABSENT)
        missing = [i for i, value in enumerate(values) if value is _ABSENT]
        if missing:
            stored = self._stored([raws[i] for i in missing])
            decode = self._decode
            for i, found in zip(missing, stored, strict=True):
                if found is None:
                    values[i] = None
                    continue
                try:
                    values[i] = self._remember(raws[i], decode(found))
                except msgspec.MsgspecError as error:
                    raise self._undecodable(raws[i], error) from error
        return values

    def _stored(self, raws: list[bytes]) -> list[bytes | None]:
        """The stored rows of these keys. Neighbours are walked over, at a third of the cost."""
        if len(raws) < _NEIGHBOURS_MIN:
            return self._store.get_many(raws)
        walked: dict[bytes, bytes] = {}
        for raw, stored in self._store.scan(min(raws), max(raws) + b"\0"):
            walked[raw] = stored
            if len(walked) > 2 * len(raws):  # they are no neighbours after all
                return self._store.get_many(raws)
        return [walked.get(raw) for raw in raws]

    def _remember(self, raw: bytes, value: V) -> V:
        """What was read is mostly read again soon: a job when it is leased and when it ends."""
        if len(self._recent) < _REMEMBERED_ROWS_MAX and not self._is_frozen:
            self._recent[raw] = value
        return value

    def _undecodable(self, raw: bytes, error: Exception) -> DataLoss:
        """The store gave a row that nobody wrote."""
        return self._store.damaged(f"the row {raw.hex()} does not decode: {error}")

    def put(self, key: K, value: V) -> None:
        """Writes a row that may be there already."""
        raw = self._pack(key)
        old = self._rows.get(raw, _ABSENT)
        self._undo.append((self, raw, old, raw in self._fresh))
        if old is _ABSENT and self._order is not None:
            insort(self._order, raw)
        self._rows[raw] = value

    def add(self: "Family[K, int]", key: K, by: int) -> int:
        """Changes a row that is a number, and is 0 where there is none; what it is now."""
        raw = self._pack(key)
        old = self._rows.get(raw, _ABSENT)
        if old is _ABSENT or old is DELETED:
            value = (self.get(key) or 0) + by
            self.put(key, value)
            return value
        self._undo.append((self, raw, old, raw in self._fresh))
        self._rows[raw] = value = old + by
        return value

    def insert(self, key: K, value: V) -> None:
        """Writes a row of which the caller knows that it is new."""
        raw = self._pack(key)
        old = self._rows.get(raw, _ABSENT)
        self._undo.append((self, raw, old, False))
        if old is _ABSENT:
            self._fresh.add(raw)
            if self._order is not None:
                insort(self._order, raw)
        self._rows[raw] = value

    def take(self, key: K) -> V | None:
        """Removes a row and returns it; None if there is none."""
        raw = self._pack(key)
        if raw not in self._fresh:
            value = self.get(key)
            if value is not None:
                self.delete(key)
            return value
        self._fresh.discard(raw)
        value = self._rows.pop(raw)
        self._undo.append((self, raw, value, True))
        return value

    def delete(self, key: K) -> None:
        """Removes a row, if it is there."""
        raw = self._pack(key)
        old = self._rows.get(raw, _ABSENT)
        fresh = raw in self._fresh
        self._undo.append((self, raw, old, fresh))
        if fresh:
            self._fresh.discard(raw)
            del self._rows[raw]
        else:
            if old is _ABSENT and self._order is not None:
                insort(self._order, raw)
            self._rows[raw] = DELETED

    def scan(self, prefix: bytes = b"", start: K | None = None) -> Iterator[tuple[K, V]]:
        """Rows whose key bytes begin with `prefix`, in order, from `start` on.

        The rows are those of now: do not change the family while walking it.
        """
        low = self._prefix + prefix if start is None else self._pack(start)
        high = after(self._prefix + prefix)
        below = self._stored_between(low, high)
        if self._is_frozen:
            below = merge(below, self._frozen_between(low, high), key=itemgetter(0))
        order, unpack, skip = self._overlay_order(), self._unpack, len(self._prefix)
        at = bisect_left(order, low)
        for raw, value in below:
            while at < len(order) and order[at] < raw:
                yield from self._overlaid(order, at, skip)
                at += 1
            yield unpack(raw[skip:]), value
        while at < len(order) and order[at] < high:
            yield from self._overlaid(order, at, skip)
            at += 1

    def unordered(self) -> Iterator[tuple[K, V]]:
        """All rows in no order, so that nobody has to keep the overlay in order from now on."""
        rows, frozen = self._rows, self._recent if self._is_frozen else {}
        unpack, skip = self._unpack, len(self._prefix)
        for raw, value in self._stored_between(self._prefix, after(self._prefix)):
            yield unpack(raw[skip:]), value
        for raw, value in frozen.items():
            if value is not DELETED and raw not in rows:
                yield unpack(raw[skip:]), value
        for raw, value in rows.items():
            if value is not DELETED:
                yield unpack(raw[skip:]), value

    def _stored_between(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, V]]:
        """The store's rows that no layer above it has."""
        rows, frozen = self._rows, self._recent if self._is_frozen else ()
        for raw, stored in self._store.scan(low, high):
            if raw not in rows and raw not in frozen:
                try:
                    value = self._decode(stored)
                except msgspec.MsgspecError as error:
                    raise self._undecodable(raw, error) from error
                yield raw, value

    def _frozen_between(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, V]]:
        """The rows that are being written and that the overlay does not have."""
        rows, frozen = self._rows, self._recent
        for raw in _between(self._order_of_frozen(), low, high):
            value: Any = frozen.get(raw)
            if value is not DELETED and raw not in rows:
                yield raw, value

    def _overlay_order(self) -> list[bytes]:
        if self._order is None:
            self._order = sorted(self._rows)
        return self._order

    def _order_of_frozen(self) -> list[bytes]:
        if self._frozen_order is None:
            self._frozen_order = sorted(self._recent)
        return self._frozen_order

    def first_keys(self, prefix: bytes, start: K | None, limit: int) -> list[K]:
        """The keys of the first rows that `scan` would give, for much less than it costs."""
        low = self._prefix + prefix if start is None else self._pack(start)
        high = after(self._prefix + prefix)
        rows, frozen = self._rows, self._recent if self._is_frozen else ()
        found: list[bytes] = []
        for raw, _ in self._store.scan(low, high):
            if raw not in rows and raw not in frozen:
                found.append(raw)
                if len(found) == limit:
                    high = raw  # what lies over the store behind it does not come into question
                    break
        stored = len(found)
        if self._is_frozen:
            found += [raw for raw, _ in islice(self._frozen_between(low, high), limit)]
        order = self._overlay_order()
        at, end = bisect_left(order, low), len(found) + limit
        while at < len(order) and order[at] < high and len(found) < end:
            raw = order[at]
            at += 1
            if rows.get(raw) is not DELETED and not (at > 1 and order[at - 2] == raw):
                found.append(raw)
        if (stored and len(found) > stored) or self._is_frozen:
            found.sort()
        unpack, skip = self._unpack, len(self._prefix)
        return [unpack(raw[skip:]) for raw in found[:limit]]

    def _overlaid(self, order: list[bytes], at: int, skip: int) -> Iterator[tuple[K, V]]:
        raw = order[at]
        if at and order[at - 1] == raw:
            return  # a row that died and was born again stands twice in the order
        value: Any = self._rows.get(raw)
        if value is not DELETED:
            yield self._unpack(raw[skip:]), value

    def counted_in(self, counts: dict[str, int]) -> None:
        """Rows, which are inserted and deleted only, are counted by the first part of their key.

        Those who change rows count: they know of many at once. What is taken back is counted here.
        """
        self._counts = counts

    def restore(self, raw: bytes, old: Any, fresh: bool) -> None:
        """Takes back one change; called by `PartitionState.undo_to`."""
        if self._counts is not None:
            key: Any = self._unpack(raw[len(self._prefix) :])
            self._counts[key[0]] += 1 if self._rows.get(raw) is DELETED else -1
        if old is _ABSENT:
            self._rows.pop(raw, None)
            self._fresh.discard(raw)
            return
        if raw not in self._rows and self._order is not None:
            insort(self._order, raw)
        self._rows[raw] = old
        if fresh:
            self._fresh.add(raw)

    def freeze(self) -> Changes:
        """The overlay's rows stand still from now on, for a write; changes go to a new overlay."""
        assert not self._is_frozen, "a write is under way"
        self._recent, self._rows = self._rows, {}
        self._is_frozen = True
        self._fresh.clear()
        if self._order is not None:
            self._frozen_order, self._order = self._order, []
        return self._recent

    def thaw(self) -> None:
        """The store has the rows that stood still."""
        self._is_frozen = False
        self._frozen_order = None

    @property
    def changes(self) -> Changes:
        """The rows that wait for the store; another dict after each `freeze`."""
        return self._rows

    def layers(self) -> list[Changes]:
        """What lies over the store, the lower layer first."""
        return [self._recent, self._rows] if self._is_frozen else [self._rows]


@lru_cache(1_024)  # of the same few types of jobs, mostly
def after(prefix: bytes) -> bytes:
    """The smallest bytes that are larger than everything beginning with the prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


def _between(order: list[bytes], low: bytes, high: bytes) -> Iterator[bytes]:
    """Each key of an order from `low` to `high`, once."""
    last = None
    for at in range(bisect_left(order, low), len(order)):
        raw = order[at]
        if raw >= high:
            return
        if raw != last:
            yield raw
        last = raw
