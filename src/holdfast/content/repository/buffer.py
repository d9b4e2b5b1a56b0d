"""Nodes that a change set has taken and its transaction has not: they are written many at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from holdfast.content.paths import key_of, parents
from holdfast.content.repository.api import Properties
from holdfast.content.repository.values import kept_properties
from holdfast.limits import CONTENT_BUFFER_BYTES_MAX, CONTENT_BUFFER_NODES_MAX

Needed = TypeVar("Needed")  # what a node refers to: a binary, or a file that has one


class NodeRow(NamedTuple):
    """A node as tables have it."""

    key: str
    properties: bytes
    offset: int


class NodeBatch(NamedTuple):
    """Nodes to be written in one go, each once."""

    rows: list[NodeRow]
    parents: list[str]  # keys of those that have to be there and may not be yet
    links: list[tuple[str, bytes]]  # the key of a node and the name of what it refers to


class NodeBuffer(Generic[Needed]):
    """Collects nodes; `wanted` has each thing that they need, with the path of one of them."""

    def __init__(
        self,
        needs: Callable[[Properties], Iterable[Needed]],
        name: Callable[[Needed], bytes],  # under which links have it
    ) -> None:
        self.wanted: dict[Needed, str] = {}
        self._needs = needs
        self._name = name
        self._rows: dict[str, NodeRow] = {}
        self._needed: dict[str, list[Needed]] = {}
        self._parents: set[str] = set()
        self._size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write it."""
        return (
            len(self._rows) >= CONTENT_BUFFER_NODES_MAX
            or self._size_bytes >= CONTENT_BUFFER_BYTES_MAX
        )

    def put(self, path: str, properties: Properties, offset: int) -> None:
        """Takes a node; the same path again replaces it."""
        key, encoded = key_of(path), kept_properties(path, properties).encoded
        self._rows[key] = NodeRow(key, encoded, offset)
        self._size_bytes += len(encoded)
        self._parents.update(parents(path))
        self._needed.pop(key, None)
        if needed := list(self._needs(properties)):
            self._needed[key] = needed
            for each in needed:
                self.wanted.setdefault(each, path)

    def take(self) -> NodeBatch:
        """All that was collected, in the order of keys; the buffer is empty then."""
        missing = {key_of(path) for path in self._parents} - self._rows.keys()
        rows = [self._rows[key] for key in sorted(self._rows)]
        batch = NodeBatch(rows, sorted(missing), list(self._links()))
        self._rows, self._needed, self._parents, self._size_bytes = {}, {}, set(), 0
        return batch

    def _links(self) -> Iterator[tuple[str, bytes]]:
        for key, needed in self._needed.items():
            yield from {(key, self._name(each)) for each in needed}
