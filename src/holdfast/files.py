"""Files and folders that are durable when the call returns."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Writes all of it: the system may take less at once than it is given."""
    with memoryview(data) as left:
        written = 0
        while written < len(data):
            written += os.write(descriptor, left[written:])


def make_folder(folder: Path) -> None:
    """Makes sure that a folder is there, durably, with those around it.

    Its name is synced even where it is there already: its maker may have been interrupted.
    """
    if not folder.parent.exists():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """A rename is durable once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Makes everything in a folder durable, names and contents."""
    for path in folder.rglob("*"):
        sync_folder(path)
    sync_folder(folder)


def replace_file(path: Path, data: bytes) -> None:
    """Writes a small file: a crash leaves the former one or this one, never a part."""
    beside = path.with_suffix(".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(path)
    sync_folder(path.parent)


def folder_bytes(folder: Path) -> int:
    """How much room the files in a folder take; those that go away meanwhile do not count."""
    total = 0
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                total += folder_bytes(Path(entry))
            else:
                with contextlib.suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return total
    return total
