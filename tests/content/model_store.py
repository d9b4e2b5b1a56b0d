"""A store that is compared with the log at every commit."""

from typing import Any

import msgspec
from package_kit import tree_of

from holdfast.content.messages import (
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    SubscriberProgress,
)
from holdfast.content.package.importing import import_package
from holdfast.content.package.reading import open_package
from holdfast.content.repository.api import Repository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber import Habits
from holdfast.content.subscriber.ledger import PROGRESS_NOTE, STATUSES_NOTE
from holdfast.errors import Unknown


class CrashedStore(BaseException):
    """The process that used the store has died."""


class ModelStore:
    """What some packages lead to, imported one after the other in their order."""

    def __init__(self, blobs: Any) -> None:
        self._blobs = blobs
        self._store = MemoryRepository()
        self._offsets: list[int] = []

    def replay(self, packages: dict[int, Package]) -> dict[str, Any]:
        """All of them; those that were replayed before are not replayed again."""
        offsets = sorted(packages)
        if offsets[: len(self._offsets)] != self._offsets:
            self._store, self._offsets = MemoryRepository(), []
        with self._store.change() as changes:
            for offset in offsets[len(self._offsets) :]:
                import_package(changes, open_package(packages[offset], self._blobs), offset)
            changes.commit()
        self._offsets = offsets
        return with_properties(self._store)


def with_properties(store: Repository) -> dict[str, Any]:
    """Nodes that were put; those above them may be left behind when they are not."""
    return {path: node for path, node in tree_of(store).items() if node}


class WatchedStore(MemoryRepository):
    """Refuses some paths, dies when it is told to, and checks itself at each commit."""

    def __init__(self, world: Any, habits: Habits) -> None:
        super().__init__()
        self.refused: dict[str, Exception] = {}
        self.dies = ""  # before or after the next commit; unknown: only the committer thinks so
        self.statuses: set[tuple[str, str, int, ImportOutcome]] = set()  # that were committed
        self.seeded: set[int] = set()  # offsets that came from another store
        self._world = world
        self._habits = habits
        self._left_out: set[int] = set()
        self._imported: set[int] = set()  # offsets of all imports that were committed
        self._importing: set[int] = set()
        self._is_seeding = False
        self._offsets: dict[str, int] = {}
        self._model = ModelStore(world.all_blobs)
        self.before_commit = self._before
        self.after_commit = self._after

    def change(self) -> Any:
        changes = super().change()
        put, delete = changes.put, changes.delete
        self._importing, self._is_seeding = set(), False

        def picky_put(path: str, properties: Any, offset: int = 0) -> None:
            if (error := self.refused.get(path)) is not None:
                raise error
            if properties:
                self._importing.add(offset)
            put(path, properties, offset)

        def picky_delete(path: str) -> None:
            self._is_seeding = path == "/"
            if (error := self.refused.get(path)) is not None:
                raise error
            delete(path)

        changes.put, changes.delete = picky_put, picky_delete  # type: ignore[method-assign]
        return changes

    def _before(self) -> None:
        if self.dies == "before":
            self.dies = ""
            raise CrashedStore

    def _after(self) -> None:
        try:
            self._check_commit()
        except AssertionError as error:  # the committer may take it for a failure of the store
            self._world.faults.append(error)
            raise
        dies, self.dies = self.dies, ""
        if dies == "after":
            raise CrashedStore
        if dies == "unknown":
            raise Unknown("the connection broke")

    def _check_commit(self) -> None:
        again = self._importing & self._imported
        assert not again, f"imported again: {again}"
        self._imported |= self._importing
        if self._is_seeding:
            self._learn_of_seed()
        self._learn()
        for publisher in self._habits.publishers:
            offset = self.progress(publisher).offset
            assert offset >= self._offsets.get(publisher, -1), "it went back"
            self._offsets[publisher] = offset
        self.check()

    def _learn(self) -> None:
        note = self.get_note(STATUSES_NOTE)
        for each in msgspec.msgpack.decode(note, type=list[PackageStatus]) if note else ():
            key = each.subscriber, each.publisher, each.offset, each.outcome
            if key in self.statuses:
                continue
            if self._world.packages[each.offset].action is not PackageAction.TEST:
                assert self._world.packages[each.offset].publisher == each.publisher
            self.statuses.add(key)
            if each.outcome is ImportOutcome.IMPORTED:
                self._left_out.discard(each.offset)
            else:
                self._left_out.add(each.offset)

    def _learn_of_seed(self) -> None:
        """What the other one had left out when it was stored is left out here, too."""
        progress = {each: self.progress(each).offset for each in self._habits.publishers}
        for snapshot, left_out in self._world.snapshots:
            offsets = {each.publisher: each.offset for each in snapshot.progress}
            if progress.items() <= offsets.items():
                self._left_out = set(left_out)
        self.seeded = set(self._expected()) | self._left_out

    @property
    def left_out(self) -> frozenset[int]:
        return frozenset(self._left_out)

    def progress(self, publisher: str) -> SubscriberProgress:
        """What the store says."""
        note = self.get_note(PROGRESS_NOTE)
        found = msgspec.msgpack.decode(note, type=list[SubscriberProgress]) if note else []
        by_name = {each.publisher: each for each in found}
        return by_name.get(publisher) or SubscriberProgress(publisher)

    def start(self) -> int:
        """Where the subscriber would read on."""
        return min(self.progress(each).offset for each in self._habits.publishers) + 1

    def _expected(self) -> dict[int, Package]:
        done = {each: self.progress(each).offset for each in self._habits.publishers}
        return {
            offset: package
            for offset, package in self._world.packages.items()
            if offset <= done.get(package.publisher, -1) and offset not in self._left_out
        }

    def check(self) -> None:
        """The store is exactly a prefix of the log, apart from what was told to be left out."""
        expected = self._expected()
        assert with_properties(self) == self._model.replay(expected)
        for publisher in self._habits.publishers:
            last = [
                each.number
                for offset, each in self._world.packages.items()
                if each.publisher == publisher and offset <= self.progress(publisher).offset
            ]
            assert self.progress(publisher).number == max(last, default=0)

    def is_whole(self) -> bool:
        mine = [
            offset
            for offset, each in self._world.packages.items()
            if each.publisher in self._habits.publishers and each.action != PackageAction.TEST
        ]
        return all(
            self.progress(self._world.packages[offset].publisher).offset >= offset
            for offset in mine
        )

    def check_is_whole(self) -> None:
        """It has all packages, or has said what became of them."""
        assert self.is_whole()
        if self._habits.editable:
            told = {offset for _, _, offset, _ in self.statuses} | self.seeded
            for offset, each in self._world.packages.items():
                mine = each.publisher in self._habits.publishers
                assert not mine or each.action == PackageAction.TEST or offset in told
