"""The rows of one family as the store has them: by keys, and by ranges of keys.

Most work is over before it reaches the store. So a scan mostly finds nothing there, and finding
that costs 10 us: where the store is known to have nothing, it is not looked at until it is written.
The first keys of a range are kept in the same way, for callers that ask for the next key.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar

from holdfast.state.api import Store
from holdfast.state.keys import KeyCodec, Within, after

K = TypeVar("K")

_BARE_MAX = 1_024  # ranges that are known to be empty: 0.2 MiB
_UNKNOWN: Final = object()

_NEIGHBOURS_MIN = 32  # below it a walk costs more than a look for each
_FETCHED_MAX = 4  # keys for each of those that are fetched: with more they are no neighbours
_KEYS_SPARE = 4  # the place where a queue was left is often a row that is deleted in memory
_AHEAD_KEYS_MAX = 32  # kept of a range; callers that take more at a time gain nothing


class _Ahead(NamedTuple):
    """The store's next keys of a range, from `start` on."""

    start: Any
    keys: list[Any]
    are_all: bool  # the range has no more


class StoredRows(Generic[K]):
    """What the store has with the prefix of a family."""

    def __init__(self, store: Store, prefix: bytes, key: KeyCodec[K]) -> None:
        self._store = store
        self._prefix = prefix
        self._begin = key.begin
        self._pack: Callable[[K], bytes] = key.packer(prefix)
        self._unpack = key.unpack
        self._bare: dict[Within, K | None] = {}  # parts of keys, and from where on it is empty
        self._fetched: dict[Within, list[K]] = {}  # parts of keys, and all keys with them
        self._ahead: dict[Within, _Ahead] = {}  # by parts of keys

    def get_many(self, raws: list[bytes]) -> list[bytes | None]:
        """The rows of these keys. Neighbours are walked over, at a third of the cost."""
        if len(raws) < _NEIGHBOURS_MIN:
            return self._store.get_many(raws)
        enough = 2 * len(raws)
        walked = self._store.first(min(raws), max(raws) + b"\0", enough)
        if len(walked) == enough:  # they are no neighbours after all
            return self._store.get_many(raws)
        rows = dict(walked)
        if list(rows) == raws:  # they are all that is there
            return list(rows.values())
        return list(map(rows.get, raws))

    def scan(self, within: Within, start: K | None) -> Iterable[tuple[bytes, bytes]]:
        """Rows whose key begins with these parts, in order, from `start` on."""
        if self._is_bare(within, start):
            return ()
        rows = self._store.scan(*self._bounds(within, start))
        first = next(rows, None)
        if first is not None:
            return chain((first,), rows)
        self._note_bare(within, start)
        return ()

    def first_keys(
        self, within: Within, start: K | None, limit: int, hidden: Container[K], more: Container[K]
    ) -> list[K]:
        """The keys of the first of these rows that are not hidden by what lies over the store."""
        if self._is_bare(within, start):
            return []
        if start is None and (known := self._fetched.get(within)) is not None:
            return [key for key in known if key not in hidden and key not in more][:limit]
        ahead = self._ahead.get(within)
        if ahead is not None and start is not None and start >= ahead.start:
            keys = ahead.keys[bisect_left(ahead.keys, start) :]
            found = [key for key in keys if key not in hidden and key not in more]
            if ahead.are_all or len(found) >= limit:
                return found[:limit]
        low, end = self._bounds(within, start)
        page = limit + _KEYS_SPARE
        raws = self._store.first_keys(low, end, page)
        keys = list(map(self._unpack, raws))
        if not keys:
            self._note_bare(within, start)
        elif start is not None and page <= _AHEAD_KEYS_MAX:
            self._note_ahead(within, _Ahead(start, keys, len(keys) < page))
        found = []
        while True:
            found += [key for key in keys if key not in hidden and key not in more]
            if len(found) >= limit or len(keys) < page:
                return found[:limit]
            page = limit - len(found) + _KEYS_SPARE
            raws = self._store.first_keys(raws[-1] + b"\0", end, page)
            keys = list(map(self._unpack, raws))

    def fetch(self, firsts: list[Any]) -> list[K]:
        """All keys that begin with one of these parts, if they are neighbours.

        Until the store is written, or others are fetched, `first_keys` has them at hand.
        """
        self._fetched = {}
        low, _ = self._bounds((min(firsts),), None)
        _, end = self._bounds((max(firsts),), None)
        enough = _FETCHED_MAX * len(firsts)
        raws = self._store.first_keys(low, end, enough)
        if len(raws) == enough:
            return []
        fetched: dict[Any, list[Any]] = {first: [] for first in firsts}
        found: list[Any] = []
        for key in map(self._unpack, raws):
            parts: Any = key
            if (rows := fetched.get(parts[0])) is not None:
                rows.append(key)
                found.append(key)
        self._fetched = {(first,): rows for first, rows in fetched.items()}
        return found

    def written(self) -> None:
        """The store has other rows now."""
        self._bare.clear()
        self._ahead.clear()
        self._fetched = {}

    def _bounds(self, within: Within, start: K | None) -> tuple[bytes, bytes]:
        whole = self._prefix + self._begin(within)
        return whole if start is None else self._pack(start), after(whole)

    def _is_bare(self, within: Within, start: K | None) -> bool:
        """Whether the store is known to have none of these rows."""
        bare: Any = self._bare.get(within, _UNKNOWN)
        return bare is not _UNKNOWN and (bare is None or (start is not None and start >= bare))

    def _note_bare(self, within: Within, start: K | None) -> None:
        if len(self._bare) >= _BARE_MAX:
            self._bare.clear()
        self._bare[within] = start

    def _note_ahead(self, within: Within, ahead: _Ahead) -> None:
        if len(self._ahead) >= _BARE_MAX:
            self._ahead.clear()
        self._ahead[within] = ahead
