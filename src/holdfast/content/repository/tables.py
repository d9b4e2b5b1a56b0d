"""Nodes, notes and which node refers to which binary, in a file of SQLite.

Readers have connections of their own, so that they see what is committed and nothing else.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.content.paths import ROOT, child_key, key_of, keys_from, path_of
from holdfast.content.repository.api import ContentNode
from holdfast.content.repository.buffer import NodeBatch
from holdfast.content.repository.values import NO_PROPERTIES, decode_properties
from holdfast.errors import DataLoss, HoldfastError, InvalidArgument, ResourceExhausted, Unavailable
from holdfast.files import sync_folder
from holdfast.limits import (
    CONTENT_CHECKPOINT_BYTES,
    CONTENT_STORE_BUSY_MS_MAX,
    DISK_FULL_RETRY_MS,
)

_APPLICATION = 0x686F6C64  # tells our files from those of others
_VERSION = 1
_IDLE_READERS_MAX = 4
_WAL_RETRY_SECONDS = 0.01

_SCHEMA = """
CREATE TABLE nodes (
  key TEXT NOT NULL UNIQUE,
  properties BLOB NOT NULL,
  offset INTEGER NOT NULL
);
CREATE TABLE links (
  key TEXT NOT NULL,
  sha256 BLOB NOT NULL,
  PRIMARY KEY (key, sha256)
) WITHOUT ROWID;
CREATE INDEX links_by_binary ON links (sha256);
CREATE TABLE notes (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
_FIRST = f"""
INSERT INTO nodes VALUES ('', x'{NO_PROPERTIES.hex()}', 0);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION}
"""
# Hashes whose last node may be gone; what is in it when the change set ends is looked at.
_DROPPED = """
CREATE TEMP TABLE dropped (sha256 BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TRIGGER links_dropped AFTER DELETE ON main.links
BEGIN INSERT OR IGNORE INTO dropped VALUES (old.sha256); END;
"""
_PUT = """
INSERT INTO nodes (key, properties, offset) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET properties = excluded.properties, offset = excluded.offset
"""
_PARENT = "INSERT OR IGNORE INTO nodes (key, properties, offset) VALUES (?, ?, 0)"
_UNUSED = """
SELECT sha256 FROM dropped
WHERE NOT EXISTS (SELECT 1 FROM links WHERE links.sha256 = dropped.sha256)
"""


class SqliteTables:
    """The tables in one file; whatever else the file has is in `schema`."""

    def __init__(self, file: Path, url: str, schema: str = "") -> None:
        self.url = url
        self.file = file
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        with self.told("to open it"):
            self.writes = self._connect()
            try:
                self._set_up(schema)
            except BaseException:
                self.writes.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.file,
            timeout=CONTENT_STORE_BUSY_MS_MAX / 1_000,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _set_up(self, schema: str) -> None:
        """Makes the tables in an empty file; another process that does so is waited for."""
        execute = self.writes.execute
        if self._application() is None:
            self._use_wal()
            execute("BEGIN IMMEDIATE")
            try:
                if self._application() is None:
                    for statement in f"{_SCHEMA};{schema};{_FIRST}".split(";"):
                        execute(statement)
                execute("COMMIT")
            except BaseException:
                execute("ROLLBACK")
                raise
            sync_folder(self.file.parent)
        application, version = self._application() or (0, 0)
        if application != _APPLICATION or version != _VERSION:
            raise InvalidArgument(
                f"Expected {self.url} to be a content store of version {_VERSION}, but it is"
                f" {'another database' if application != _APPLICATION else f'of version {version}'}"
                "; name another file",
                store=self.url,
            )
        execute(f"PRAGMA journal_size_limit = {CONTENT_CHECKPOINT_BYTES}")
        self.writes.executescript(_DROPPED)

    def _use_wal(self) -> None:
        """SQLite itself does not wait for another process that does the same."""
        deadline = time.monotonic() + CONTENT_STORE_BUSY_MS_MAX / 1_000
        while True:
            try:
                self.writes.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(_WAL_RETRY_SECONDS)

    def _application(self) -> tuple[int, int] | None:
        """Whose file it is, and of which version; None if there is nothing in it."""
        asked = """
        SELECT application_id, user_version, EXISTS (SELECT 1 FROM sqlite_master)
        FROM pragma_application_id, pragma_user_version
        """
        application, version, has_tables = self.writes.execute(asked).fetchone()
        return (application, version) if has_tables else None

    @contextlib.contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turns errors of SQLite into ours."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: Exception) -> HoldfastError:
        text = f"Expected {what} in {self.url}, but {error}"
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_FULL":
            return ResourceExhausted(
                f"{text}; make room on the disk", store=self.url, retry_after_ms=DISK_FULL_RETRY_MS
            )
        if name.startswith("SQLITE_CORRUPT"):
            return DataLoss(f"{text}; begin with a copy of another store", store=self.url)
        if name == "SQLITE_NOTADB":
            return InvalidArgument(f"{text}; name another file", store=self.url)
        if name.startswith("SQLITE_BUSY"):
            return Unavailable(f"{text}; another process is writing it", store=self.url)
        return Unavailable(f"{text}; check the file and its disk", store=self.url)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses until the block ends."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        connection = idle or self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                is_kept = not self._closed and len(self._idle) < _IDLE_READERS_MAX
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in (*idle, self.writes):
            connection.close()

    # --- reading ------------------------------------------------------------------------------

    def get(self, path: str) -> ContentNode | None:
        found = self._one("properties", path)
        return None if found is None else ContentNode(path, decode_properties(path, found))

    def offset_of(self, path: str) -> int:
        return self._one("offset", path) or 0

    def _one(self, column: str, path: str) -> Any:
        with self.told(f"to read {path}"), self.reading() as connection:
            asked = f"SELECT {column} FROM nodes WHERE key = ?"
            found = connection.execute(asked, (key_of(path),)).fetchone()
        return None if found is None else found[0]

    def children(self, path: str) -> Iterator[str]:
        with self.told(f"to list {path}"), self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield from self.children_by(connection, path)
            finally:
                connection.execute("COMMIT")

    def children_by(self, connection: sqlite3.Connection, path: str) -> Iterator[str]:
        """A seek for each child: what is below them is passed over."""
        parent, end = keys_from(path)
        asked = "SELECT key FROM nodes WHERE key > ? AND key < ? ORDER BY key LIMIT 1"
        after = parent
        while found := connection.execute(asked, (after, end)).fetchone():
            child = path_of(child_key(found[0], parent))
            yield child
            after = keys_from(child)[1]

    def walk(self, path: str) -> Iterator[ContentNode]:
        asked = "SELECT key, properties FROM nodes WHERE key >= ? AND key < ? ORDER BY key"
        with self.told(f"to walk {path}"), self.reading() as connection:
            rows = connection.execute(asked, keys_from(path))
            try:
                for key, properties in rows:
                    each = path_of(key)
                    yield ContentNode(each, decode_properties(each, properties))
            finally:
                rows.close()

    def get_note(self, name: str) -> bytes | None:
        with self.told(f"to read the note {name}"), self.reading() as connection:
            found = connection.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    # --- writing: in the transaction of `writes` ------------------------------------------------

    def write(self, batch: NodeBatch) -> None:
        """Puts nodes, with what they refer to."""
        self.writes.executemany(_PUT, batch.rows)
        self.writes.executemany(_PARENT, [(key, NO_PROPERTIES) for key in batch.parents])
        if self.writes.execute("SELECT 1 FROM links").fetchone():
            keys = [(row.key,) for row in batch.rows]
            self.writes.executemany("DELETE FROM links WHERE key = ?", keys)
        self.writes.executemany("INSERT INTO links (key, sha256) VALUES (?, ?)", batch.links)

    def delete(self, path: str) -> None:
        """Deletes a node and all below it; `/` stays, without anything."""
        for table in ("links", "nodes"):
            self.writes.execute(f"DELETE FROM {table} WHERE key >= ? AND key < ?", keys_from(path))
        if path == ROOT:
            self.writes.execute(_PARENT, ("", NO_PROPERTIES))

    def note(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.writes.execute("DELETE FROM notes WHERE name = ?", (name,))
        else:
            self.writes.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def may_be_unused(self, sha256: bytes) -> None:
        """A binary was stored; if no node refers to it in the end, it is unused."""
        self.writes.execute("INSERT OR IGNORE INTO dropped VALUES (?)", (sha256,))

    def unused(self) -> list[bytes]:
        """The binaries that no node refers to since this transaction."""
        found = [sha256 for (sha256,) in self.writes.execute(_UNUSED)]
        self.writes.execute("DELETE FROM dropped")
        return found
