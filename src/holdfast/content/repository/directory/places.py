"""Where the parts of a directory store are, and the link that says which tree stands."""

import contextlib
import fcntl
import os
from pathlib import Path

from holdfast.errors import InvalidState
from holdfast.files import replace_file, sync_folder

SIDES = ("a", "b")


class Places:
    """`www` and its private folder `.www.holdfast` beside it."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self.private = into.with_name(f".{into.name}.holdfast")
        self._indexes = self.private / "indexes"
        self._clean = self.private / "clean"
        self._lock = -1

    def tree(self, side: str) -> Path:
        return self.private / side

    def index(self, side: str) -> Path:
        return self._indexes / f"{side}.sqlite"

    def make(self) -> None:
        """Makes what is missing of a new store; InvalidState if something else is at its place."""
        into, private = self.into, self.private
        is_new = self._checked() is None
        into.parent.mkdir(parents=True, exist_ok=True)
        private.mkdir(mode=0o755, exist_ok=True)  # readers of the files pass through it
        for side in SIDES:
            self.tree(side).mkdir(mode=0o755, exist_ok=True)
        self._indexes.mkdir(mode=0o700, exist_ok=True)
        if is_new:
            for folder in (private, into.parent):
                sync_folder(folder)

    def _checked(self) -> str | None:
        """The tree that stands, if there is one."""
        into = self.into
        if into.is_symlink():
            return self.standing()
        if into.is_dir() and not any(into.iterdir()):
            return None
        if into.exists():
            what = "a folder with something in it" if into.is_dir() else "a file"
            raise InvalidState(
                f"Expected {into} to be missing, an empty folder, or a directory store, but it is"
                f" {what}; move it away, or name another place",
                path=str(into),
            )
        return None

    def standing(self) -> str:
        """The tree that the link names."""
        target = str(self.into.readlink())
        for side in SIDES:
            if target == self._target(side):
                return side
        raise InvalidState(
            f"Expected {self.into} to be a link into {self.private.name}, but it is one to"
            f" {target}; name another place, or put the link right",
            path=str(self.into),
        )

    def has_link(self) -> bool:
        return self.into.is_symlink()

    def make_link(self, side: str) -> None:
        """A new store gets its link, unless another process has made it meanwhile."""
        if not self.into.is_symlink() and self.into.is_dir():
            self.into.rmdir()  # it was empty a moment ago
        with contextlib.suppress(FileExistsError):
            self.into.symlink_to(self._target(side))
        sync_folder(self.into.parent)

    def swap(self, side: str) -> None:
        """Another tree stands from now on, durably; for the holder of the lock."""
        beside = self.private / "next"
        beside.unlink(missing_ok=True)
        beside.symlink_to(self._target(side))
        beside.rename(self.into)
        sync_folder(self.into.parent)

    def _target(self, side: str) -> str:
        return f"{self.private.name}/{side}"

    def swapped_ms_ago(self, now_ms: float) -> float:
        """For how long the tree has stood that stands."""
        return now_ms - os.lstat(self.into).st_mtime_ns / 1e6

    # --- who may change it ----------------------------------------------------------------------

    def lock(self) -> None:
        """Nobody else changes it until this process has ended or closed it."""
        if self._lock >= 0:
            return
        file = os.open(self.private / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise InvalidState(
                f"Another process changes {self.into}; a directory store has one subscriber",
                path=str(self.into),
            ) from None
        self._lock = file

    @property
    def is_locked(self) -> bool:
        return self._lock >= 0

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def folds_case(self) -> bool:
        """Whether the disk takes names for the same that differ in upper and lower case."""
        return (self.private / "LOCK").exists()

    # --- whether the other tree is as its index says -------------------------------------------

    def take_clean(self, number: int) -> bool:
        """Whether the store was closed in order at this commit; it counts as not closed then."""
        try:
            is_clean = self._clean.read_text() == str(number)
        except FileNotFoundError:
            return False
        with contextlib.suppress(FileNotFoundError):
            self._clean.unlink()
        sync_folder(self.private)
        return is_clean

    def leave_clean(self, number: int) -> None:
        replace_file(self._clean, str(number).encode())
