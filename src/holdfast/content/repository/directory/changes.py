"""A change set of a directory: the index in one transaction, then the files, then the link."""

from collections.abc import Iterable
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.content.paths import checked_path, key_of
from holdfast.content.repository.api import Binary, Properties
from holdfast.content.repository.buffer import NodeBuffer
from holdfast.content.repository.checks import missing_binary, no_longer_open
from holdfast.content.repository.directory.bodies import FileBody, bodies_of, file_of
from holdfast.content.repository.directory.index import TreeIndex
from holdfast.content.repository.directory.syncing import ToSync
from holdfast.errors import InvalidArgument, InvalidState

if TYPE_CHECKING:
    from holdfast.content.repository.directory.repository import DirectoryRepository


class DirectoryChanges:
    """Changes of the tree that does not stand; its files are changed when all is known."""

    def __init__(self, repository: "DirectoryRepository", index: TreeIndex) -> None:
        self._repository = repository
        self._index = index
        self._nodes: NodeBuffer[FileBody] = NodeBuffer(bodies_of, attrgetter("name"))
        self._files: dict[str, bytes] = {}
        self._received: set[Binary] = set()
        self._made = ToSync()

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        self._check()
        self._check_name(checked_path(path))
        self._nodes.put(path, properties, offset)
        self._files.pop(key_of(path), None)
        if file := file_of(properties):
            self._files[key_of(path)] = file.name
        if self._nodes.is_full:
            self._flush()

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        self._check()
        if binary not in self._received and not self._known(binary):
            self._repository.bodies.receive(binary, pieces)
            self._received.add(binary)

    def delete(self, path: str) -> None:
        self._check()
        checked_path(path)
        self._flush()
        with self._index.told(f"to delete {path}"):
            self._index.delete(path)

    def note(self, name: str, value: bytes | None) -> None:
        self._check()
        with self._index.told(f"to write the note {name}"):
            self._index.note(name, value)

    def commit(self) -> None:
        self._check()
        try:
            self._flush()
            with self._index.told("to commit changes"):
                self._make_bodies()
                for body, path in self._nodes.wanted.items():
                    raise missing_binary(path, body.binary.sha256, self._repository.url)
                self._check_kinds()
                dropped = self._index.unused_bodies()
            self._repository.bring_up(self._made, dropped)
        finally:
            self._repository.end()

    def _flush(self) -> None:
        if self._nodes:
            with self._index.told("to write nodes"):
                self._index.write(self._nodes.take())
                self._index.write_files(list(self._files.items()))
                self._make_bodies()
            self._files.clear()

    def _check_name(self, path: str) -> None:
        name, limit = path.rpartition("/")[2], self._repository.name_bytes_max
        if len(name) * 4 > limit and len(name.encode()) > limit:
            raise InvalidArgument(
                f"The disk of {self._repository.url} takes names of {limit} bytes, but {path} has a"
                " longer one; give it a shorter name where it is published",
                path=path,
            )

    def _check_kinds(self) -> None:
        both = self._index.neither_file_nor_folder()
        if both is not None:
            raise InvalidState(
                f"In {self._repository.url} a node is a file or a folder, but {both} has the binary"
                " `data` and children; use another store, such as SQLite, or publish them apart",
                path=both,
            )
        if self._repository.folds_case:
            for folder in self._index.touched_parents():
                self._check_cases(folder)

    def _check_cases(self, folder: str) -> None:
        found: dict[str, str] = {}
        for path in self._index.children_in_writing(folder):
            former = found.setdefault(path.casefold(), path)
            if former != path:
                raise InvalidState(
                    f"The disk of {self._repository.url} does not tell upper from lower case, but"
                    f" {former} and {path} differ in nothing else; rename one where it is"
                    " published",
                    path=path,
                )

    def _make_bodies(self) -> None:
        """The files that nodes need; those whose binaries are not there yet stay wanted."""
        bodies, missing = self._repository.bodies, dict[FileBody, str]()
        for body, path in self._nodes.wanted.items():
            known = self._known(body.binary)
            if body.name in known:
                continue
            if not known and body.binary not in self._received:
                missing[body] = path
                continue
            with self._repository.told(f"to write the file of {path}"):
                if known:
                    self._made.add(*bodies.keep(body, bodies.path(known[0])))
                else:
                    self._made.add(*bodies.take(body))
                    self._received.remove(body.binary)
                stamp = bodies.stamp(body.name)
            assert stamp is not None and stamp[0] == body.binary.size_bytes
            self._index.add_body(body, stamp[1])
            self._index.may_be_unused(body.name)  # the node may have been put again
        self._nodes.wanted = missing

    def _known(self, binary: Binary) -> list[bytes]:
        return self._repository.intact(self._index.bodies_of(binary, committed=False))

    def _check(self) -> None:
        if not self._repository.is_open(self):
            raise no_longer_open(self._repository.url)

    def __enter__(self) -> "DirectoryChanges":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._repository.is_open(self):
            self._repository.end()
