"""Column families of one partition: typed rows, changed in memory, written to the store in one go.

Changes of a step live in each family's overlay until `write_to` hands them to the store together
with the progress they stand for. A row that is born and dies in between never reaches the store,
which is why short-lived work is cheap. Until a step is committed its changes can be undone, one
command or the whole step.
"""

import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from holdfast.errors import DataLoss
from holdfast.state.api import Store
from holdfast.state.keys import KeyCodec

K = TypeVar("K")
V = TypeVar("V")

EMPTY: Final = b""  # the value of a row that is only its key
_ABSENT: Final = object()
_DELETED: Final = None

_REMEMBERED_ROWS_MAX = 8_192  # about 4 MiB; besides what the store was last given

_NEIGHBOURS_MIN = 32  # below it a walk costs more than a look for each

_PREFIX = struct.Struct(">HB")  # partition, family tag
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


_encode = msgspec.msgpack.Encoder().encode
_decode_progress = msgspec.msgpack.Decoder(Progress).decode


class Family(Generic[K, V]):
    """One column family: rows by typed key, with ordered scans."""

    def __init__(self, state: "PartitionState", tag: int, key: KeyCodec[K], value: Any) -> None:
        self._prefix = _PREFIX.pack(state.partition, tag)
        self._pack = key.packer(self._prefix)
        self._unpack = key.unpack
        self._decode: Callable[[bytes], V] = msgspec.msgpack.Decoder(value).decode
        self._store = state.store
        self._undo = state.undo_log
        self._rows: dict[bytes, Any] = {}  # the overlay: changed since the store was last written
        self._recent: dict[bytes, Any] = {}  # as the store has it: saves reading it back
        self._fresh: set[bytes] = set()  # rows of the overlay that the store does not have
        # The overlay's keys in order, kept up from the first scan on: a family that nobody scans
        # pays nothing. It may name rows that are gone, and a row that died and was born again
        # twice.
        self._order: list[bytes] | None = None

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
        if len(self._recent) < _REMEMBERED_ROWS_MAX:
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
            self._rows[raw] = _DELETED

    def scan(self, prefix: bytes = b"", start: K | None = None) -> Iterator[tuple[K, V]]:
        """Rows whose key bytes begin with `prefix`, in order, from `start` on.

        The rows are those of now: do not change the family while walking it.
        """
        low = self._prefix + prefix if start is None else self._pack(start)
        high = _after(self._prefix + prefix)
        if self._order is None:
            self._order = sorted(self._rows)
        rows, order, skip = self._rows, self._order, len(self._prefix)
        at = bisect_left(order, low)
        for raw, stored in self._store.scan(low, high):
            while at < len(order) and order[at] < raw:
                yield from self._overlaid(order, at, skip)
                at += 1
            if raw not in rows:
                try:
                    row = self._unpack(raw[skip:]), self._decode(stored)
                except (msgspec.MsgspecError, struct.error, ValueError) as error:
                    raise self._undecodable(raw, error) from error
                yield row
        while at < len(order) and order[at] < high:
            yield from self._overlaid(order, at, skip)
            at += 1

    def first_keys(self, prefix: bytes, start: K | None, limit: int) -> list[K]:
        """The keys of the first rows that `scan` would give, for much less than it costs."""
        low = self._prefix + prefix if start is None else self._pack(start)
        high = _after(self._prefix + prefix)
        if self._order is None:
            self._order = sorted(self._rows)
        rows, order = self._rows, self._order
        found: list[bytes] = []
        for raw, _ in self._store.scan(low, high):
            if raw not in rows:
                found.append(raw)
                if len(found) == limit:
                    high = raw  # what the overlay has behind it does not come into question
                    break
        stored = len(found)
        at = bisect_left(order, low)
        while at < len(order) and order[at] < high and len(found) - stored < limit:
            raw = order[at]
            at += 1
            if rows.get(raw) is not _DELETED and not (at > 1 and order[at - 2] == raw):
                found.append(raw)
        if stored and len(found) > stored:
            found.sort()
        unpack, skip = self._unpack, len(self._prefix)
        return [unpack(raw[skip:]) for raw in found[:limit]]

    def _overlaid(self, order: list[bytes], at: int, skip: int) -> Iterator[tuple[K, V]]:
        raw = order[at]
        if at and order[at - 1] == raw:
            return  # a row that died and was born again stands twice in the order
        value: Any = self._rows.get(raw)
        if value is not _DELETED:
            yield self._unpack(raw[skip:]), value

    def restore(self, raw: bytes, old: Any, fresh: bool) -> None:
        """Takes back one change; called by `PartitionState.undo_to`."""
        if old is _ABSENT:
            self._rows.pop(raw, None)
            self._fresh.discard(raw)
            return
        if raw not in self._rows and self._order is not None:
            insort(self._order, raw)
        self._rows[raw] = old
        if fresh:
            self._fresh.add(raw)

    def changes(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> None:
        """Adds the overlay to the lists of a store write."""
        for raw, value in self._rows.items():
            if value is _DELETED:
                deletes.append(raw)
            else:
                puts.append((raw, _encode(value)))

    def forget(self) -> None:
        """The store has the overlay's rows now."""
        self._recent, self._rows = self._rows, {}
        self._fresh.clear()
        if self._order is not None:
            self._order.clear()

    def __len__(self) -> int:
        """How many changed rows are waiting for the store."""
        return len(self._rows)


class PartitionState:
    """All column families of one partition, with the progress they stand for."""

    def __init__(self, store: Store, partition: int) -> None:
        self.store = store
        self.partition = partition
        self.undo_log: list[tuple[Family[Any, Any], bytes, Any, bool]] = []
        self._families: dict[int, Family[Any, Any]] = {}
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
        family: Family[K, V] = Family(self, tag, key, value)
        self._families[tag] = family
        return family

    def when_undone(self, forget: Callable[[], None]) -> None:
        """Whoever remembers something about rows forgets it here when changes are taken back."""
        self._undone.append(forget)

    def mark(self) -> int:
        """A point that `undo_to` can go back to."""
        return len(self.undo_log)

    def undo_to(self, mark: int) -> None:
        """Takes back every change since the mark."""
        log = self.undo_log
        while len(log) > mark:
            family, raw, old, fresh = log.pop()
            family.restore(raw, old, fresh)
        for forget in self._undone:
            forget()

    def commit(self) -> None:
        """The step's records are durable: its changes can no longer be taken back."""
        self.undo_log.clear()

    def changed_rows(self) -> int:
        """How many rows are waiting for the store."""
        # After every step, over all families: a call of `__len__` each would cost 3 us.
        return sum([len(family._rows) for family in self._families.values()])

    def drain(
        self, progress: Progress, puts: list[tuple[bytes, bytes]], deletes: list[bytes]
    ) -> None:
        """Adds all committed changes and the progress they stand for to a store write."""
        assert not self.undo_log, "only committed changes may reach the store"
        for family in self._families.values():
            if len(family):
                family.changes(puts, deletes)
            family.forget()
        puts.append((self._progress_key, _encode(progress)))
        self.stored_progress = progress

    def dump(self) -> list[tuple[bytes, bytes]]:
        """Every row of the partition as the store would hold it, for comparing two states."""
        low = _PREFIX.pack(self.partition, 1)
        rows = dict(self.store.scan(low, _PREFIX.pack(self.partition + 1, 0)))
        puts: list[tuple[bytes, bytes]] = []
        deletes: list[bytes] = []
        for family in self._families.values():
            family.changes(puts, deletes)
        rows.update(puts)
        for raw in deletes:
            rows.pop(raw, None)
        return sorted(rows.items())


def _after(prefix: bytes) -> bytes:
    """The smallest bytes that are larger than everything beginning with the prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")
