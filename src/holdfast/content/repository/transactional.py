"""A repository in tables that have transactions: what SQLite and PostgreSQL have in common."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from operator import attrgetter
from types import TracebackType
from typing import Protocol

from holdfast.content.paths import checked_path
from holdfast.content.repository.api import Binary, ContentNode, Properties
from holdfast.content.repository.buffer import NodeBatch, NodeBuffer
from holdfast.content.repository.checks import (
    already_changing,
    altered,
    chunks,
    missing_binary,
    no_binary,
    no_longer_open,
)
from holdfast.content.repository.values import binaries_of


class ContentTables(Protocol):
    """Nodes, notes and binaries in chunks. What reads sees what is committed, unless it says so."""

    url: str

    def told(self, what: str) -> AbstractContextManager[None]:
        """Turns errors of the database into ours."""
        ...

    def get(self, path: str) -> ContentNode | None: ...

    def offset_of(self, path: str) -> int: ...

    def children(self, path: str) -> Iterator[str]: ...

    def walk(self, path: str) -> Iterator[ContentNode]: ...

    def get_note(self, name: str) -> bytes | None: ...

    def size_of(self, sha256: bytes) -> int | None: ...

    def pieces(self, sha256: bytes) -> Iterator[bytes]: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def write(self, batch: NodeBatch) -> None:
        """Puts nodes, with what they refer to."""
        ...

    def delete(self, path: str) -> None:
        """Deletes a node and all below it; `/` stays, without anything."""
        ...

    def note(self, name: str, value: bytes | None) -> None: ...

    def add_chunk(self, binary: Binary, number: int, chunk: bytes) -> None: ...

    def drop_chunks(self, sha256: bytes) -> None: ...

    def sizes_in_writing(self, sha256s: list[bytes]) -> dict[bytes, int]:
        """The sizes of those binaries that are there, also by this transaction."""
        ...

    def may_be_unused(self, sha256: bytes) -> None:
        """A binary was stored; if no node refers to it in the end, it is unused."""
        ...

    def drop_unused(self) -> None:
        """Drops the binaries that no node refers to since this transaction."""
        ...

    def close(self) -> None: ...


class TransactionalRepository:
    """A tree in tables; a change set is a transaction."""

    blocking = True

    def __init__(self, tables: ContentTables) -> None:
        self.url = tables.url
        self._tables = tables
        self._open: TransactionalChanges | None = None

    def get(self, path: str) -> ContentNode | None:
        return self._tables.get(checked_path(path))

    def offset_of(self, path: str) -> int:
        return self._tables.offset_of(checked_path(path))

    def children(self, path: str) -> Iterator[str]:
        return self._tables.children(checked_path(path))

    def walk(self, path: str) -> Iterator[ContentNode]:
        return self._tables.walk(checked_path(path))

    def has(self, binary: Binary) -> bool:
        return self._tables.size_of(binary.sha256) == binary.size_bytes

    def read(self, binary: Binary) -> Iterator[bytes]:
        if not self.has(binary):
            raise no_binary(binary, self.url)
        return self._pieces(binary)

    def _pieces(self, binary: Binary) -> Iterator[bytes]:
        left = binary.size_bytes
        for piece in self._tables.pieces(binary.sha256):
            left -= len(piece)
            if piece:
                yield piece
        if left:  # it went between the look and the first row
            raise no_binary(binary, self.url)

    def change(self) -> "TransactionalChanges":
        if self._open is not None:
            raise already_changing(self.url)
        with self._tables.told("to begin changes"):
            self._tables.begin()
        self._open = TransactionalChanges(self, self._tables)
        return self._open

    def commit_delay_ms(self) -> int:
        return 0

    def get_note(self, name: str) -> bytes | None:
        return self._tables.get_note(name)

    def close(self) -> None:
        self.end()
        self._tables.close()

    def is_open(self, changes: "TransactionalChanges") -> bool:
        return self._open is changes

    def end(self) -> None:
        """The change set is over; what it has not committed is rolled back."""
        if self._open is not None:
            self._open = None
            with self._tables.told("to roll back"):
                self._tables.rollback()


class TransactionalChanges:
    """A transaction, and the nodes that are still to be written in it."""

    def __init__(self, repository: TransactionalRepository, tables: ContentTables) -> None:
        self._repository = repository
        self._tables = tables
        self._nodes: NodeBuffer[Binary] = NodeBuffer(binaries_of, attrgetter("sha256"))

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        self._check()
        self._nodes.put(path, properties, offset)
        if self._nodes.is_full:
            self._flush()

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        """Writes a binary chunk by chunk; nothing of it stays if it is not whole."""
        self._check()
        sha256, what = binary.sha256, "to store a binary"
        with self._tables.told(what):
            found = self._tables.sizes_in_writing([sha256]).get(sha256)
            if found is None:
                self._tables.may_be_unused(sha256)
        if found is not None:
            if found != binary.size_bytes:
                raise altered(binary, f"{found} bytes")
            return
        try:
            for number, chunk in enumerate(chunks(binary, pieces)):  # with errors of its own
                with self._tables.told(what):
                    self._tables.add_chunk(binary, number, chunk)
        except BaseException:
            with self._tables.told(what):
                self._tables.drop_chunks(sha256)
            raise

    def delete(self, path: str) -> None:
        self._check()
        checked_path(path)
        self._flush()
        with self._tables.told(f"to delete {path}"):
            self._tables.delete(path)

    def note(self, name: str, value: bytes | None) -> None:
        self._check()
        with self._tables.told(f"to write the note {name}"):
            self._tables.note(name, value)

    def commit(self) -> None:
        self._check()
        try:
            self._flush()
            for binary, path in self._missing().items():
                raise missing_binary(path, binary.sha256, self._repository.url)
            with self._tables.told("to commit changes"):
                self._tables.drop_unused()
                self._tables.commit()
        finally:
            self._repository.end()

    def _flush(self) -> None:
        if self._nodes:
            with self._tables.told("to write nodes"):
                self._tables.write(self._nodes.take())
            self._nodes.wanted = self._missing()  # the others stay until the commit at least

    def _missing(self) -> dict[Binary, str]:
        """The binaries that nodes refer to and that are not there, or not yet."""
        wanted = self._nodes.wanted
        if not wanted:
            return wanted
        with self._tables.told("to look for binaries"):
            sizes = self._tables.sizes_in_writing([each.sha256 for each in wanted])
        return {
            binary: path
            for binary, path in wanted.items()
            if sizes.get(binary.sha256) != binary.size_bytes
        }

    def _check(self) -> None:
        if not self._repository.is_open(self):
            raise no_longer_open(self._repository.url)

    def __enter__(self) -> "TransactionalChanges":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._repository.is_open(self):
            self._repository.end()
