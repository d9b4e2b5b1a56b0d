"""What every content repository promises: the same suite over all stores."""

import hashlib
import itertools
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from postgres_server import postgres_server

from holdfast.content.repository import (
    DATA,
    Binary,
    ChangeSet,
    MemoryRepository,
    Repository,
    open_repository,
)
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.errors import (
    DataLoss,
    InvalidArgument,
    InvalidState,
    NotFound,
    Unavailable,
    Unknown,
)
from holdfast.limits import CONTENT_BUFFER_NODES_MAX, CONTENT_CHUNK_BYTES, MIB

POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))  # one server
_schemas = itertools.count()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as server:
        yield server.dsn


class Place:
    """Where a repository is, so that it can be opened again."""

    def __init__(self, kind: str, folder: Path, server: str = "") -> None:
        self.kind = kind
        self._url = f"{server}?schema=test_{next(_schemas)}"
        self._folder = folder
        self._memory = MemoryRepository()

    def open(self) -> Repository:
        if self.kind == "memory":
            return self._memory
        if self.kind == "postgres":
            return open_repository(self._url)
        if self.kind == "directory":
            return DirectoryRepository(self._folder / "www", grace_ms=0)
        return SqliteRepository(self._folder / "content.sqlite")


@pytest.fixture(params=["memory", "sqlite", "directory", POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param != "postgres":
        return Place(request.param, tmp_path)
    return Place("postgres", tmp_path, request.getfixturevalue("postgres"))


@pytest.fixture
def repository(place: Place) -> Iterator[Repository]:
    opened = place.open()
    yield opened
    opened.close()


def binary_of(content: bytes) -> Binary:
    return Binary(hashlib.sha256(content).digest(), len(content))


def put_file(changes: ChangeSet, path: str, content: bytes) -> Binary:
    binary = binary_of(content)
    changes.store(binary, [content])
    changes.put(path, {DATA: binary})
    return binary


def make(repository: Repository, *paths: str) -> None:
    with repository.change() as changes:
        for path in paths:
            changes.put(path, {"title": path})
        changes.commit()


def walked(repository: Repository, path: str = "/") -> list[str]:
    return [node.path for node in repository.walk(path)]


VALUES = {
    "text": "Grüße 🌍",
    "empty": "",
    "whole": -(2**63),
    "large": 2**63 - 1,
    "fraction": 1.5,
    "truth": True,
    "untruth": False,
    "bytes": b"\x00\xff",
    "time": datetime(2026, 11, 16, 8, 30, 0, 123_456, tzinfo=UTC),
    "list": ["a", 1, 2.5, True, b"x", datetime(1970, 1, 1, tzinfo=UTC)],
    "none": [],
    "looks like a binary": ["b", b"x" * 32, 5],
}


def test_an_empty_repository_has_its_root_and_nothing_else(repository: Repository) -> None:
    node = repository.get("/")
    assert node is not None and node.path == "/" and node.properties == {}
    assert walked(repository) == ["/"] and list(repository.children("/")) == []
    assert repository.get("/a") is None and walked(repository, "/a") == []
    assert repository.offset_of("/a") == 0 and repository.get_note("a") is None


def test_properties_come_back_as_they_were(place: Place) -> None:
    repository = place.open()
    with repository.change() as changes:
        changes.put("/a", VALUES, offset=7)
        changes.commit()
    repository.close()
    repository = place.open()
    node = repository.get("/a")
    assert node is not None and node.properties == VALUES
    assert [type(value) for value in node.properties.values()] == list(map(type, VALUES.values()))
    assert list(repository.walk("/a")) == [node]
    assert repository.offset_of("/a") == 7
    repository.close()


@pytest.mark.parametrize(
    "value",
    [None, {}, [[1]], [None], 2**63, -(2**63) - 1, 1j, datetime(2026, 1, 1), float("nan"),  # noqa: DTZ001
     "\ud800", Binary(b"short", 1), Binary(b"x" * 32, -1), [Binary(b"x" * 32, 1)]],
)  # fmt: skip
def test_a_value_that_cannot_be_kept_is_refused(repository: Repository, value: object) -> None:
    with repository.change() as changes:
        with pytest.raises(InvalidArgument, match="/a"):
            changes.put("/a", {"odd": value})  # type: ignore[dict-item]
        changes.put("/b", {})
        changes.commit()
    assert walked(repository) == ["/", "/b"]


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800"])
def test_a_name_of_a_property_that_cannot_be_kept_is_refused(
    repository: Repository, name: str
) -> None:
    with repository.change() as changes, pytest.raises(InvalidArgument, match="/a"):
        changes.put("/a", {name: 1})


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a/../b", "/./a", "/a\x00b", "/e\u0301"])
def test_a_path_that_is_none_is_refused(repository: Repository, path: str) -> None:
    for ask in (repository.get, repository.offset_of, repository.children, repository.walk):
        with pytest.raises(InvalidArgument, match="content path"):
            ask(path)
    with repository.change() as changes:
        with pytest.raises(InvalidArgument, match="content path"):
            changes.put(path, {})
        with pytest.raises(InvalidArgument, match="content path"):
            changes.delete(path)


def test_a_put_replaces_properties_and_keeps_children(repository: Repository) -> None:
    make(repository, "/a", "/a/b")
    with repository.change() as changes:
        changes.put("/a", {"other": 1}, offset=3)
        changes.commit()
    node = repository.get("/a")
    assert node is not None and node.properties == {"other": 1}
    assert walked(repository) == ["/", "/a", "/a/b"]
    assert repository.offset_of("/a") == 3 and repository.offset_of("/a/b") == 0


def test_the_root_has_properties_like_any_node(repository: Repository) -> None:
    with repository.change() as changes:
        changes.put("/", {"title": "site"}, offset=2)
        changes.put("/a", {})
        changes.commit()
    root = repository.get("/")
    assert root is not None and root.properties == {"title": "site"}
    assert repository.offset_of("/") == 2
    with repository.change() as changes:
        changes.delete("/")
        changes.commit()
    root = repository.get("/")
    assert root is not None and root.properties == {} and walked(repository) == ["/"]
    make(repository, "/b/c")
    assert walked(repository) == ["/", "/b", "/b/c"]


def test_missing_parents_are_made_and_those_that_are_there_stay(repository: Repository) -> None:
    make(repository, "/a")
    with repository.change() as changes:
        changes.put("/a/b/c/d", {}, offset=9)
        changes.commit()
    assert walked(repository) == ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d"]
    kept, made = repository.get("/a"), repository.get("/a/b")
    assert kept is not None and kept.properties == {"title": "/a"}
    assert made is not None and made.properties == {} and repository.offset_of("/a/b") == 0


def test_a_subtree_is_walked_in_the_order_of_paths_and_nothing_beside_it(
    repository: Repository,
) -> None:
    names = ["a", "a b", "a!", "a-b", "a.html", "a0", "aa", "b", "ä", "€", "𐀀", "A", "a'\\\"%_*?"]
    paths = ["/" + name for name in names] + ["/a/x", "/a/x/y", "/a b/z", "/a-b/z"]
    make(repository, *reversed(paths))
    ordered = sorted(paths, key=lambda path: [part.encode() for part in path.split("/")])
    assert walked(repository) == ["/", *ordered]
    assert walked(repository, "/a") == ["/a", "/a/x", "/a/x/y"]
    assert list(repository.children("/")) == [each for each in ordered if each.count("/") == 1]
    assert list(repository.children("/a")) == ["/a/x"]
    assert list(repository.children("/b")) == [] and list(repository.children("/none")) == []
    with repository.change() as changes:
        changes.delete("/a")
        changes.commit()
    left = [each for each in ordered if each != "/a" and not each.startswith("/a/")]
    assert walked(repository) == ["/", *left]


def test_changes_happen_in_the_order_they_are_made(repository: Repository) -> None:
    make(repository, "/a", "/a/old")
    with repository.change() as changes:
        changes.put("/a/new", {"title": "gone"})
        changes.delete("/a")
        changes.put("/a/newest", {"title": "first"})
        changes.put("/a/newest", {"title": "second"}, offset=4)
        changes.delete("/none")
        changes.delete("/a/newest/none")
        changes.commit()
    assert walked(repository) == ["/", "/a", "/a/newest"]
    node = repository.get("/a/newest")
    assert node is not None and node.properties == {"title": "second"}


def test_nothing_is_seen_before_the_commit_and_all_of_it_afterwards(repository: Repository) -> None:
    make(repository, "/a")
    with repository.change() as changes:
        changes.put("/b", {})
        binary = put_file(changes, "/c", b"content")
        changes.delete("/a")
        changes.note("offset", b"1")
        assert walked(repository) == ["/", "/a"] and repository.get("/b") is None
        assert not repository.has(binary) and repository.get_note("offset") is None
        changes.commit()
    assert walked(repository) == ["/", "/b", "/c"]
    assert repository.has(binary) and repository.get_note("offset") == b"1"


@pytest.mark.parametrize("how", ["left", "raised", "failed"])
def test_what_is_not_committed_leaves_nothing(place: Place, how: str) -> None:
    repository = place.open()
    make(repository, "/a", "/a/b")

    def change() -> None:
        with repository.change() as changes:
            changes.put("/a", {"title": "new"})
            binary = put_file(changes, "/c", b"content")
            changes.delete("/a/b")
            changes.note("offset", b"1")
            if how == "raised":
                raise RuntimeError("the caller had a bug")
            if how == "failed":
                changes.put("/d", {DATA: Binary(b"x" * 32, 5)})
                changes.commit()
        del binary

    if how == "left":
        change()
    else:
        with pytest.raises((RuntimeError, InvalidState)):
            change()
    for _ in range(2):
        assert walked(repository) == ["/", "/a", "/a/b"]
        node = repository.get("/a")
        assert node is not None and node.properties == {"title": "/a"}
        assert repository.get_note("offset") is None
        assert not repository.has(binary_of(b"content"))
        repository.close()
        repository = place.open()
    make(repository, "/z")
    assert walked(repository) == ["/", "/a", "/a/b", "/z"]
    repository.close()


def test_one_change_set_is_open_at_a_time_and_of_no_use_afterwards(repository: Repository) -> None:
    with repository.change() as changes:
        with pytest.raises(InvalidState, match="open already"):
            repository.change()
        changes.put("/a", {})
        changes.commit()
        for use in (
            changes.commit,
            lambda: changes.put("/b", {}),
            lambda: changes.delete("/a"),
            lambda: changes.note("a", b""),
            lambda: changes.store(binary_of(b""), []),
        ):
            with pytest.raises(InvalidState, match="no longer open"):
                use()
        other = repository.change()
    other.put("/c", {})  # the end of the first block is none of its business
    other.commit()
    assert walked(repository) == ["/", "/a", "/c"]


# --- notes --------------------------------------------------------------------------------------


def test_notes_are_kept_replaced_and_forgotten(place: Place) -> None:
    repository = place.open()
    for values in ({"a": b"1", "b": b""}, {"a": b"\x00" * 100_000}, {"b": None, "none": None}):
        with repository.change() as changes:
            for name, value in values.items():
                changes.note(name, value)
            changes.commit()
    repository.close()
    repository = place.open()
    assert repository.get_note("a") == b"\x00" * 100_000
    assert repository.get_note("b") is None and repository.get_note("none") is None
    assert walked(repository) == ["/"]
    repository.close()


# --- binaries -----------------------------------------------------------------------------------

SIZES = [0, 1, CONTENT_CHUNK_BYTES - 1, CONTENT_CHUNK_BYTES, 2 * CONTENT_CHUNK_BYTES + 17]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [1 << 16, CONTENT_CHUNK_BYTES, 3 * CONTENT_CHUNK_BYTES])
def test_a_binary_is_the_sum_of_its_pieces(repository: Repository, size: int, piece: int) -> None:
    content = (b"0123456789abcde\n" * (size // 16 + 1))[:size]
    binary = binary_of(content)
    with repository.change() as changes:
        changes.put("/a", {DATA: binary, "title": "x"})
        changes.store(binary, [content[at : at + piece] for at in range(0, size, piece)])
        changes.commit()
    node = repository.get("/a")
    assert node is not None and node.properties == {DATA: binary, "title": "x"}
    assert repository.has(binary)
    pieces = list(repository.read(binary))
    assert b"".join(pieces) == content
    assert all(0 < len(each) <= CONTENT_CHUNK_BYTES for each in pieces)


@pytest.mark.parametrize(
    "pieces", [[], [b"conten"], [b"contenT"], [b"content", b"!"], [b"x" * (3 * MIB)]]
)
def test_what_is_not_what_its_hash_says_is_refused(
    repository: Repository, pieces: list[bytes]
) -> None:
    binary = binary_of(b"content")
    with repository.change() as changes:
        changes.put("/a", {DATA: binary})
        with pytest.raises(DataLoss, match=binary.sha256.hex()):
            changes.store(binary, pieces)
        with pytest.raises(InvalidState, match="/a refers to the binary"):
            changes.commit()
    assert not repository.has(binary) and walked(repository) == ["/"]
    with repository.change() as changes:
        with pytest.raises(DataLoss):
            changes.store(binary, pieces)
        put_file(changes, "/a", b"content")
        changes.commit()
    assert b"".join(repository.read(binary)) == b"content"


def test_a_hash_with_another_size_is_another_binary(repository: Repository) -> None:
    with repository.change() as changes:
        binary = put_file(changes, "/a", b"content")
        changes.commit()
    liar = Binary(binary.sha256, 8)
    assert not repository.has(liar)
    with pytest.raises(NotFound):
        list(repository.read(liar))
    with repository.change() as changes:
        with pytest.raises(DataLoss):
            changes.store(liar, [b"content!"])
        changes.put("/b", {DATA: liar})
        with pytest.raises(InvalidState):
            changes.commit()
    assert b"".join(repository.read(binary)) == b"content"


def test_a_source_that_fails_leaves_nothing_of_its_binary(repository: Repository) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * CONTENT_CHUNK_BYTES
        raise ConnectionError("the network is gone")

    binary = binary_of(b"x" * 2 * CONTENT_CHUNK_BYTES)
    with repository.change() as changes:
        with pytest.raises(ConnectionError):
            changes.store(binary, failing())
        changes.put("/a", {DATA: binary})
        with pytest.raises(InvalidState):
            changes.commit()


def test_a_binary_goes_with_the_last_node_that_refers_to_it(repository: Repository) -> None:
    with repository.change() as changes:
        binary = put_file(changes, "/a", b"content")
        put_file(changes, "/b/c", b"content")
        changes.commit()
    with repository.change() as changes:
        changes.put("/a", {DATA: put_file(changes, "/d", b"other")})
        changes.commit()
    assert repository.has(binary)
    with repository.change() as changes:
        changes.delete("/b")
        changes.commit()
    assert not repository.has(binary) and repository.has(binary_of(b"other"))
    with pytest.raises(NotFound, match=binary.sha256.hex()):
        repository.read(binary)


def test_a_binary_that_no_node_refers_to_is_not_kept(repository: Repository) -> None:
    with repository.change() as changes:
        changes.store(binary_of(b"content"), [b"content"])
        changes.commit()
    assert not repository.has(binary_of(b"content"))


def test_a_binary_survives_a_change_set_that_moves_it(repository: Repository) -> None:
    with repository.change() as changes:
        binary = put_file(changes, "/a", b"content")
        changes.commit()
    with repository.change() as changes:
        changes.delete("/a")
        changes.put("/b", {DATA: binary})
        changes.commit()
    with repository.change() as changes:
        changes.put("/b", {DATA: binary, "title": "the same"})
        changes.store(binary, iter([b"not read"]))
        changes.commit()
    assert b"".join(repository.read(binary)) == b"content"
    assert walked(repository) == ["/", "/b"]


def test_a_node_may_have_several_binaries_and_one_twice(repository: Repository) -> None:
    with repository.change() as changes:
        one, two = put_file(changes, "/a", b"one"), put_file(changes, "/b", b"two")
        changes.delete("/b")
        changes.put("/a", {"left": one, "right": one, "middle": two})
        changes.commit()
    node = repository.get("/a")
    assert node is not None and node.properties == {"left": one, "right": one, "middle": two}
    with repository.change() as changes:
        changes.put("/a", {"right": one})
        changes.commit()
    assert repository.has(one) and not repository.has(two)


# --- readers beside writers -----------------------------------------------------------------------


def test_a_walk_sees_what_was_there_when_it_began(repository: Repository) -> None:
    make(repository, *(f"/{name}" for name in "abcdef"))
    walk = repository.walk("/")
    seen = [next(walk).path, next(walk).path]
    with repository.change() as changes:
        changes.delete("/c")
        changes.put("/d", {"title": "new"})
        changes.put("/z", {})
        changes.commit()
    rest = list(walk)
    seen += [node.path for node in rest]
    assert seen == ["/", *(f"/{name}" for name in "abcdef")]
    assert rest[2].properties == {"title": "/d"}
    assert walked(repository) == ["/", "/a", "/b", "/d", "/e", "/f", "/z"]


def test_threads_read_while_one_writes(repository: Repository) -> None:
    """Each reader sees whole commits: the notes, the nodes and the binary of the same one."""
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            titles = {node.properties.get("title") for node in repository.walk("/tree")}
            if len(titles - {None}) > 1:
                wrong.append(titles)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(20):
            with repository.change() as changes:
                for leaf in range(5):
                    changes.put(f"/tree/{leaf}", {"title": number})
                changes.commit()
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []


# --- much of it -----------------------------------------------------------------------------------


def test_more_nodes_than_are_held_in_memory_are_one_commit(repository: Repository) -> None:
    count = CONTENT_BUFFER_NODES_MAX + 10
    with repository.change() as changes:
        for number in range(count):
            changes.put(f"/n/{number % 100:02}/{number:06}", {"number": number})
        changes.delete("/n/07")
        assert walked(repository) == ["/"]
        changes.commit()
    numbers = [node.properties["number"] for node in repository.walk("/n") if node.properties]
    assert sorted(map(str, numbers)) == sorted(
        str(each) for each in range(count) if each % 100 != 7
    )


def test_a_large_binary_takes_little_memory(repository: Repository) -> None:
    if isinstance(repository, MemoryRepository):
        pytest.skip("it has all in memory")
    piece, pieces = bytes(range(256)) * 4_096, 40
    digest = hashlib.sha256()
    for _ in range(pieces):
        digest.update(piece)
    binary = Binary(digest.digest(), len(piece) * pieces)
    tracemalloc.start()
    with repository.change() as changes:
        changes.store(binary, (piece for _ in range(pieces)))
        changes.put("/large", {DATA: binary})
        changes.commit()
    assert sum(map(len, repository.read(binary))) == binary.size_bytes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB


# --- opening --------------------------------------------------------------------------------------


def test_a_repository_is_opened_by_what_names_it(tmp_path: Path) -> None:
    memory = open_repository("memory:")
    assert isinstance(memory, MemoryRepository) and open_repository(memory) is memory
    file = tmp_path / "new" / "site.sqlite"
    for where in (file, str(file), f"sqlite:{file}", f"sqlite://{file}"):
        repository = open_repository(where)
        assert isinstance(repository, SqliteRepository) and repository.url == f"sqlite:{file}"
        repository.close()
    for where in (tmp_path / "www", str(tmp_path / "www")):
        repository = open_repository(where)
        assert isinstance(repository, DirectoryRepository) and repository.url == str(where)
        repository.close()


@pytest.mark.parametrize("kind", ["sqlite", "directory", POSTGRES])
def test_what_is_only_read_is_not_made(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = {"sqlite": str(tmp_path / "a.sqlite"), "directory": str(tmp_path / "www")}.get(kind)
    where = where or f"{request.getfixturevalue('postgres')}?schema=test_{next(_schemas)}"
    for _ in range(2):  # the first attempt leaves nothing
        with pytest.raises(NotFound, match="There is no content repository"):
            open_repository(where, create=False)
    assert list(tmp_path.iterdir()) == []
    open_repository(where).close()
    open_repository(where, create=False).close()


@pytest.mark.parametrize(
    "where", ["", "mysql://u:secret@h/db", "sqlite:", "ftp://x", "memory:x", ".", "/", ".."]
)
def test_what_names_no_repository_is_refused(where: str) -> None:
    with pytest.raises(InvalidArgument, match="content repository as") as caught:
        open_repository(where)
    assert "secret" not in caught.value.message


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    import sqlite3

    text, other = tmp_path / "text.sqlite", tmp_path / "other.sqlite"
    text.write_text("this is not a database, however long it may become " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for file in (text, other):
        before = file.read_bytes()
        with pytest.raises(InvalidArgument, match="name another file"):
            open_repository(file)
        assert file.read_bytes() == before


# --- one store at a time --------------------------------------------------------------------------


def test_deleted_content_does_not_make_the_file_grow_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "content.sqlite"
    repository = SqliteRepository(file)
    sizes = []
    for number in range(12):
        with repository.change() as changes:
            put_file(changes, "/large", bytes([number]) * 4 * MIB)
            changes.commit()
        sizes.append(sum(each.stat().st_size for each in tmp_path.iterdir()))
    assert max(sizes) < 24 * MIB  # two of them, and the log
    repository.close()
    assert file.stat().st_size < 10 * MIB


def test_another_process_waits_for_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.content.repository.tables.CONTENT_STORE_BUSY_MS_MAX", 10)
    one, two = (SqliteRepository(tmp_path / "content.sqlite") for _ in range(2))
    with one.change() as changes:
        with pytest.raises(Unavailable, match="another process"):
            two.change()
        changes.put("/a", {})
        changes.commit()
    make(two, "/b")
    assert walked(one) == ["/", "/a", "/b"]
    one.close()
    two.close()


def terminate(server: str) -> None:
    """Breaks all connections to the server, as a restart of it does."""
    import psycopg

    others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
        )


@pytest.mark.xdist_group("postgres")
def test_broken_connections_to_postgresql_are_made_anew(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.content.repository.postgres import PostgresTables

    repository = open_repository(f"{postgres}?schema=broken")
    make(repository, "/a")
    terminate(postgres)
    assert walked(repository) == ["/", "/a"] and repository.get("/a") is not None
    make(repository, "/b")
    with repository.change() as changes:
        changes.put("/c", {})
        terminate(postgres)
        with pytest.raises(Unavailable, match="check the server"):
            changes.commit()
    real = PostgresTables.commit
    monkeypatch.setattr(PostgresTables, "commit", lambda self: (terminate(postgres), real(self)))
    with pytest.raises(Unknown, match="may have been made or not"):
        make(repository, "/d")
    monkeypatch.undo()
    make(repository, "/e")
    assert walked(repository) == ["/", "/a", "/b", "/e"]
    repository.close()


@pytest.mark.xdist_group("postgres")
def test_another_process_waits_for_the_schema(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.content.repository.postgres.CONTENT_STORE_BUSY_MS_MAX", 10)
    one, two = (open_repository(f"{postgres}?schema=shared") for _ in range(2))
    with one.change() as changes:
        with pytest.raises(Unavailable, match="another process"):
            two.change()
        changes.put("/a", {})
        changes.commit()
    make(two, "/b")
    assert walked(one) == ["/", "/a", "/b"]
    one.close()
    two.close()


@pytest.mark.xdist_group("postgres")
def test_a_schema_of_somebody_else_is_refused(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA theirs")
        connection.execute("CREATE TABLE theirs.nodes (x int)")
    with pytest.raises(InvalidArgument, match="tables of another application"):
        open_repository(f"{postgres}?schema=theirs")
    with pytest.raises(InvalidArgument, match="schema of PostgreSQL"):
        open_repository(f"{postgres}?schema=a;drop")


def test_a_postgresql_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(Unavailable, match="check the server and the URL") as caught:
        open_repository("postgresql://me:secret@127.0.0.1:1/site")
    assert "secret" not in caught.value.message and "127.0.0.1:1/site" in caught.value.message


def test_postgresql_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "holdfast.content.repository.postgres", raising=False)
    with pytest.raises(InvalidArgument, match=r"pip install 'holdfast\[postgres\]'"):
        open_repository("postgresql://127.0.0.1/site")


def test_nobody_who_has_no_postgresql_waits_for_psycopg() -> None:
    code = "import sys, holdfast.content.repository; print('psycopg' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_memory_crashes_when_it_is_told_to() -> None:
    repository = MemoryRepository()
    make(repository, "/a")

    class Crash(Exception):
        pass

    def crash() -> None:
        repository.crash()
        raise Crash

    repository.before_commit = crash
    with pytest.raises(Crash):
        make(repository, "/b")
    assert walked(repository) == ["/", "/a"]
    repository.before_commit = lambda: None
    repository.after_commit = crash
    with pytest.raises(Crash):
        make(repository, "/c")
    assert walked(repository) == ["/", "/a", "/c"]
    repository.after_commit = lambda: None
    changes = repository.change()
    repository.crash()
    with pytest.raises(InvalidState, match="no longer open"):
        changes.commit()
    clone = repository.clone()
    make(repository, "/d")
    assert walked(clone) == ["/", "/a", "/c"] and walked(repository) == ["/", "/a", "/c", "/d"]


OPEN = """
import sys
from holdfast.content.repository import open_repository
print("ready", flush=True)
sys.stdin.readline()
repository = open_repository(sys.argv[1])
assert [node.path for node in repository.walk("/")] == ["/"]
"""


@pytest.mark.parametrize("name", ["content.sqlite", "www"])
def test_several_processes_make_the_same_store_at_once(tmp_path: Path, name: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(tmp_path / name)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(3)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == ["", "", ""]
