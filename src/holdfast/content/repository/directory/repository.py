"""The directory store itself: which tree stands, and how the other one takes its place."""

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.content.paths import checked_path
from holdfast.content.repository.api import Binary, ContentNode
from holdfast.content.repository.checks import already_changing, no_binary
from holdfast.content.repository.directory.bodies import Bodies
from holdfast.content.repository.directory.changes import DirectoryChanges
from holdfast.content.repository.directory.index import KnownBody, TreeIndex
from holdfast.content.repository.directory.places import SIDES, Places
from holdfast.content.repository.directory.syncing import ToSync
from holdfast.content.repository.directory.tree import FileTree
from holdfast.errors import InvalidState, ResourceExhausted, Unavailable
from holdfast.limits import (
    CONTENT_CHUNK_BYTES,
    CONTENT_GRACE_MS,
    CONTENT_NAME_BYTES_MAX,
    DISK_FULL_RETRY_MS,
)

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class DirectoryRepository:
    """Plain files under `into`, which is a link. Properties and notes are kept beside them.

    A reader that resolves the link once sees one commit, whole, for at least `grace_ms`.
    """

    blocking = True

    def __init__(
        self, into: Path, *, grace_ms: int = CONTENT_GRACE_MS, folds_case: bool | None = None
    ) -> None:
        self.url = str(into)
        self.folds_case = bool(folds_case)
        self.name_bytes_max = CONTENT_NAME_BYTES_MAX
        self._asked_case = folds_case
        self._grace_ms = grace_ms
        self._places = Places(into)
        self.bodies = Bodies(self._places.private, self.told)
        self._suspect = True  # the tree that does not stand may be anything
        self._swapped: float | None = None  # by the monotonic clock, if it was here
        self._open: DirectoryChanges | None = None
        self._indexes: dict[str, TreeIndex] = {}
        with self.told("to open it"):
            self._places.make()
            self.bodies.make()
            try:
                self._open_indexes()
                self._stands = self._places.standing()
            except BaseException:
                self.close()
                raise

    def _open_indexes(self) -> None:
        for side in SIDES:
            self._indexes[side] = TreeIndex(self._places.index(side), self.url)
        first, second = self._indexes.values()
        first.beside(second)
        second.beside(first)
        self._first_link()

    def _first_link(self) -> None:
        """A new store gets its link last; one that had its link and lost it says so."""
        if self._places.has_link():
            return
        if any(index.number for index in self._indexes.values()):
            raise InvalidState(
                f"The link {self.url} is gone, and with it which tree of {self._places.private}"
                " stands; restore it, or remove that folder to begin anew",
                path=self.url,
            )
        self._places.make_link(SIDES[0])

    # --- reading: the index of the tree that stands, and the bodies ----------------------------

    @property
    def _index(self) -> TreeIndex:
        if not self._places.is_locked:  # somebody else may have changed it
            with self.told("to read it"):
                self._stands = self._places.standing()
        return self._indexes[self._stands]

    def get(self, path: str) -> ContentNode | None:
        return self._index.get(checked_path(path))

    def offset_of(self, path: str) -> int:
        return self._index.offset_of(checked_path(path))

    def children(self, path: str) -> Iterator[str]:
        return self._index.children(checked_path(path))

    def walk(self, path: str) -> Iterator[ContentNode]:
        return self._index.walk(checked_path(path))

    def get_note(self, name: str) -> bytes | None:
        return self._index.get_note(name)

    def has(self, binary: Binary) -> bool:
        return bool(self.intact(self._index.bodies_of(binary, committed=True)))

    def read(self, binary: Binary) -> Iterator[bytes]:
        found = self.intact(self._index.bodies_of(binary, committed=True))
        if not found:
            raise no_binary(binary, self.url)
        with self.told("to read a binary"):
            file = os.open(self.bodies.path(found[0]), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return self._pieces(file)

    def _pieces(self, file: int) -> Iterator[bytes]:
        with open(file, "rb", buffering=0) as source:
            while piece := source.read(CONTENT_CHUNK_BYTES):
                yield piece

    def intact(self, bodies: Iterable[KnownBody]) -> list[bytes]:
        """The names of files that nobody has written into since."""
        with self.told("to look at the files"):
            return [
                body.name
                for body in bodies
                if self.bodies.stamp(body.name) == (body.size_bytes, body.time_ns)
            ]

    # --- changing ------------------------------------------------------------------------------

    def change(self) -> DirectoryChanges:
        if self._open is not None:
            raise already_changing(self.url)
        with self.told("to begin changes"):
            self._begin_first()
        if self._suspect:
            self._sweep()
        index = self._indexes[self._other]
        with index.told("to begin changes"):
            index.begin(anew=self._suspect)
        self._open = DirectoryChanges(self, index)
        return self._open

    @property
    def _other(self) -> str:
        return SIDES[1 - SIDES.index(self._stands)]

    def _begin_first(self) -> None:
        """The first change set of this process: whether the last one left all in order."""
        if self._places.is_locked:
            return
        self._places.lock()
        self._stands = self._places.standing()
        self.folds_case = (
            self._places.folds_case() if self._asked_case is None else self._asked_case
        )
        self.name_bytes_max = os.pathconf(self._places.private, "PC_NAME_MAX")
        number = self._indexes[self._stands].number
        is_next = self._indexes[self._other].number == max(0, number - 1)
        self._suspect = not (self._places.take_clean(number) and is_next)

    def _sweep(self) -> None:
        """Removes bodies that came with changes which were never committed."""
        with self.told("to remove what is left of changes"):
            self.bodies.drop_waiting()
            self._drop_unknown(self.bodies.names())

    def _drop_unknown(self, names: Iterable[bytes]) -> None:
        for name in names:
            if not any(index.knows(name) for index in self._indexes.values()):
                self.bodies.drop(name)

    def bring_up(self, made: ToSync, dropped: list[bytes]) -> None:
        """Makes the other tree as its index says, commits that, and lets it stand."""
        side = self._other
        index, private = self._indexes[side], self._places.private
        is_anew, self._suspect = self._suspect, True  # until all is done
        time.sleep(self.commit_delay_ms() / 1_000)
        tree = FileTree(self._places.tree(side), self.bodies)
        with self.told("to write files"):
            try:
                self._write_files(tree, index, is_anew)
            finally:
                tree.close()
            folder = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                (made | tree.changed).sync(folder)
            finally:
                os.close(folder)
        with index.told("to commit changes"):
            index.commit()
        with self.told("to put the new files in place"):
            self._places.swap(side)
        self._stands, self._swapped, self._suspect = side, time.monotonic(), False
        self._open = None
        with self.told("to remove files that are no longer needed"):
            self.bodies.drop_waiting()
            for name in dropped:
                self.bodies.drop(name)

    def _write_files(self, tree: FileTree, index: TreeIndex, is_anew: bool) -> None:
        """Makes the tree; from its beginning if it is not what it is thought to be."""
        if not is_anew:
            with contextlib.suppress(OSError):
                self._write_late(tree, index)
                return
            index.all_are_late()
        tree.wipe()
        self._write_late(tree, index)

    def _write_late(self, tree: FileTree, index: TreeIndex) -> None:
        for path in index.to_remove():
            tree.remove(path)
        for path, body in index.to_make():
            if body is None:
                tree.make_folder(path)
            else:
                tree.make_file(path, body)

    def commit_delay_ms(self) -> int:
        """Until readers have had their time with the tree that is changed next."""
        if self._indexes[self._stands].number == 0:  # the other one has never stood
            return 0
        if self._swapped is not None:
            passed = (time.monotonic() - self._swapped) * 1_000
        else:
            passed = self._places.swapped_ms_ago(time.time() * 1_000)
            passed = max(passed, 0) if passed <= self._grace_ms else self._grace_ms
        return max(0, round(self._grace_ms - passed))

    def is_open(self, changes: DirectoryChanges) -> bool:
        return self._open is changes

    def end(self) -> None:
        """A change set that was not committed is rolled back, and its files are removed."""
        if self._open is None:
            return
        self._open = None
        index = self._indexes[self._other]
        with index.told("to roll back"):
            self._suspect = self._suspect or not index.writes.in_transaction
            names = index.rollback()
        with self.told("to remove what was not committed"):
            self.bodies.drop_waiting()
            self._drop_unknown(names)

    def close(self) -> None:
        self.end()
        if self._places.is_locked:
            if not self._suspect:
                with self.told("to close it"):
                    self._places.leave_clean(self._indexes[self._stands].number)
            self._places.unlock()
        for index in self._indexes.values():
            index.close()

    @contextlib.contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turns errors of the disk into ours."""
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            text = f"Failed {what} in {self.url}: {reason}"
            if error.errno in _DISK_FULL:
                raise ResourceExhausted(
                    f"{text}; make room on the disk",
                    store=self.url,
                    retry_after_ms=DISK_FULL_RETRY_MS,
                ) from error
            raise Unavailable(f"{text}; check the folder and its disk", store=self.url) from error
