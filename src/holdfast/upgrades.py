"""Brings a data folder to the format of this program, before anything in it is opened.

A step takes a folder from one format to the next. It may be interrupted anywhere and is then done
again from its beginning, so it must be able to meet its own traces. The mark comes last.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from holdfast.files import make_folder
from holdfast.folder_format import (
    CURRENT,
    FORMAT,
    UNMARKED,
    FolderFormat,
    check_format,
    format_of,
    mark,
)
from holdfast.journal.local.lock import lock_file
from holdfast.journal.local.names import LOCK
from holdfast.layout import settled_layout
from holdfast.logs import log
from holdfast.version import VERSION

Step = Callable[[Path], None]


def _as_it_is(folder: Path) -> None:
    """The mark is all that is new.

    Format 1 has the files of format 0. The rows of format 1 that format 2 has otherwise are brought
    up to date when their partition is opened, wherever they come from.
    """


STEPS: Final[Mapping[int, Step]] = {UNMARKED.format: _as_it_is, 1: _as_it_is}
"""What takes a folder from a format to the next one."""


def make_current(folder: Path, steps: Mapping[int, Step] = STEPS, target: int = FORMAT) -> None:
    """Marks a new folder, and upgrades one of an older format; says so in the log.

    InvalidState for a newer format, Unavailable while a node has an older folder open.
    """
    check_format(folder)
    if format_of(folder) == CURRENT and target == FORMAT:
        return
    make_folder(folder)
    with _alone(folder):
        found = format_of(folder)  # another process may have been first
        if found is None:
            mark(folder, CURRENT)
        elif found.format < target:
            with _stopped(folder):
                _upgrade(folder, found, steps, target)
        elif found != CURRENT:
            mark(folder, CURRENT)


def _upgrade(folder: Path, found: FolderFormat, steps: Mapping[int, Step], target: int) -> None:
    for number in range(found.format, target):
        steps[number](folder)
        mark(folder, FolderFormat(number + 1, VERSION))
    log.info(
        "data folder upgraded", folder=str(folder), from_format=found.format, to_format=target,
        written_by=found.program, program=VERSION,
    )  # fmt: skip


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process after the other: those of one node start together, and a rebalance ends first."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _stopped(folder: Path) -> Iterator[None]:
    """Nobody has the journals open meanwhile; Unavailable with who it is if somebody does."""
    with contextlib.ExitStack() as stack:
        for journal in settled_layout(folder).journals():
            if journal.is_dir():
                lock = lock_file(str(journal / LOCK), b'{"pid":%d}' % os.getpid())
                stack.callback(lock.release)
        yield
