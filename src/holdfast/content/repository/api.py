"""What a content repository promises; all of them keep it under one contract suite.

A repository is a tree of nodes. A node has a path such as `/pages/home`, properties and children;
its parents are there whenever it is. A property is a plain value, a list of plain values, or a
binary, which is known by its hash and read in pieces.

Changes are made in a change set: all of them are there when it is committed, or none. Notes are
small values beside the tree, written in the same commit: a subscriber keeps its offset in one.
Calls block; whoever has a loop makes them in a thread. One change set is open at a time.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Protocol

import msgspec


class Binary(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """A binary, by what it contains."""

    sha256: bytes
    size_bytes: int


Scalar = str | int | float | bool | datetime | bytes
Value = Scalar | list[Scalar] | Binary
Properties = Mapping[str, Value]

DATA = "data"  # the binary that a node is, where nodes are files


class ContentNode(NamedTuple):
    """A node as it is read."""

    path: str
    properties: Properties


class ChangeSet(Protocol):
    """Changes in the making. A `with` block that is left by an exception changes nothing."""

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        """The node has these properties from now on, and no others; its children stay.

        Missing parents are made, without properties. Its binaries must be there, or be stored in
        this change set. `offset` is that of the package that brings it.
        """
        ...

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        """Stores a binary that a node refers to; DataLoss if it is not what its hash says."""
        ...

    def delete(self, path: str) -> None:
        """The node and all below it go, if it is there."""
        ...

    def note(self, name: str, value: bytes | None) -> None:
        """Keeps a small value under a name; None forgets it."""
        ...

    def commit(self) -> None:
        """All of it is durable and visible when this returns."""
        ...

    def __enter__(self) -> "ChangeSet": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Repository(Protocol):
    """A tree of content."""

    url: str  # where it is, for messages: without credentials

    def get(self, path: str) -> ContentNode | None:
        """The node, or None if there is none. `/` is always there."""
        ...

    def offset_of(self, path: str) -> int:
        """The offset of the package that last put the node; 0 if there is none, or none did."""
        ...

    def children(self, path: str) -> Iterator[str]:
        """The paths of a node's children, in the order of their names."""
        ...

    def walk(self, path: str) -> Iterator[ContentNode]:
        """The node and all below it, parents first, in the order of their paths."""
        ...

    def has(self, binary: Binary) -> bool:
        """Whether a binary is stored here already."""
        ...

    def read(self, binary: Binary) -> Iterator[bytes]:
        """A binary in pieces; NotFound if it is not here."""
        ...

    def change(self) -> ChangeSet:
        """Begins changes."""
        ...

    def get_note(self, name: str) -> bytes | None:
        """What was noted under a name."""
        ...

    def close(self) -> None: ...
