"""What a content repository promises; all of them keep it under one contract suite.

A repository is a tree of nodes. A node has a path such as `/pages/home`, properties and children;
its parents are there whenever it is. A property is a plain value, a list of plain values, or a
binary, which is known by its hash and read in pieces.

Changes are made in a change set: all of them are there when it is committed, or none. Notes are
small values beside the tree, written in the same commit: a subscriber keeps its offset in one.
Readers see what is committed, also while a change set is open, and what a walk began with to its
end. A binary that no node refers to any more goes with the commit that drops it.

Calls block, from any thread; call them in a thread where there is a loop. One change set is open at
a time. Paths are what `content.paths.checked_path` accepts.
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


class VerifiedPieces(tuple[bytes, ...]):
    """The pieces of a binary whose hash was checked: a store need not do it again."""

    __slots__ = ()


Scalar = str | int | float | bool | datetime | bytes
Value = Scalar | list[Scalar] | Binary
Properties = Mapping[str, Value]

# Where nodes are files, these properties of a node say what its file is; all others are kept aside.
DATA = "data"  # the binary that the file contains; a node without it is a folder
EXECUTABLE = "executable"  # True: the file may be executed
MODIFIED = "modified"  # the time that the file says it was changed


class ContentNode(NamedTuple):
    """A node as it is read."""

    path: str
    properties: Properties


class ChangeSet(Protocol):
    """Changes in the making. What is not committed when its `with` block ends is dropped.

    A commit that fails has changed nothing; the change set is of no more use then.
    """

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        """The node has these properties from now on, and no others; its children stay.

        Missing parents are made, without properties. Its binaries must be there, or be stored in
        this change set. `offset` is that of the package that brings it.
        """
        ...

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        """Stores a binary that a node refers to; DataLoss if it is not what its hash says.

        One that is there already is not read again. The change set can go on after a DataLoss.
        """
        ...

    def delete(self, path: str) -> None:
        """The node and all below it go, if it is there."""
        ...

    def note(self, name: str, value: bytes | None) -> None:
        """Keeps a small value under a name; None forgets it."""
        ...

    def commit(self) -> None:
        """All of it is durable and visible when this returns; InvalidState if a binary is missing.

        Unknown means that it may be there or not, as when a connection breaks: a note tells.
        """
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
    blocking: bool  # False: it has all in memory, and needs no thread

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
        """The node and all below it, parents first, in the order of their paths.

        Nothing if there is no such node.
        """
        ...

    def has(self, binary: Binary) -> bool:
        """Whether a binary is stored here already."""
        ...

    def read(self, binary: Binary) -> Iterator[bytes]:
        """A binary in pieces; NotFound if it is not here."""
        ...

    def change(self) -> ChangeSet:
        """Begins changes; InvalidState if others are under way here."""
        ...

    def commit_delay_ms(self) -> int:
        """For how long a commit would wait if it were made now.

        A change set can take in more meanwhile, at no cost. 0 wherever commits do not wait.
        """
        ...

    def get_note(self, name: str) -> bytes | None:
        """What was noted under a name."""
        ...

    def close(self) -> None: ...
