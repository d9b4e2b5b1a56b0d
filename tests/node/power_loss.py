"""The folder that a power failure leaves: what was synced, and any part of what was not.

`power_loss.c`, loaded into a process, notes what it does to its files. The notes are played here
up to some moment; then the power goes. Names in a folder are kept up to some change of them, and
each sector of a write that was not synced is there or is not.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import NamedTuple

SECTOR_BYTES = 512
_NOTE = struct.Struct("<BiQII")
_TRUNCATED = os.O_TRUNC
_NEW = os.O_CREAT


class Op(IntEnum):
    """What is noted, as the shim numbers it."""

    OPEN = 1
    WRITE = 2
    WRITE_DURABLY = 3
    SYNC = 4
    TRUNCATE = 5
    RENAME = 6
    UNLINK = 7
    LINK = 8
    MKDIR = 9
    RMDIR = 10
    SAID = 11


class Note(NamedTuple):
    """One thing that the process did."""

    op: Op
    file: int
    number: int
    first: bytes
    second: bytes


def build_shim(folder: Path) -> Path | None:
    """The shim as a library; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "power_loss.so"
    source = Path(__file__).with_suffix(".c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-lpthread"]
    subprocess.run(command, check=True)
    return library


def read_notes(path: Path) -> Iterator[Note]:
    """The notes of a process that was killed: the last one may be cut off."""
    data = path.read_bytes()
    at = 0
    while at + _NOTE.size <= len(data):
        op, file, number, first_bytes, second_bytes = _NOTE.unpack_from(data, at)
        at += _NOTE.size
        end = at + first_bytes + second_bytes
        if end > len(data):
            return
        yield Note(Op(op), file, number, data[at : at + first_bytes], data[at + first_bytes : end])
        at = end


class _File:
    """A file's bytes: what is durable, and what was done since."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.unsynced: list[tuple[int, bytes | None]] = []  # None: cut to this size

    def write_durably(self, position: int, data: bytes) -> None:
        """Later than all that is not synced: nothing of that may come back over it."""
        end = position + len(data)
        kept: list[tuple[int, bytes | None]] = []
        for start, earlier in self.unsynced:
            if earlier is None or start >= end or start + len(earlier) <= position:
                kept.append((start, earlier))
                continue
            if start < position:
                kept.append((start, earlier[: position - start]))
            if start + len(earlier) > end:
                kept.append((end, earlier[end - start :]))
        self.unsynced = kept
        _put(self.durable, position, data)

    def sync(self) -> None:
        for position, data in self.unsynced:
            _apply(self.durable, position, data)
        self.unsynced.clear()

    def after_power_loss(self, random: Random) -> bytes:
        found = bytearray(self.durable)
        keep = random.choice((0.0, 0.5, 0.5, 1.0))
        for position, data in self.unsynced:
            if data is None:
                if random.random() < keep:
                    _apply(found, position, None)
                continue
            at = position
            while at < position + len(data):
                end = min(at - at % SECTOR_BYTES + SECTOR_BYTES, position + len(data))
                if random.random() < keep:
                    _put(found, at, data[at - position : end - position])
                at = end
        return bytes(found)


class _Folder:
    """A folder's names: what is durable, and how they were after each change since."""

    def __init__(self) -> None:
        self.names: dict[str, _Entry] = {}
        self.durable: dict[str, _Entry] = {}
        self.unsynced: list[dict[str, _Entry]] = []

    def changed(self) -> None:
        self.unsynced.append(dict(self.names))

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.unsynced.clear()


_Entry = _File | _Folder


class Machine:
    """Plays the notes of a process on a folder that was durable when the process began."""

    def __init__(self, root: Path, before: Path) -> None:
        self._root = root
        self._tree = _load(before)
        self._open: dict[int, _Entry | None] = {}
        self.said = b""  # on standard output

    def play(self, note: Note) -> None:
        match note.op:
            case Op.OPEN:
                self._open[note.file] = self._opened(self._parts(note.first), note.number)
            case Op.SAID:
                self.said += note.first
            case Op.WRITE | Op.WRITE_DURABLY | Op.SYNC | Op.TRUNCATE:
                self._on_file(note)
            case Op.MKDIR:
                self._change(self._parts(note.first), _Folder())
            case Op.UNLINK | Op.RMDIR:
                self._change(self._parts(note.first), None)
            case Op.RENAME | Op.LINK:
                source, target = self._parts(note.first), self._parts(note.second)
                entry = self._find(source)
                if entry is not None:
                    self._change(target, entry)
                    if note.op is Op.RENAME:
                        self._change(source, None)

    def lose_power(self, target: Path, random: Random) -> None:
        """Writes what may be left."""
        _save(self._tree, target, random)

    def _parts(self, path: bytes) -> list[str]:
        return list(Path(path.decode()).relative_to(self._root).parts)

    def _opened(self, parts: list[str], flags: int) -> _Entry | None:
        entry = self._find(parts)
        if entry is None and flags & _NEW:
            entry = _File()
            self._change(parts, entry)
        if flags & _TRUNCATED and isinstance(entry, _File):
            entry.unsynced.append((0, None))
        return entry

    def _on_file(self, note: Note) -> None:
        entry = self._open.get(note.file)
        if entry is None:
            return
        if note.op is Op.SYNC:
            entry.sync()
        elif isinstance(entry, _File):
            if note.op is Op.WRITE:
                entry.unsynced.append((note.number, note.first))
            elif note.op is Op.TRUNCATE:
                entry.unsynced.append((note.number, None))
            else:
                entry.write_durably(note.number, note.first)

    def _find(self, parts: list[str]) -> _Entry | None:
        entry: _Entry | None = self._tree
        for part in parts:
            entry = entry.names.get(part) if isinstance(entry, _Folder) else None
        return entry

    def _change(self, parts: list[str], entry: _Entry | None) -> None:
        parent = self._find(parts[:-1])
        assert isinstance(parent, _Folder), parts
        if entry is None:
            parent.names.pop(parts[-1], None)
        else:
            parent.names[parts[-1]] = entry
        parent.changed()


def _load(path: Path) -> _Folder:
    folder = _Folder()
    for each in path.iterdir():
        folder.names[each.name] = _load(each) if each.is_dir() else _File(each.read_bytes())
    folder.sync()
    return folder


def _save(folder: _Folder, target: Path, random: Random) -> None:
    target.mkdir(mode=0o700)
    states = [folder.durable, *folder.unsynced]
    names = random.choice((states[0], states[-1], random.choice(states)))
    for name, entry in names.items():
        if isinstance(entry, _Folder):
            _save(entry, target / name, random)
        else:
            (target / name).write_bytes(entry.after_power_loss(random))


def _apply(target: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del target[position:]
        target.extend(bytes(position - len(target)))
    else:
        _put(target, position, data)


def _put(target: bytearray, position: int, data: bytes) -> None:
    if len(target) < position:
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data
