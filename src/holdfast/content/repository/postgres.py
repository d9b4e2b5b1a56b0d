"""Content in a schema of PostgreSQL. The only module that imports psycopg.

It is loaded when such a store is opened: nobody else needs the extra `postgres`.
"""

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg import errors, sql

from holdfast.content.paths import ROOT, key_of, keys_from, path_of
from holdfast.content.repository.api import Binary, ContentNode
from holdfast.content.repository.buffer import NodeBatch
from holdfast.content.repository.transactional import TransactionalRepository
from holdfast.content.repository.values import NO_PROPERTIES, decode_properties
from holdfast.errors import (
    Forbidden,
    HoldfastError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.limits import (
    CONTENT_STORE_BUSY_MS_MAX,
    CONTENT_STORE_CONNECT_MS_MAX,
    DISK_FULL_RETRY_MS,
)

_Connection = psycopg.Connection[tuple[Any, ...]]
_SCHEMA = "holdfast_content"  # if the URL names no other one
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_VERSION = 1
_IDLE_READERS_MAX = 4
_WALK_ROWS, _PIECE_ROWS = 200, 2  # fetched at a time; nodes have a few KB, pieces a MiB

# In the order of bytes, as keys are; a text has up to 2,048 of them, an index takes 2,704.
_TABLES = """
CREATE TABLE nodes (
  key text COLLATE "C" PRIMARY KEY, properties bytea NOT NULL, "offset" bigint NOT NULL
);
CREATE TABLE links (key text COLLATE "C", sha256 bytea, PRIMARY KEY (key, sha256));
CREATE INDEX links_by_binary ON links (sha256);
CREATE TABLE notes (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE chunks (
  sha256 bytea, number integer, size_bytes bigint NOT NULL, bytes bytea NOT NULL,
  PRIMARY KEY (sha256, number)
);
ALTER TABLE chunks ALTER bytes SET STORAGE EXTERNAL;
CREATE TABLE content_store (version integer NOT NULL)
"""
_PUT = """
INSERT INTO nodes (key, properties, "offset")
SELECT * FROM unnest(%b::text[], %b::bytea[], %b::bigint[])
ON CONFLICT (key) DO UPDATE SET properties = excluded.properties, "offset" = excluded."offset"
"""
_PARENTS = """
INSERT INTO nodes (key, properties, "offset") SELECT key, %b::bytea, 0 FROM unnest(%b::text[]) key
ON CONFLICT (key) DO NOTHING
"""
_LINK = "INSERT INTO links (key, sha256) SELECT * FROM unnest(%b::text[], %b::bytea[])"
# A seek for each child: what is below them is passed over.
_CHILDREN = """
WITH RECURSIVE child (key) AS (
  (SELECT key FROM nodes WHERE key > %s AND key < %s ORDER BY key LIMIT 1)
  UNION ALL
  SELECT (
    SELECT nodes.key FROM nodes WHERE nodes.key > child.key || chr(2) AND nodes.key < %s
    ORDER BY nodes.key LIMIT 1
  ) FROM child WHERE child.key IS NOT NULL
)
SELECT key FROM child WHERE key IS NOT NULL
"""
_DROP_UNUSED = """
DELETE FROM chunks WHERE sha256 = ANY(%b)
AND NOT EXISTS (SELECT 1 FROM links WHERE links.sha256 = chunks.sha256)
"""
_SIZES = "SELECT sha256, size_bytes FROM chunks WHERE number = 0 AND sha256 = ANY(%b)"


class PostgresRepository(TransactionalRepository):
    """A tree in a schema of a database, such as `postgresql://HOST/DATABASE?schema=NAME`.

    Without a schema it is `holdfast_content`. Whatever else the URL says is for libpq.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__(PostgresTables(url, create))


class PostgresTables:
    """Nodes, notes and binaries in one schema. Connections that break are made anew."""

    def __init__(self, url: str, create: bool) -> None:
        parts = urlsplit(url)
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
        self._schema = settings.pop("schema", _SCHEMA)
        if not _NAME.fullmatch(self._schema):
            raise InvalidArgument(
                "Expected a schema of PostgreSQL as a name of a-z, 0-9 and _, but found"
                f" {self._schema!r}"
            )
        place = parts.netloc.rpartition("@")[2]
        self.url = f"postgresql://{place}{parts.path}?schema={self._schema}"
        settings.setdefault("connect_timeout", str(CONTENT_STORE_CONNECT_MS_MAX // 1_000))
        self._where = parts._replace(query=urlencode(settings)).geturl()
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._writes: _Connection | None = None
        self._dropped: set[bytes] = set()
        self._closed = False
        with self.told("to open it"):
            self._set_up(create)

    def _connect(self) -> _Connection:
        connection = psycopg.connect(self._where, autocommit=True, client_encoding="utf-8")
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        return connection

    def _set_up(self, create: bool) -> None:
        """Makes the tables, if they are not there; two processes that begin at once both can."""
        connection = self._writes = self._connect()
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise InvalidArgument(
                f"Expected a database in UTF8, but {self.url} is in {encoding}; make another one",
                store=self.url,
            )
        if self._version() is None:
            if not create:
                raise NotFound(
                    f"There is no content repository in {self.url}; check the"
                    " database and the schema",
                    store=self.url,
                )
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._schema,))
                if self._version() is None:
                    self._make_tables(connection)
        version = self._version()
        if version != _VERSION:
            raise InvalidArgument(
                f"Expected {self.url} to be a content store of version {_VERSION}, but it is of"
                f" version {version}; name another schema",
                store=self.url,
            )

    def _version(self) -> int | None:
        assert self._writes is not None
        name = f"{self._schema}.content_store"
        found = self._writes.execute("SELECT to_regclass(%s)", (name,)).fetchone()
        if found == (None,):
            return None
        row = self._writes.execute("SELECT version FROM content_store").fetchone()
        return None if row is None else row[0]

    def _make_tables(self, connection: _Connection) -> None:
        schema = sql.Identifier(self._schema)
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        asked = "SELECT 1 FROM pg_tables WHERE schemaname = %s"
        if connection.execute(asked, (self._schema,)).fetchone() is not None:
            raise InvalidArgument(
                f"The schema {self._schema} of {self.url} has tables of another application; name"
                " another one: ?schema=NAME",
                store=self.url,
            )
        connection.execute(_TABLES.encode())
        connection.execute(_PARENTS, (NO_PROPERTIES, [""]))
        connection.execute("INSERT INTO content_store VALUES (%s)", (_VERSION,))

    # --- connections ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def told(self, what: str) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: psycopg.Error) -> HoldfastError:
        reason = " ".join(str(error).split()) or type(error).__name__
        text = f"Expected {what} in {self.url}, but {reason}"
        if isinstance(error, errors.DiskFull):
            return ResourceExhausted(
                f"{text}; make room on its disk", store=self.url, retry_after_ms=DISK_FULL_RETRY_MS
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return Forbidden(f"{text}; grant it to the user of the URL", store=self.url)
        if isinstance(error, errors.LockNotAvailable):
            return Unavailable(f"{text}; another process is writing it", store=self.url)
        return Unavailable(f"{text}; check the server and the URL", store=self.url)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[_Connection]:
        """A connection that nobody else uses until the block ends."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        connection = idle or self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                is_kept = not (self._closed or connection.closed)
                is_kept = is_kept and len(self._idle) < _IDLE_READERS_MAX
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def close(self) -> None:
        self._closed = True
        self._close_idle()
        if self._writes is not None:
            self._writes.close()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # --- reading --------------------------------------------------------------------------------

    def _one(self, what: str, asked: str, value: object) -> Any:
        """The first column of the first row."""
        with self.told(what):
            try:
                return self._ask(asked, value)
            except psycopg.OperationalError:  # it may have broken long ago, while it was idle
                self._close_idle()
                return self._ask(asked, value)

    def _ask(self, asked: str, value: object) -> Any:
        with self._reading() as connection:
            found = connection.execute(asked.encode(), (value,), binary=True).fetchone()
        return None if found is None else found[0]

    def _rows(self, asked: str, values: tuple[object, ...], at_a_time: int) -> Iterator[Any]:
        """Rows as they were when the first one was fetched, a few at a time."""
        self._one("to read it", "SELECT %s::bigint", 1)  # replaces connections that have broken
        with (
            self._reading() as connection,
            connection.transaction(),
            connection.cursor(name="rows", binary=True) as rows,
        ):
            rows.itersize = at_a_time
            rows.execute(asked.encode(), values)
            yield from rows

    def get(self, path: str) -> ContentNode | None:
        asked = "SELECT properties FROM nodes WHERE key = %s"
        found = self._one(f"to read {path}", asked, key_of(path))
        return None if found is None else ContentNode(path, decode_properties(path, found))

    def offset_of(self, path: str) -> int:
        asked = 'SELECT "offset" FROM nodes WHERE key = %s'
        return self._one(f"to read {path}", asked, key_of(path)) or 0

    def children(self, path: str) -> Iterator[str]:
        first, end = keys_from(path)
        with self.told(f"to list {path}"):
            for (key,) in self._rows(_CHILDREN, (first, end, end), _WALK_ROWS):
                yield path_of(key)

    def walk(self, path: str) -> Iterator[ContentNode]:
        asked = "SELECT key, properties FROM nodes WHERE key >= %s AND key < %s ORDER BY key"
        with self.told(f"to walk {path}"):
            for key, properties in self._rows(asked, keys_from(path), _WALK_ROWS):
                each = path_of(key)
                yield ContentNode(each, decode_properties(each, properties))

    def get_note(self, name: str) -> bytes | None:
        return self._one(
            f"to read the note {name}", "SELECT value FROM notes WHERE name = %s", name
        )

    def size_of(self, sha256: bytes) -> int | None:
        asked = "SELECT size_bytes FROM chunks WHERE number = 0 AND sha256 = %s"
        return self._one("to look for a binary", asked, sha256)

    def pieces(self, sha256: bytes) -> Iterator[bytes]:
        asked = "SELECT bytes FROM chunks WHERE sha256 = %s ORDER BY number"
        with self.told("to read a binary"):
            for (piece,) in self._rows(asked, (sha256,), _PIECE_ROWS):
                yield piece

    # --- writing --------------------------------------------------------------------------------

    def _write(self, asked: str, *values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        assert self._writes is not None
        return self._writes.execute(asked.encode(), values, binary=True)

    def begin(self) -> None:
        """Begins a transaction; one that another process has begun is waited for."""
        self._dropped.clear()
        try:
            self._begin()
        except psycopg.OperationalError as error:
            if isinstance(error, errors.LockNotAvailable):
                self.rollback()
                raise
            self._begin()  # on a new connection: the old one was broken

    def _begin(self) -> None:
        if self._writes is None or self._writes.closed:
            self._writes = self._connect()
        self._write("BEGIN")
        self._write(f"SET LOCAL lock_timeout = {CONTENT_STORE_BUSY_MS_MAX}")
        self._write("SELECT pg_advisory_xact_lock(hashtext(%s))", self._schema)

    def commit(self) -> None:
        """Commits; Unknown if the connection breaks before the answer is here."""
        try:
            self._write("COMMIT")
        except psycopg.OperationalError as error:
            raise Unknown(
                f"The connection to {self.url} broke in a commit, which may have been made or not;"
                " read a note to find out",
                store=self.url,
            ) from error

    def rollback(self) -> None:
        connection = self._writes
        if connection is None or connection.closed:
            return
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")

    def write(self, batch: NodeBatch) -> None:
        keys, properties, offsets = (list(each) for each in zip(*batch.rows, strict=True))
        self._write(_PUT, keys, properties, offsets)
        if batch.parents:
            self._write(_PARENTS, NO_PROPERTIES, batch.parents)
        dropped = self._write("DELETE FROM links WHERE key = ANY(%b) RETURNING sha256", keys)
        self._dropped.update(sha256 for (sha256,) in dropped)
        if batch.links:
            linked, sha256s = (list(each) for each in zip(*batch.links, strict=True))
            self._write(_LINK, linked, sha256s)

    def delete(self, path: str) -> None:
        below = "key >= %s AND key < %s"
        dropped = self._write(f"DELETE FROM links WHERE {below} RETURNING sha256", *keys_from(path))
        self._dropped.update(sha256 for (sha256,) in dropped)
        self._write(f"DELETE FROM nodes WHERE {below}", *keys_from(path))
        if path == ROOT:
            self._write(_PARENTS, NO_PROPERTIES, [""])

    def note(self, name: str, value: bytes | None) -> None:
        self._write("DELETE FROM notes WHERE name = %s", name)
        if value is not None:
            self._write("INSERT INTO notes VALUES (%s, %b)", name, value)

    def add_chunk(self, binary: Binary, number: int, chunk: bytes) -> None:
        self._write(
            "INSERT INTO chunks (sha256, number, size_bytes, bytes) VALUES (%b, %s, %s, %b)",
            binary.sha256, number, binary.size_bytes, chunk,
        )  # fmt: skip

    def drop_chunks(self, sha256: bytes) -> None:
        self._write("DELETE FROM chunks WHERE sha256 = %b", sha256)

    def sizes_in_writing(self, sha256s: list[bytes]) -> dict[bytes, int]:
        return dict(self._write(_SIZES, sha256s).fetchall())

    def may_be_unused(self, sha256: bytes) -> None:
        self._dropped.add(sha256)

    def drop_unused(self) -> None:
        if self._dropped:
            self._write(_DROP_UNUSED, list(self._dropped))
