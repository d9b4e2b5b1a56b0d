"""One column family: typed rows by key, changed in memory, with ordered scans over all of them.

Two layers lie over the store. The overlay has what changed since the store was last written; while
a write is under way, the rows that it writes stand still below the overlay until the store has
them. A row that is born and dies in the overlay never reaches the store, which is why short-lived
work is cheap.

In memory a key is what the caller names it by, a number, a text or a tuple of them; it becomes
bytes for the store alone. The bytes are in the order of the keys, so both layers and the store are
walked side by side.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

import msgspec

from holdfast.errors import DataLoss
from holdfast.state.api import Store
from holdfast.state.keys import KeyCodec, Within, behind
from holdfast.state.packed import DELETED, Packed
from holdfast.state.stored_rows import StoredRows
from holdfast.state.undo import UndoLog

K = TypeVar("K")
V = TypeVar("V")

EMPTY: Final = b""  # the value of a row that is only its key
_ABSENT: Final = object()

_READ_ROWS_MAX = 2_048  # about 1 MiB; besides what the store was last given

_GRAVES_MAX = 4_096  # in the overlay's order; with more it is made anew


class Family(Generic[K, V]):
    """One column family: rows by typed key, with ordered scans."""

    def __init__(
        self, store: Store, undo_log: UndoLog, prefix: bytes, key: KeyCodec[K], value: Any
    ) -> None:
        self._prefix = prefix
        self._pack = key.packer(prefix)
        self._pack_many = key.packer_of_many(prefix)
        self._unpack = key.unpack
        self._decode: Callable[[bytes], V] = msgspec.msgpack.Decoder(value).decode
        self._store = store
        self._below: StoredRows[K] = StoredRows(store, prefix, key)
        self._undo = undo_log
        # The overlay: what changed since the store was last written. A key is in one of the two.
        self._fresh: dict[K, V] = {}  # rows that the store does not have
        self._changed: dict[K, V | None] = {}  # rows that it may have: another value, or `DELETED`
        # As the store has them, or will when the write that is under way ends: saves reading back.
        self._recent: dict[K, V | None] = {}
        self._is_frozen = False  # `_recent` is being written: it does not change until then
        self._read: dict[K, V] = {}  # rows of the store that were read and not changed since
        self._absent: set[K] = set()  # rows that were to be read with others and are not there
        self._frozen_order: list[K] | None = None  # its keys in order, from the first scan on
        # The keys of the overlay's rows in order, kept up from the first scan on until the next
        # write: a family that nobody scans pays nothing. It has all rows that are there. It may
        # name rows that are gone, and a row that died and was born again twice.
        self._order: list[K] | None = None

    def get(self, key: K) -> V | None:
        """The row, from memory if it is there, else from the store; None if there is none."""
        value = self._fresh.get(key)
        if value is not None:
            return value
        if key in self._changed:
            return self._changed[key]
        if key in self._recent:
            return self._recent[key]
        value = self._read.get(key)
        if value is not None or key in self._absent:
            return value
        raw = self._pack(key)
        stored = self._store.get(raw)
        if stored is None:
            return None
        value = self._decoded(raw, stored)
        self._remember({key: value})
        return value

    def get_many(self, keys: list[K]) -> list[V | None]:
        """Like `get` for each key, with one look into the store for all that are not in memory."""
        values: list[Any] = list(map(self._fresh.get, keys))
        changed, recent, read, absent = self._changed, self._recent, self._read, self._absent
        if self._has_none(keys, values):
            return self._read_many(keys)
        missing: list[int] = []
        for i, value in enumerate(values):
            if value is None:
                key = keys[i]
                if key in changed:
                    values[i] = changed[key]
                elif key in recent:
                    values[i] = recent[key]
                elif (value := read.get(key)) is not None:
                    values[i] = value
                elif key not in absent:
                    missing.append(i)
        if missing:
            stored = self._read_many([keys[i] for i in missing])
            for i, value in zip(missing, stored, strict=True):
                values[i] = value
        return values

    def _has_none(self, keys: list[K], values: list[Any]) -> bool:
        """Whether memory knows nothing of these keys, as of the next jobs of a deep queue.

        `values` are what the newest layer has. To find that out so takes a third of the time that
        it takes key by key.
        """
        return (
            values.count(None) == len(keys)
            and self._changed.keys().isdisjoint(keys)
            and self._recent.keys().isdisjoint(keys)
            and self._read.keys().isdisjoint(keys)
            and self._absent.isdisjoint(keys)
        )

    def _read_many(self, keys: list[K]) -> list[V | None]:
        """Rows of the store that are in no layer of memory."""
        raws = list(self._pack_many(keys))
        found, decode = self._below.get_many(raws), self._decode
        try:
            values = [None if stored is None else decode(stored) for stored in found]
        except msgspec.MsgspecError:
            for raw, stored in zip(raws, found, strict=True):
                if stored is not None:
                    self._decoded(raw, stored)
            raise
        rows: dict[K, Any] = dict(zip(keys, values, strict=True))
        if None in values:
            if len(self._absent) > _READ_ROWS_MAX:
                self._absent.clear()
            self._absent.update([key for key, value in rows.items() if value is None])
            rows = {key: value for key, value in rows.items() if value is not None}
        self._remember(rows)
        return values

    def _remember(self, rows: dict[K, V]) -> None:
        """What was read is mostly read again soon: a job when it is leased and when it ends."""
        read = self._read
        read.update(rows)
        if len(read) > _READ_ROWS_MAX:
            # Several at a time: to find the first key of a dict is slow behind ones that are gone.
            spare = len(read) - _READ_ROWS_MAX + _READ_ROWS_MAX // 8
            for key in list(islice(read, spare)):
                del read[key]

    def _decoded(self, raw: bytes, stored: bytes) -> V:
        try:
            return self._decode(stored)
        except msgspec.MsgspecError as error:
            raise self._undecodable(raw, error) from error

    def _undecodable(self, raw: bytes, error: Exception) -> DataLoss:
        """The store gave a row that nobody wrote."""
        return self._store.damaged(f"the row {raw.hex()} does not decode: {error}")

    # --- changes ------------------------------------------------------------------------------

    def put(self, key: K, value: V) -> None:
        """Writes a row that may be there already."""
        old = self._fresh.get(key)
        if old is not None:
            self._undo.extend((self, key, old, True))
            self._fresh[key] = value
        else:
            self._change(key, value)

    def add(self: "Family[K, int]", key: K, by: int) -> int:
        """Changes a row that is a number, and is 0 where there is none; what it is now."""
        old = self._fresh.get(key)
        if old is not None:
            self._undo.extend((self, key, old, True))
            self._fresh[key] = value = old + by
            return value
        old = self.get(key)
        if old is None:
            self.insert(key, by)
            return by
        self._change(key, old + by)
        return old + by

    def insert(self, key: K, value: V) -> None:
        """Writes a row of which the caller knows that it is new."""
        if key in self._changed:  # the store may have had it before
            self._change(key, value)
            return
        self._undo.extend((self, key, _ABSENT, True))
        self._fresh[key] = value
        if self._order is not None:
            self._place(key)

    def take(self, key: K) -> V | None:
        """Removes a row and returns it; None if there is none."""
        value = self._fresh.pop(key, None)
        if value is not None:
            self._undo.extend((self, key, value, True))
            return value
        value = self.get(key)
        if value is not None:
            self._change(key, DELETED)
        return value

    def delete(self, key: K) -> None:
        """Removes a row, if it is there."""
        value = self._fresh.pop(key, None)
        if value is not None:
            self._undo.extend((self, key, value, True))
        else:  # as `_change` does it: with a deep backlog two rows of each job go like this
            self._undo.extend((self, key, self._changed.get(key, _ABSENT), False))
            self._read.pop(key, None)
            self._changed[key] = DELETED

    def _change(self, key: K, value: V | None) -> None:
        """A row that the store may have is another one, or none, from now on."""
        old = self._changed.get(key, _ABSENT)
        self._undo.extend((self, key, old, False))
        self._read.pop(key, None)
        if self._order is not None and value is not DELETED and (old is _ABSENT or old is DELETED):
            self._place(key)
        self._changed[key] = value

    def _place(self, key: Any) -> None:
        """Puts a key into the overlay's order; most are behind all others."""
        order: Any = self._order
        if order and key < order[-1]:
            insort(order, key)
        else:
            order.append(key)

    def restore(self, key: K, old: Any, fresh: bool) -> None:
        """Takes back one change; called by `PartitionState.undo_to`."""
        rows: Any = self._fresh if fresh else self._changed
        if old is _ABSENT:
            del rows[key]
            return
        if self._order is not None and old is not DELETED and rows.get(key) is None:
            self._place(key)
        rows[key] = old

    # --- scans --------------------------------------------------------------------------------

    def scan(self, within: Within = (), start: K | None = None) -> Iterator[tuple[K, V]]:
        """Rows whose key begins with these parts, in order, from `start` on.

        The rows are those of now: do not change the family while walking it.
        """
        order, at, end = self._overlay_order(), *self._bounds(within, start)
        below = self._stored_between(within, start)
        if self._is_frozen:
            below = merge(below, self._frozen_between(within, start), key=itemgetter(0))
        at = 0 if at is None else bisect_left(order, at)
        for key, value in below:
            while at < len(order) and order[at] < key:
                yield from self._overlaid(order, at)
                at += 1
            yield key, value
        while at < len(order) and (end is None or order[at] < end):
            yield from self._overlaid(order, at)
            at += 1

    def unordered(self) -> Iterator[tuple[K, V]]:
        """All rows in no order, so that nobody has to keep the overlay in order from now on."""
        fresh, changed = self._fresh, self._changed
        yield from self._stored_between((), None)
        for key, value in self._recent.items() if self._is_frozen else ():
            if value is not None and key not in fresh and key not in changed:
                yield key, value
        yield from fresh.items()
        for key, value in changed.items():
            if value is not None:
                yield key, value

    def first_keys(self, within: Within, start: K | None, limit: int) -> list[K]:
        """The keys of the first rows that `scan` would give, for much less than it costs."""
        fresh, changed = self._fresh, self._changed
        frozen = self._recent if self._is_frozen else ()
        low, high = self._bounds(within, start)
        found: list[Any] = self._below.first_keys(within, start, limit, changed, frozen)
        stored = len(found)
        if stored == limit:
            high = found[-1]  # what lies over the store behind it does not come into question
        if frozen:
            found += [key for key, _ in islice(self._frozen_between(within, start), limit)]
        order = self._overlay_order()
        at, end = 0 if low is None else bisect_left(order, low), len(found) + limit
        while at < len(order) and (high is None or order[at] < high) and len(found) < end:
            key = order[at]
            at += 1
            if (key in fresh or changed.get(key) is not None) and not (
                at > 1 and order[at - 2] == key
            ):
                found.append(key)
        if (stored and len(found) > stored) or frozen:
            found.sort()
        return found[:limit]

    def fetch_within(self, firsts: list[Any]) -> list[K]:
        """Has the keys of the store at hand that begin with one of these parts, and tells them.

        One look instead of many for `first_keys` within each of them; what lies over the store is
        not looked at here.
        """
        return self._below.fetch(firsts) if firsts else []

    def _bounds(self, within: Within, start: K | None) -> tuple[Any, Any]:
        """The first key of a scan, and the first behind it; None: there is no bound."""
        first = start if start is not None else (within or None)
        return first, behind(within) if within else None

    def _stored_between(self, within: Within, start: K | None) -> Iterator[tuple[K, V]]:
        """The store's rows that no layer above it has."""
        changed, frozen = self._changed, self._recent if self._is_frozen else ()
        unpack = self._unpack
        for raw, stored in self._below.scan(within, start):
            key = unpack(raw)
            if key not in changed and key not in frozen:
                yield key, self._decoded(raw, stored)

    def _frozen_between(self, within: Within, start: K | None) -> Iterator[tuple[K, V]]:
        """The rows that are being written and that the overlay does not have."""
        frozen: Any = self._recent
        low, high = self._bounds(within, start)
        if self._frozen_order is None:
            self._frozen_order = sorted(frozen)
        order: Any = self._frozen_order
        last = None
        for at in range(0 if low is None else bisect_left(order, low), len(order)):
            key = order[at]
            if high is not None and key >= high:
                return
            if key != last and key not in self._changed and key not in self._fresh:
                value = frozen.get(key)
                if value is not None:
                    yield key, value
            last = key

    def _overlay_order(self) -> list[Any]:
        rows = len(self._fresh) + len(self._changed)
        if self._order is None or len(self._order) > 2 * rows + _GRAVES_MAX:
            keys: list[Any] = [*self._fresh]
            keys += [key for key, value in self._changed.items() if value is not DELETED]
            keys.sort()
            self._order = keys
        return self._order

    def _overlaid(self, order: list[K], at: int) -> Iterator[tuple[K, V]]:
        key = order[at]
        if at and order[at - 1] == key:
            return  # a row that died and was born again stands twice in the order
        value = self._fresh.get(key, self._changed.get(key))
        if value is not None:
            yield key, value

    # --- the store ----------------------------------------------------------------------------

    def freeze(self) -> Packed:
        """The overlay's rows stand still from now on, for a write; changes go to a new overlay."""
        assert not self._is_frozen, "a write is under way"
        rows: Any = self._fresh
        more: Any = self._changed
        if len(rows) < len(more):
            rows, more = more, rows
        rows.update(more)
        self._recent, self._fresh, self._changed = rows, {}, {}
        self._is_frozen = True
        self._frozen_order, self._order = self._order, None
        return Packed(rows, self._pack_many)

    def thaw(self) -> None:
        """The store has the rows that stood still."""
        self._is_frozen = False
        self._frozen_order = None
        self._absent.clear()
        self._below.written()

    @property
    def overlay(self) -> tuple[dict[K, Any], dict[K, Any]]:
        """The rows that wait for the store; others after each `freeze`."""
        return self._fresh, self._changed

    def layers(self) -> list[Packed]:
        """What lies over the store, the lower layer first."""
        layers = [self._recent] if self._is_frozen else []
        return [Packed(each, self._pack_many) for each in (*layers, self._fresh, self._changed)]
