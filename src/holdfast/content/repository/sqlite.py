"""Content in a file of SQLite. A binary is rows of a MiB each, under its hash."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.content.repository.api import Binary
from holdfast.content.repository.tables import SqliteTables
from holdfast.content.repository.transactional import TransactionalRepository

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


class SqliteRepository(TransactionalRepository):
    """A tree in one file, which can be copied while nobody has it open."""

    def __init__(self, file: Path) -> None:
        super().__init__(SqliteContent(file))


class SqliteContent(SqliteTables):
    """Nodes and notes with the binaries themselves."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(file, f"sqlite:{file}", _CHUNKS)

    def size_of(self, sha256: bytes) -> int | None:
        with self.told("to look for a binary"), self.reading() as connection:
            found = connection.execute(_SIZE, (sha256,)).fetchone()
        return None if found is None else found[0]

    def pieces(self, sha256: bytes) -> Iterator[bytes]:
        asked = "SELECT bytes FROM chunks WHERE sha256 = ? ORDER BY number"
        with self.told("to read a binary"), self.reading() as connection:
            rows = connection.execute(asked, (sha256,))
            try:
                for (piece,) in rows:
                    yield piece
            finally:
                rows.close()

    def begin(self) -> None:
        self.writes.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.writes.execute("COMMIT")

    def rollback(self) -> None:
        if self.writes.in_transaction:
            self.writes.execute("ROLLBACK")

    def add_chunk(self, binary: Binary, number: int, chunk: bytes) -> None:
        row = (binary.sha256, number, binary.size_bytes, chunk)
        insert = "INSERT INTO chunks (sha256, number, size_bytes, bytes) VALUES (?, ?, ?, ?)"
        self.writes.execute(insert, row)

    def drop_chunks(self, sha256: bytes) -> None:
        self.writes.execute("DELETE FROM chunks WHERE sha256 = ?", (sha256,))

    def sizes_in_writing(self, sha256s: list[bytes]) -> dict[bytes, int]:
        sizes: dict[bytes, int] = {}
        for sha256 in sha256s:
            if found := self.writes.execute(_SIZE, (sha256,)).fetchone():
                sizes[sha256] = found[0]
        return sizes

    def drop_unused(self) -> None:
        for sha256 in self.unused():
            self.drop_chunks(sha256)
