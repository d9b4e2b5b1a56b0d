"""What a tree of files does not say: properties, offsets, notes, and which body a file has.

Each of the two trees has an index. `touched` are the paths of the commit that it was written by:
what the other tree has to catch up with before it is changed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.content.paths import keys_from, path_of
from holdfast.content.repository.api import Binary
from holdfast.content.repository.buffer import NodeBatch
from holdfast.content.repository.directory.bodies import FileBody
from holdfast.content.repository.tables import SqliteTables

_SCHEMA = """
CREATE TABLE files (key TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE bodies (
  name BLOB NOT NULL PRIMARY KEY,
  sha256 BLOB NOT NULL,
  size_bytes INTEGER NOT NULL,
  time_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX bodies_by_binary ON bodies (sha256);
CREATE TABLE touched (key TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE commits (number INTEGER NOT NULL);
INSERT INTO commits VALUES (0)
"""
_BY_KEY = ("nodes", "files", "links")
_COLUMNS = {"nodes": "key, properties, offset", "files": "key, body", "links": "key, sha256"}
# The paths whose files may not be as the index says: those of the commit before, and of this one.
_LATE = "CREATE TEMP TABLE late (key TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID"
_WRONG_KINDS = """
SELECT files.key FROM touched JOIN files ON files.key = touched.key
WHERE files.key = '' OR EXISTS (
  SELECT 1 FROM nodes WHERE nodes.key > files.key AND nodes.key < files.key || char(2)
) LIMIT 1
"""
_TO_MAKE = """
SELECT late.key, files.body FROM late
JOIN nodes ON nodes.key = late.key LEFT JOIN files ON files.key = late.key
WHERE late.key <> '' ORDER BY late.key
"""
_TO_REMOVE = """
SELECT late.key FROM late LEFT JOIN nodes ON nodes.key = late.key
LEFT JOIN files ON files.key = late.key
WHERE late.key <> '' AND (nodes.key IS NULL OR files.key IS NOT NULL) ORDER BY late.key DESC
"""
_NEEDED_ELSEWHERE = "SELECT 1 FROM other.links WHERE sha256 = ?"


class KnownBody(NamedTuple):
    """A file that the index knows, as it was when it was written."""

    name: bytes
    size_bytes: int
    time_ns: int


class TreeIndex(SqliteTables):
    """The index of one of the trees; what it writes is in the transaction of `writes`."""

    def __init__(self, file: Path, url: str) -> None:
        super().__init__(file, url, _SCHEMA)

    def beside(self, other: "TreeIndex") -> None:
        """Names the index of the other tree, from which this one catches up."""
        with self.told("to open it"):
            self.writes.execute("ATTACH ? AS other", (str(other.file),))
            self.writes.execute(_LATE)

    @property
    def number(self) -> int:
        """Of the commit that it was written by."""
        with self.told("to read it"), self.reading() as connection:
            return connection.execute("SELECT number FROM commits").fetchone()[0]

    def bodies_of(self, binary: Binary, *, committed: bool) -> list[KnownBody]:
        """The files that have this binary, as committed or as it is in the making."""
        asked = "SELECT name, size_bytes, time_ns FROM bodies WHERE sha256 = ? AND size_bytes = ?"
        wanted = (binary.sha256, binary.size_bytes)
        with self.told("to look for a binary"):
            if not committed:
                return [KnownBody(*row) for row in self.writes.execute(asked, wanted)]
            with self.reading() as connection:
                return [KnownBody(*row) for row in connection.execute(asked, wanted)]

    # --- catching up --------------------------------------------------------------------------

    def begin(self, *, anew: bool) -> None:
        """Begins a transaction in which it is as the other index, which stands.

        Files of what the other one touched last are late then, or of everything if it is `anew`.
        """
        execute = self.writes.execute
        execute("BEGIN IMMEDIATE")
        execute("DELETE FROM late")
        source = "other.nodes" if anew else "other.touched"
        execute(f"INSERT INTO late SELECT key FROM {source}")
        which = "" if anew else " WHERE key IN (SELECT key FROM late)"
        for table in _BY_KEY:
            columns = _COLUMNS[table]
            execute(f"DELETE FROM {table}{which}")
            execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM other.{table}{which}")
        if anew:
            execute("DELETE FROM bodies")
            execute("INSERT INTO bodies SELECT * FROM other.bodies")
        else:
            named = f"SELECT sha256 FROM other.links{which}"
            execute(f"REPLACE INTO bodies SELECT * FROM other.bodies WHERE name IN ({named})")
        execute("DELETE FROM notes")
        execute("INSERT INTO notes SELECT * FROM other.notes")
        execute("DELETE FROM touched")
        execute("UPDATE commits SET number = 1 + (SELECT number FROM other.commits)")

    def commit(self) -> None:
        self.writes.execute("COMMIT")

    def rollback(self) -> list[bytes]:
        """Rolls back; the names of bodies that may have been made for it."""
        if not self.writes.in_transaction:
            return []
        names = [name for (name,) in self.writes.execute("SELECT sha256 FROM dropped")]
        self.writes.execute("ROLLBACK")
        return names

    # --- changing -----------------------------------------------------------------------------

    def write(self, batch: NodeBatch) -> None:
        super().write(batch)
        keys = [(row.key,) for row in batch.rows]
        self.writes.executemany("DELETE FROM files WHERE key = ?", keys)
        self._touch(keys)
        self._touch([(key,) for key in batch.parents])

    def write_files(self, files: list[tuple[str, bytes]]) -> None:
        """Says which of the nodes that were written are files, and with which bodies."""
        self.writes.executemany("INSERT INTO files (key, body) VALUES (?, ?)", files)

    def delete(self, path: str) -> None:
        asked = "INSERT OR IGNORE INTO touched SELECT key FROM nodes WHERE key >= ? AND key < ?"
        self.writes.execute(asked, keys_from(path))
        self.writes.execute("DELETE FROM files WHERE key >= ? AND key < ?", keys_from(path))
        super().delete(path)

    def _touch(self, keys: list[tuple[str]]) -> None:
        self.writes.executemany("INSERT OR IGNORE INTO touched VALUES (?)", keys)

    def add_body(self, body: FileBody, time_ns: int) -> None:
        row = (body.name, body.binary.sha256, body.binary.size_bytes, time_ns)
        self.writes.execute("REPLACE INTO bodies VALUES (?, ?, ?, ?)", row)

    # --- what a commit asks -------------------------------------------------------------------

    def neither_file_nor_folder(self) -> str | None:
        """A path that would have to be both: it has a body, and children or no name."""
        found = self.writes.execute(_WRONG_KINDS).fetchone()
        return None if found is None else path_of(found[0])

    def children_in_writing(self, path: str) -> Iterator[str]:
        """The children of a node as they are in this transaction."""
        return self.children_by(self.writes, path)

    def touched_parents(self) -> Iterator[str]:
        """The folders in which something is touched."""
        keys = [path_of(key) for (key,) in self.writes.execute("SELECT key FROM touched")]
        return iter(sorted({path.rpartition("/")[0] or "/" for path in keys if path != "/"}))

    def unused_bodies(self) -> list[bytes]:
        """Forgets bodies that no node here has; those of them that the other tree lacks as well."""
        names = self.unused()
        self.writes.executemany("DELETE FROM bodies WHERE name = ?", [(name,) for name in names])
        ask = self.writes.execute
        return [name for name in names if ask(_NEEDED_ELSEWHERE, (name,)).fetchone() is None]

    def knows(self, name: bytes) -> bool:
        asked = "SELECT 1 FROM bodies WHERE name = ?"
        return self.writes.execute(asked, (name,)).fetchone() is not None

    def all_are_late(self) -> None:
        """The tree is not what it was thought to be: all of it is to be made."""
        self.writes.execute("INSERT OR IGNORE INTO late SELECT key FROM nodes")

    def to_remove(self) -> Iterator[str]:
        """Late paths at which there is nothing, or another kind of thing; from below."""
        self.writes.execute("INSERT OR IGNORE INTO late SELECT key FROM touched")
        return (path_of(key) for (key,) in self.writes.execute(_TO_REMOVE))

    def to_make(self) -> Iterator[tuple[str, bytes | None]]:
        """Late paths with the bodies of their files, None for a folder; from the top."""
        return ((path_of(key), body) for key, body in self.writes.execute(_TO_MAKE))
