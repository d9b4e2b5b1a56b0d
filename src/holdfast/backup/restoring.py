"""Puts a backup into an empty folder.

    <folder>/restoring      everything is written here first, checked piece by piece, and opened:
                            the log is scanned, the state read. While it is there nobody opens the
                            folder
    <folder>/journal ...    moved into place when all of it is good, the mark of the format last

An interrupted restore leaves `restoring`; the next one removes everything and begins anew.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path

from holdfast.backup.cut import STATE
from holdfast.backup.manifest import BackupManifest, StoredFile, safe_path
from holdfast.backup.taking import BackupProgress
from holdfast.backup.target import BackupTarget
from holdfast.errors import DataLoss, InvalidState, ResourceExhausted
from holdfast.files import make_folder, sync_folder, sync_tree, write_all
from holdfast.folder_format import RESTORING, FolderFormat, mark
from holdfast.journal.local import LocalJournal
from holdfast.journal.local.extent import lay_out
from holdfast.layout import new_layout, write_layout
from holdfast.state.copies import copy_folder
from holdfast.state.rocks import RocksStore

Restore = Generator[None, None, None]


def check_empty(folder: Path) -> None:
    """Refuses a folder that has anything but an interrupted restore."""
    if folder.exists() and not folder.is_dir():
        raise InvalidState(f"Expected a folder, but {folder} is a file", path=str(folder))
    if folder.exists() and _content(folder) and not (folder / RESTORING).exists():
        raise InvalidState(
            f"Expected an empty folder to restore into, but {folder} has files; give another"
            " folder, or move this one away",
            path=str(folder),
        )


def restore(
    target: BackupTarget, manifest: BackupManifest, folder: Path, progress: BackupProgress
) -> Restore:
    """Makes the folder of a node that a node starts on. It is there as a whole, or not at all."""
    check_empty(folder)
    _check_room(manifest, folder)
    progress.total_bytes = manifest.size_bytes
    making = folder / RESTORING
    make_folder(folder)
    for path in sorted(_content(folder), key=lambda each: each == making):  # that one last
        _remove(path)
    make_folder(making)
    try:
        yield from _build(target, manifest, making, progress)
    except BaseException:
        shutil.rmtree(making)
        raise
    for step in _put_in_place(manifest, making, folder):
        step()
        yield


def _build(
    target: BackupTarget, manifest: BackupManifest, making: Path, progress: BackupProgress
) -> Restore:
    """Everything but its place: written, checked and durable."""
    for file in manifest.files:
        yield from _write_file(target, manifest, file, making, progress)
    for prefix, topics in manifest.logs.items():
        for topic, extent in topics.items():
            lay_out(making / f"{prefix}journal" / topic, extent)
            yield
        _open_log(making / prefix)
        yield from _open_state(making / prefix)
    sync_tree(making)
    yield


def _content(folder: Path) -> list[Path]:
    """What is in a folder, but for what a file system keeps at its root."""
    return [path for path in folder.iterdir() if path.name != "lost+found"]


def _put_in_place(
    manifest: BackupManifest, making: Path, folder: Path
) -> list[Callable[[], object]]:
    """From here on nothing can fail but the disk."""
    moved = [_mover(path, folder / path.name) for path in sorted(making.iterdir())]
    layout = new_layout(folder, manifest.members, manifest.partitions)
    steps: list[Callable[[], object]] = [*moved]
    if layout.members > 1:
        steps.append(lambda: write_layout(layout))
    steps += [
        lambda: mark(folder, FolderFormat(manifest.format, manifest.program)),
        lambda: (making.rmdir(), sync_folder(folder)),
    ]
    return steps


def _mover(source: Path, place: Path) -> Callable[[], object]:
    def move() -> None:
        source.rename(place)
        sync_folder(place.parent)

    return move


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _check_room(manifest: BackupManifest, folder: Path) -> None:
    there = folder
    while not there.exists():
        there = there.absolute().parent
    state_bytes = sum(each.size_bytes for each in manifest.files if STATE in each.path)
    wanted_bytes, free_bytes = manifest.size_bytes + state_bytes, shutil.disk_usage(there).free
    if free_bytes < wanted_bytes:
        raise ResourceExhausted(
            f"Expected room for {wanted_bytes} bytes in {folder}, but the disk has {free_bytes};"
            " make room, or restore to another disk",
            path=str(folder),
        )


def _write_file(
    target: BackupTarget,
    manifest: BackupManifest,
    file: StoredFile,
    making: Path,
    progress: BackupProgress,
) -> Restore:
    if not safe_path(file.path):
        raise DataLoss(f"Expected a path within the folder, but found {file.path!r}")
    path = making / file.path
    if not path.parent.exists():
        make_folder(path.parent)
    written_bytes = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for piece in file.pieces:
            data = target.piece(piece, file)
            write_all(descriptor, data)
            written_bytes += len(data)
            progress.done_bytes += len(data)
            yield
    finally:
        os.close(descriptor)
    if written_bytes != file.size_bytes:
        raise DataLoss(
            f"Expected {file.size_bytes} bytes of {file.path} in backup {manifest.generation}, but"
            f" its pieces have {written_bytes}; use another generation",
            path=file.path,
        )


def _open_log(folder: Path) -> None:
    """Opens the log as a start does, which checks all frames and writes the indexes.

    DataLoss where it is not as it was written.
    """
    asyncio.run(LocalJournal.open(folder / "journal").close())


def _open_state(folder: Path) -> Restore:
    """Reads the whole state, and puts a copy of it where a node uses it."""
    store = RocksStore(folder / STATE, read_only=True)
    try:
        for _ in store.walk():
            yield
    finally:
        store.abandon()
    yield from copy_folder(folder / STATE, folder / "state" / "live")
