"""A disk in memory that loses what a real one may lose: whatever was not synced.

A test runs against it, lets it crash at an operation, and asks for the disks that a machine might
find when the power is back: with the unsynced writes kept, dropped or torn.
"""

import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from enum import Enum
from random import Random
from typing import Any

from holdfast.journal.local.disk import Lock, Meanwhile
from holdfast.journal.local.lock import held_by

SECTOR_BYTES = 512  # what a disk writes whole or not at all


class SimulatedCrash(Exception):
    """The simulated machine lost its power at this operation."""


class DiskOutcome(Enum):
    """What happens to unsynced writes when the power fails."""

    KEEP = "keep"
    DROP = "drop"
    TEAR = "tear"


class _Content:
    """A file's bytes, as programs see them and as the platter has them."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = bytearray()
        self.unsynced: list[Callable[[bytearray, DiskOutcome, Random], None]] = []

    def change(
        self, change: Callable[[bytearray, DiskOutcome, Random], None], random: Random
    ) -> None:
        change(self.seen, DiskOutcome.KEEP, random)
        self.unsynced.append(change)

    def make_durable(self, random: Random) -> None:
        for change in self.unsynced:
            change(self.durable, DiskOutcome.KEEP, random)
        self.unsynced.clear()

    def after_crash(self, outcome: DiskOutcome, random: Random) -> "_Content":
        survivor = _Content()
        survivor.seen = bytearray(self.durable)
        for change in self.unsynced:
            change(survivor.seen, outcome, random)
        survivor.durable = bytearray(survivor.seen)
        return survivor


class _Folder:
    """A folder's names; they change in order, so a crash keeps a beginning of the changes."""

    def __init__(self) -> None:
        self.seen: dict[str, _Content] = {}
        self.durable: dict[str, _Content] = {}
        self.unsynced: list[dict[str, _Content]] = []

    def changed(self) -> None:
        self.unsynced.append(dict(self.seen))

    def after_crash(self, outcome: DiskOutcome, random: Random) -> dict[str, _Content]:
        states = [self.durable, *self.unsynced]
        if outcome is DiskOutcome.TEAR:
            return random.choice(states)
        return states[-1 if outcome is DiskOutcome.KEEP else 0]


