"""Content in memory, for the simulation and for tests: it crashes when it is told to."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import NamedTuple

from holdfast.content.paths import (
    ROOT,
    checked_path,
    child_key,
    key_of,
    keys_from,
    parents,
    path_of,
)
from holdfast.content.repository.api import Binary, ContentNode, Properties
from holdfast.content.repository.checks import (
    already_changing,
    chunks,
    missing_binary,
    no_binary,
    no_longer_open,
)
from holdfast.content.repository.values import (
    NO_PROPERTIES,
    decode_properties,
    kept_properties,
)
from holdfast.limits import CONTENT_CHUNK_BYTES


class _Kept(NamedTuple):
    properties: bytes  # encoded, so that nobody has a hand on what is kept
    offset: int
    binaries: tuple[Binary, ...]


_NEW_PARENT = _Kept(NO_PROPERTIES, 0, ())


def _nothing() -> None:
    pass


class MemoryRepository:
    """A tree in memory. What is committed survives `crash`; what is not is gone.

    `before_commit` and `after_commit` are called where a process may die in a commit; what they
    raise reaches the caller of the commit, and nothing or all of it is there.
    """

    blocking = False

    def __init__(self) -> None:
        self.url = "memory:"
        self.before_commit: Callable[[], None] = _nothing
        self.after_commit: Callable[[], None] = _nothing
        self._nodes: dict[str, _Kept] = {"": _NEW_PARENT}  # by key
        self._keys: list[str] = [""]
        self._binaries: dict[Binary, bytes] = {}
        self._uses: dict[Binary, int] = {}  # how many properties refer to each
        self._dropped: set[Binary] = set()  # by the commit that is under way
        self._notes: dict[str, bytes] = {}
        self.open_changes: _MemoryChanges | None = None

    def crash(self) -> None:
        """The process that used it has died: only what was committed is left."""
        self.open_changes = None

    def clone(self) -> "MemoryRepository":
        """Another one with the same content and notes, as a copied disk has them."""
        other = MemoryRepository()
        other._nodes, other._keys = dict(self._nodes), list(self._keys)
        other._binaries, other._uses = dict(self._binaries), dict(self._uses)
        other._notes = dict(self._notes)
        return other

    def get(self, path: str) -> ContentNode | None:
        kept = self._nodes.get(key_of(checked_path(path)))
        return None if kept is None else ContentNode(path, decode_properties(path, kept.properties))

    def offset_of(self, path: str) -> int:
        kept = self._nodes.get(key_of(checked_path(path)))
        return 0 if kept is None else kept.offset

    def children(self, path: str) -> Iterator[str]:
        first, *rest = self._below(path) or [""]
        return iter([path_of(key) for key in rest if child_key(key, first) == key])

    def walk(self, path: str) -> Iterator[ContentNode]:
        nodes = [(path_of(key), self._nodes[key].properties) for key in self._below(path)]
        return (ContentNode(each, decode_properties(each, kept)) for each, kept in nodes)

    def _below(self, path: str) -> list[str]:
        first, end = keys_from(checked_path(path))
        return self._keys[bisect_left(self._keys, first) : bisect_left(self._keys, end)]

    def has(self, binary: Binary) -> bool:
        return binary in self._binaries

    def read(self, binary: Binary) -> Iterator[bytes]:
        content = self._binaries.get(binary)
        if content is None:
            raise no_binary(binary, self.url)
        starts = range(0, len(content), CONTENT_CHUNK_BYTES)
        return (content[at : at + CONTENT_CHUNK_BYTES] for at in starts)

    def change(self) -> "_MemoryChanges":
        if self.open_changes is not None:
            raise already_changing(self.url)
        self.open_changes = _MemoryChanges(self)
        return self.open_changes

    def commit_delay_ms(self) -> int:
        return 0

    def get_note(self, name: str) -> bytes | None:
        return self._notes.get(name)

    def close(self) -> None:
        self.open_changes = None

    # --- what a change set does ---------------------------------------------------------------

    def end(self, changes: "_MemoryChanges") -> None:
        """The change set is over, however it ended."""
        if self.open_changes is changes:
            self.open_changes = None

    def apply(self, changes: "_MemoryChanges") -> None:
        """Makes the changes of a change set, which can all be made."""
        self._binaries.update(changes.binaries)
        for path, kept in changes.steps:
            if kept is None:
                self._delete(path)
            else:
                self._put(path, kept)
        for name, value in changes.notes.items():
            if value is None:
                self._notes.pop(name, None)
            else:
                self._notes[name] = value
        for binary in self._dropped.union(changes.binaries):
            if self._uses.get(binary, 0) <= 0:
                self._uses.pop(binary, None)
                del self._binaries[binary]
        self._dropped.clear()

    def _put(self, path: str, kept: _Kept) -> None:
        key, uses = key_of(path), self._uses
        former = self._nodes.get(key)
        if former is not None:
            self._drop(former)
        else:
            for parent in map(key_of, parents(path)):
                if parent not in self._nodes:
                    insort(self._keys, parent)
                    self._nodes[parent] = _NEW_PARENT
            insort(self._keys, key)
        for binary in kept.binaries:
            uses[binary] = uses.get(binary, 0) + 1
        self._nodes[key] = kept

    def _delete(self, path: str) -> None:
        for key in self._below(path):
            self._drop(self._nodes.pop(key))
        first, end = keys_from(path)
        del self._keys[bisect_left(self._keys, first) : bisect_left(self._keys, end)]
        if path == ROOT:  # it is always there
            self._nodes[""] = _NEW_PARENT
            self._keys.append("")

    def _drop(self, kept: _Kept) -> None:
        for binary in kept.binaries:
            self._uses[binary] -= 1
            self._dropped.add(binary)


class _MemoryChanges:
    """Changes that are made all at once when they are committed."""

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository
        self.steps: list[tuple[str, _Kept | None]] = []  # None: the path is deleted
        self.binaries: dict[Binary, bytes] = {}
        self.notes: dict[str, bytes | None] = {}

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        self._check()
        _, encoded, binaries = kept_properties(path, properties)
        self.steps.append((path, _Kept(encoded, offset, binaries)))

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        self._check()
        if binary not in self.binaries and not self._repository.has(binary):
            self.binaries[binary] = b"".join(chunks(binary, pieces))

    def delete(self, path: str) -> None:
        self._check()
        self.steps.append((checked_path(path), None))

    def note(self, name: str, value: bytes | None) -> None:
        self._check()
        self.notes[name] = value

    def commit(self) -> None:
        self._check()
        repository = self._repository
        try:
            repository.before_commit()
            self._check()  # it may have crashed
            for path, kept in self.steps:
                for binary in kept.binaries if kept is not None else ():
                    if binary not in self.binaries and not repository.has(binary):
                        raise missing_binary(path, binary.sha256, repository.url)
            repository.apply(self)
        finally:
            repository.end(self)
        repository.after_commit()

    def _check(self) -> None:
        if self._repository.open_changes is not self:
            raise no_longer_open(self._repository.url)

    def __enter__(self) -> "_MemoryChanges":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._repository.end(self)
