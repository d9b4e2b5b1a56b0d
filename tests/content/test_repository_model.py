"""Any sequence of change sets leaves what a plain dict would hold, in every store."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.content.paths import is_below, parents
from holdfast.content.repository import DATA, Binary, MemoryRepository, Properties, Repository
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.errors import InvalidState

CONTENTS = [b"", b"one", b"two" * 1_000]
BINARIES = [Binary(hashlib.sha256(each).digest(), len(each)) for each in CONTENTS]
MEMORY = Path("/dev/shm")  # nothing here is about what a disk has kept
NAMES = st.sampled_from(["a", "b", "a b", "a-", "é"])
PATHS = st.lists(NAMES, max_size=3).map(lambda names: "/" + "/".join(names))
PROPERTIES = st.dictionaries(
    st.sampled_from([DATA, "title", "image"]),
    st.integers(-5, 5) | st.text(max_size=3) | st.sampled_from(BINARIES),
    max_size=2,
)
PUT = st.tuples(st.just("put"), PATHS, PROPERTIES, st.integers(0, 9))
DELETE = st.tuples(st.just("delete"), PATHS, st.none(), st.just(0))
NOTE = st.tuples(
    st.just("note"), st.sampled_from("xy"), st.none() | st.binary(max_size=3), st.just(0)
)
CHANGES = st.lists(PUT | PUT | DELETE | NOTE, max_size=6)
SETS = st.lists(st.tuples(CHANGES, st.sampled_from(["commit", "commit", "leave", "reopen"])))


class Model:
    """What a repository is, said in the plainest way."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[Properties, int]] = {"/": ({}, 0)}
        self.notes: dict[str, bytes] = {}

    def copy(self) -> "Model":
        other = Model()
        other.nodes, other.notes = dict(self.nodes), dict(self.notes)
        return other

    def put(self, path: str, properties: Properties, offset: int) -> None:
        for parent in parents(path):
            self.nodes.setdefault(parent, ({}, 0))
        self.nodes[path] = (properties, offset)

    def delete(self, path: str) -> None:
        for each in list(self.nodes):
            if each == path or is_below(each, path):
                del self.nodes[each]
        self.nodes.setdefault("/", ({}, 0))

    def note(self, name: str, value: bytes | None) -> None:
        self.notes.pop(name, None)
        if value is not None:
            self.notes[name] = value

    @property
    def binaries(self) -> set[Binary]:
        values = [value for properties, _ in self.nodes.values() for value in properties.values()]
        return {value for value in values if isinstance(value, Binary)}

    def is_file(self, path: str) -> bool:
        return isinstance(self.nodes[path][0].get(DATA), Binary)

    @property
    def fits_a_disk(self) -> bool:
        """No file is above another node."""
        below = [each for path in self.nodes for each in parents(path)]
        return not any(map(self.is_file, ["/", *below]))


def check(repository: Repository, model: Model) -> None:
    ordered = sorted(model.nodes, key=lambda path: path.encode().split(b"/") if path != "/" else [])
    assert [tuple(node) for node in repository.walk("/")] == [
        (path, model.nodes[path][0]) for path in ordered
    ]
    for path, (properties, offset) in model.nodes.items():
        node = repository.get(path)
        assert node is not None and node.properties == properties
        assert repository.offset_of(path) == offset
        below = [each for each in ordered if is_below(each, path)]
        depth = len(parents(path)) + (path != "/")
        assert list(repository.children(path)) == [
            each for each in below if len(parents(each)) == depth
        ]
        assert [each.path for each in repository.walk(path)] == [path, *below]
    for name in "xy":
        assert repository.get_note(name) == model.notes.get(name)
    for binary, content in zip(BINARIES, CONTENTS, strict=True):
        assert repository.has(binary) == (binary in model.binaries)
        if binary in model.binaries:
            assert b"".join(repository.read(binary)) == content


def check_files(folder: Path, model: Model) -> None:
    top = folder.resolve()
    found = {"/" + each.relative_to(top).as_posix(): each for each in top.rglob("*")}
    assert found.keys() == model.nodes.keys() - {"/"}
    for path, each in found.items():
        assert each.is_dir() != model.is_file(path)
        if model.is_file(path):
            value = model.nodes[path][0][DATA]
            assert isinstance(value, Binary)
            assert hashlib.sha256(each.read_bytes()).digest() == value.sha256


class Stores:
    """Opens a store of a kind, again and again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._memory = MemoryRepository()

    def open(self) -> Repository:
        if self.kind == "memory":
            return self._memory
        if self.kind == "sqlite":
            return SqliteRepository(self.folder / "content.sqlite")
        return DirectoryRepository(self.folder / "www", grace_ms=0)


@pytest.fixture(params=["memory", "sqlite", "directory"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def run(repository: Repository, changes: list, model: Model, *, commits: bool) -> None:
    """Makes the changes in both; the model is left alone where they are not committed."""
    with repository.change() as open_set:
        for what, path, value, offset in changes:
            if what == "put":
                for binary in filter(BINARIES.__contains__, value.values()):
                    open_set.store(binary, [CONTENTS[BINARIES.index(binary)]])
                open_set.put(path, value, offset)
                model.put(path, value, offset)
            elif what == "delete":
                open_set.delete(path)
                model.delete(path)
            else:
                open_set.note(path, value)
                model.note(path, value)
        if commits:
            open_set.commit()


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sets=SETS)
def test_a_repository_is_what_a_dict_says(kind: str, sets: list) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        stores = Stores(kind, Path(folder))
        repository, model = stores.open(), Model()
        for changes, end in sets:
            attempt = model.copy()
            try:
                run(repository, changes, attempt, commits=end != "leave")
            except InvalidState as refused:
                assert kind == "directory" and not attempt.fits_a_disk, refused
            else:
                assert kind != "directory" or end == "leave" or attempt.fits_a_disk
                model = model if end == "leave" else attempt
            if end == "reopen":
                repository.close()
                repository = stores.open()
            check(repository, model)
            if kind == "directory":
                check_files(Path(folder) / "www", model)
        repository.close()