class SimulatedDisk:
    """A simulated disk with a seed, a capacity, and operations that crash or fail on request.

    Operations are everything that changes the disk or makes it durable, counted from 1.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        capacity_bytes: int = 1 << 40,
        crash_at: int | None = None,
    ) -> None:
        self.operations = 0
        self.syncs = 0
        self.capacity_bytes = capacity_bytes
        self.crash_at = crash_at
        self.fail_sync_at: int | None = None  # this sync, and it alone, ends in EIO
        self.fail_write_at: int | None = None  # this operation writes a half and ends in ENOSPC
        self._random = Random(seed)
        self._seed = seed
        self._crashed = False
        self._folders: dict[str, _Folder] = {}
        self._locks: dict[str, str] = {}

    def after_crash(self, outcome: DiskOutcome, *, seed: int = 0) -> "SimulatedDisk":
        """The disk as it may be after the power failure; this one stays unchanged."""
        random = Random(seed)
        survivor = SimulatedDisk(seed=seed, capacity_bytes=self.capacity_bytes)
        contents: dict[int, _Content] = {}
        for path, folder in self._folders.items():
            names = folder.after_crash(outcome, random)
            for content in names.values():
                contents.setdefault(id(content), content.after_crash(outcome, random))
            survivor._folders[path] = found = _Folder()
            found.seen = {name: contents[id(content)] for name, content in names.items()}
            found.durable = dict(found.seen)
        return survivor

    def damage(self, path: str, position: int, data: bytes) -> None:
        """Overwrites bytes of a file, as a failing disk might."""
        content = self._content(path)
        _put(content.seen, position, data)
        _put(content.durable, position, data)

    def create(self, path: str, size_bytes: int) -> "SimulatedFile":
        folder, name = self._split(path)
        self._operate()
        folder.seen[name] = _Content()
        folder.changed()
        file = SimulatedFile(self, folder.seen[name])
        if size_bytes:
            try:
                file.write(0, bytes(size_bytes))
            except OSError:
                self.remove(path)
                raise
            file.sync()
        return file

    def open(self, path: str, *, writable: bool = False) -> "SimulatedFile":
        return SimulatedFile(self, self._content(path))

    def rename(self, source: str, target: str) -> None:
        if source in self._folders:
            self._rename_folder(source, target)
            return
        folder, name = self._split(source)
        target_folder, target_name = self._split(target)
        assert folder is target_folder, "expected a rename within one folder"
        self._operate()
        folder.seen[target_name] = folder.seen.pop(name)
        folder.changed()

    def _rename_folder(self, source: str, target: str) -> None:
        """Folders are durable at once here, and so is a new name of theirs."""
        self._operate()
        for path in [*self._folders]:
            if path == source or path.startswith(f"{source}/"):
                self._folders[target + path[len(source) :]] = self._folders.pop(path)

    def remove(self, path: str) -> None:
        folder, name = self._split(path)
        if name in folder.seen:
            self._operate()
            del folder.seen[name]
            folder.changed()

    def list(self, folder: str) -> list[str]:
        names = set(self._folders[folder].seen) if folder in self._folders else set[str]()
        inside = folder + "/"
        names |= {path[len(inside) :] for path in self._folders if path.startswith(inside)}
        return sorted(names)

    def make_folder(self, path: str) -> None:
        self._folders.setdefault(path, _Folder())

    def sync_folder(self, path: str) -> None:
        if self._operate():
            raise SimulatedCrash(f"the power went at operation {self.operations}")
        folder = self._folders[path]
        folder.durable = dict(folder.seen)
        folder.unsynced.clear()

    def free_bytes(self, path: str) -> int:
        contents = {id(each): each for folder in self._folders.values()
                    for each in folder.seen.values()}  # fmt: skip
        return self.capacity_bytes - sum(len(each.seen) for each in contents.values())

    def lock(self, path: str, holder: bytes) -> Lock:
        if path in self._locks:
            raise held_by(path, self._locks[path])
        self._locks[path] = holder.decode()
        return _SimulatedLock(self._locks, path)

    def background(self) -> Executor:
        return _Inline()

    def committing(self) -> Executor | None:
        return None

    def _operate(self) -> bool:
        """Counts an operation; True if it is the one at which the power goes."""
        if self._crashed:
            raise SimulatedCrash("the machine is down")
        self.operations += 1
        if self.operations == self.crash_at:
            self._crashed = True
        return self._crashed

    def _content(self, path: str) -> _Content:
        folder, name = self._split(path)
        if name not in folder.seen:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder.seen[name]

    def _split(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._folders[folder], name


class SimulatedFile:
    """An open file of the simulated disk."""

    def __init__(self, disk: SimulatedDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content

    def read(self, position: int, size_bytes: int) -> bytes:
        return bytes(self._content.seen[position : position + size_bytes])

    def write(self, position: int, data: bytes | memoryview) -> None:
        data = bytes(data)
        growth_bytes = position + len(data) - len(self._content.seen)
        down = self._disk._operate()
        failing = self._disk.operations == self._disk.fail_write_at
        if failing or growth_bytes > max(0, self._disk.free_bytes("")):
            data = data[: len(data) // 2]
            failing = True
        self._content.change(_write_change(position, data), self._disk._random)
        self._finish(down)
        if failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_durably(
        self, position: int, data: bytes | memoryview, meanwhile: Meanwhile | None = None
    ) -> None:
        self.write(position, data)
        if meanwhile is not None:
            meanwhile()
        self.sync()

    def sync(self) -> None:
        self._finish(self._disk._operate())
        self._disk.syncs += 1
        if self._disk.syncs == self._disk.fail_sync_at:
            self._content.unsynced.clear()  # as Linux does: still seen, taken for written, and lost
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._content.make_durable(self._disk._random)

    def truncate(self, size_bytes: int) -> None:
        down = self._disk._operate()
        self._content.change(_truncate_change(size_bytes), self._disk._random)
        self._finish(down)

    def size_bytes(self) -> int:
        return len(self._content.seen)

    def close(self) -> None:
        """Nothing is held."""

    def _finish(self, down: bool) -> None:
        if down:
            raise SimulatedCrash(f"the power went at operation {self._disk.operations}")


def _write_change(position: int, data: bytes) -> Callable[[bytearray, DiskOutcome, Random], None]:
    """A write; torn, it leaves some of its sectors, each whole."""

    def change(target: bytearray, outcome: DiskOutcome, random: Random) -> None:
        if outcome is DiskOutcome.DROP:
            return
        if outcome is DiskOutcome.KEEP:
            _put(target, position, data)
            return
        at = position
        while at < position + len(data):
            end = min(at - at % SECTOR_BYTES + SECTOR_BYTES, position + len(data))
            if random.random() < 0.5:
                _put(target, at, data[at - position : end - position])
            at = end

    return change


def _truncate_change(size_bytes: int) -> Callable[[bytearray, DiskOutcome, Random], None]:
    def change(target: bytearray, outcome: DiskOutcome, random: Random) -> None:
        if outcome is DiskOutcome.KEEP or (outcome is DiskOutcome.TEAR and random.random() < 0.5):
            del target[size_bytes:]
            target.extend(bytes(size_bytes - len(target)))

    return change


def _put(target: bytearray, position: int, data: bytes) -> None:
    if len(target) < position:
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


class _SimulatedLock:
    def __init__(self, locks: dict[str, str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.pop(self._path, None)


class _Inline(Executor):
    """Runs at once what a real disk runs beside, so that every run has the same order."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
