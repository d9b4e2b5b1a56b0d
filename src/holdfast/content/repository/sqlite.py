"""Content in a file of SQLite. A binary is rows of a MiB each, under its hash."""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from types import TracebackType

from holdfast.content.paths import checked_path
from holdfast.content.repository.api import Binary, ContentNode, Properties
from holdfast.content.repository.buffer import NodeBuffer
from holdfast.content.repository.checks import (
    already_changing,
    altered,
    chunks,
    missing_binary,
    no_binary,
    no_longer_open,
)
from holdfast.content.repository.tables import SqliteTables
from holdfast.content.repository.values import binaries_of

_CHUNKS = """
CREATE TABLE chunks (
  sha256 BLOB NOT NULL,
  number INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (sha256, number)
)
"""
_SIZE = "SELECT size_bytes FROM chunks WHERE sha256 = ? AND number = 0"


class SqliteRepository:
    """A tree in one file, which can be copied while nobody has it open."""

    blocking = True

    def __init__(self, file: Path) -> None:
        self.url = f"sqlite:{file}"
        file.parent.mkdir(parents=True, exist_ok=True)
        self._tables = SqliteTables(file, self.url, _CHUNKS)
        self._open: _SqliteChanges | None = None

    def get(self, path: str) -> ContentNode | None:
        return self._tables.get(checked_path(path))

    def offset_of(self, path: str) -> int:
        return self._tables.offset_of(checked_path(path))

    def children(self, path: str) -> Iterator[str]:
        return self._tables.children(checked_path(path))

    def walk(self, path: str) -> Iterator[ContentNode]:
        return self._tables.walk(checked_path(path))

    def has(self, binary: Binary) -> bool:
        with self._tables.told("to look for a binary"), self._tables.reading() as connection:
            found = connection.execute(_SIZE, (binary.sha256,)).fetchone()
        return found == (binary.size_bytes,)

    def read(self, binary: Binary) -> Iterator[bytes]:
        if not self.has(binary):
            raise no_binary(binary, self.url)
        return self._pieces(binary)

    def _pieces(self, binary: Binary) -> Iterator[bytes]:
        asked = "SELECT bytes FROM chunks WHERE sha256 = ? ORDER BY number"
        left = binary.size_bytes
        with self._tables.told("to read a binary"), self._tables.reading() as connection:
            rows = connection.execute(asked, (binary.sha256,))
            try:
                for (piece,) in rows:
                    left -= len(piece)
                    if piece:
                        yield piece
            finally:
                rows.close()
        if left:  # it went between the look and the first row
            raise no_binary(binary, self.url)

    def change(self) -> "_SqliteChanges":
        if self._open is not None:
            raise already_changing(self.url)
        with self._tables.told("to begin changes"):
            self._tables.writes.execute("BEGIN IMMEDIATE")
        self._open = _SqliteChanges(self, self._tables)
        return self._open

    def commit_delay_ms(self) -> int:
        return 0

    def get_note(self, name: str) -> bytes | None:
        return self._tables.get_note(name)

    def close(self) -> None:
        self.end()
        self._tables.close()

    def is_open(self, changes: "_SqliteChanges") -> bool:
        return self._open is changes

    def end(self) -> None:
        """The change set is over; what it has not committed is rolled back."""
        if self._open is not None:
            self._open = None
            with self._tables.told("to roll back"):
                if self._tables.writes.in_transaction:
                    self._tables.writes.execute("ROLLBACK")


class _SqliteChanges:
    """A transaction, and the nodes that are still to be written in it."""

    def __init__(self, repository: SqliteRepository, tables: SqliteTables) -> None:
        self._repository = repository
        self._tables = tables
        self._nodes = NodeBuffer(binaries_of, attrgetter("sha256"))

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        self._check()
        self._nodes.put(path, properties, offset)
        if self._nodes.is_full:
            self._flush()

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        self._check()
        size_bytes = self._size_of(binary)
        if size_bytes is not None:
            if size_bytes != binary.size_bytes:
                raise altered(binary, f"{size_bytes} bytes")
            return
        self._tables.may_be_unused(binary.sha256)
        insert = "INSERT INTO chunks (sha256, number, size_bytes, bytes) VALUES (?, ?, ?, ?)"
        try:
            for number, chunk in enumerate(chunks(binary, pieces)):
                row = (binary.sha256, number, binary.size_bytes, chunk)
                with self._tables.told("to store a binary"):
                    self._tables.writes.execute(insert, row)
        except BaseException:
            self._drop(binary.sha256)
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
            for binary, path in self._nodes.wanted.items():
                if self._size_of(binary) != binary.size_bytes:
                    raise missing_binary(path, binary.sha256, self._repository.url)
            with self._tables.told("to commit changes"):
                for sha256 in self._tables.unused():
                    self._drop(sha256)
                self._tables.writes.execute("COMMIT")
        finally:
            self._repository.end()

    def _flush(self) -> None:
        if self._nodes:
            with self._tables.told("to write nodes"):
                self._tables.write(self._nodes.take())

    def _size_of(self, binary: Binary) -> int | None:
        with self._tables.told("to look for a binary"):
            found = self._tables.writes.execute(_SIZE, (binary.sha256,)).fetchone()
        return None if found is None else found[0]

    def _drop(self, sha256: bytes) -> None:
        with self._tables.told("to drop a binary"):
            self._tables.writes.execute("DELETE FROM chunks WHERE sha256 = ?", (sha256,))

    def _check(self) -> None:
        if not self._repository.is_open(self):
            raise no_longer_open(self._repository.url)

    def __enter__(self) -> "_SqliteChanges":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._repository.is_open(self):
            self._repository.end()
