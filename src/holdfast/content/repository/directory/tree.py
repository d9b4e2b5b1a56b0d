"""One of the two trees of files: made to be as its index says, one path after the other.

Every step goes from an open folder to the next and follows no link, so that nothing outside of the
tree can be reached, whatever somebody has put into it.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from holdfast.content.repository.directory.bodies import Bodies
from holdfast.content.repository.directory.syncing import ToSync

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o755


class FileTree:
    """Changes a tree that nobody reads. `changed` is what has to be synced then."""

    def __init__(self, top: Path, bodies: Bodies) -> None:
        self.changed = ToSync()
        self._top = top
        self._bodies = bodies
        self._names: list[str] = []  # the way to the last folder, which is near the next one
        self._folders: list[int] = []  # the top and the folders on that way, open

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())
        self._names.clear()

    def wipe(self) -> None:
        """Begins anew, with an empty tree."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._top)
        self._top.mkdir(mode=_MODE)
        self.changed.add(str(self._top), str(self._top.parent))

    def remove(self, path: str) -> None:
        """Nothing is at the path any more; what was below it has to be gone already."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder, name = self._parent(path)
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):  # Linux, macOS
                os.rmdir(name, dir_fd=folder)
            self._changed(path)

    def make_folder(self, path: str) -> None:
        """A folder is at the path, with what it had if it was there."""
        folder, name = self._parent(path)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                return
            os.unlink(name, dir_fd=folder)
        os.mkdir(name, mode=_MODE, dir_fd=folder)
        self._changed(path)

    def make_file(self, path: str, body: bytes) -> None:
        """A file with this body is at the path, where nothing is."""
        folder, name = self._parent(path)
        if not self._bodies.link(body, name, folder):
            self.changed.add(f"{self._top}{path}")
        self._changed(path)

    def _changed(self, path: str) -> None:
        self.changed.add(f"{self._top}{path.rpartition('/')[0]}")

    def _parent(self, path: str) -> tuple[int, str]:
        """The folder that a path is in, open, and the path's last part."""
        _, *names, name = path.split("/")
        if not self._folders:
            self._folders.append(os.open(self._top, _FOLDER))
        while self._names != names[: len(self._names)]:
            self._names.pop()
            os.close(self._folders.pop())
        for each in names[len(self._names) :]:
            self._folders.append(os.open(each, _FOLDER, dir_fd=self._folders[-1]))
            self._names.append(each)
        return self._folders[-1], name
