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

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o755


class FileTree:
    """Changes a tree that nobody reads. `changed` is what has to be synced then."""

    def __init__(self, top: Path, bodies: Bodies) -> None:
        self.changed: set[str] = set()
        self._top = top
        self._bodies = bodies
        self._folder: tuple[str, int] | None = None  # the last one, which is mostly the next

    def close(self) -> None:
        if self._folder is not None:
            os.close(self._folder[1])
            self._folder = None

    def wipe(self) -> None:
        """Begins anew, with an empty tree."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._top)
        self._top.mkdir(mode=_MODE)
        self.changed.update((str(self._top), str(self._top.parent)))

    def remove(self, path: str) -> None:
        """Nothing is at the path any more; what was below it has to be gone already."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder, name = self._parent(path)
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def make_folder(self, path: str) -> None:
        """A folder is at the path, with what it had if it was there."""
        folder, name = self._parent(path)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                return
            os.unlink(name, dir_fd=folder)
        os.mkdir(name, mode=_MODE, dir_fd=folder)

    def make_file(self, path: str, body: bytes) -> None:
        """A file with this body is at the path, where nothing is."""
        folder, name = self._parent(path)
        if not self._bodies.link(body, name, folder):
            self.changed.add(f"{self._top}{path}")

    def _parent(self, path: str) -> tuple[int, str]:
        """The folder that a path is in, open, and the path's last part."""
        above, _, name = path.rpartition("/")
        if self._folder is None or self._folder[0] != above:
            opened = self._open(above)
            self.close()
            self._folder = (above, opened)
            self.changed.add(f"{self._top}{above}")
        return self._folder[1], name

    def _open(self, path: str) -> int:
        """Goes on from the last folder, if it is above, or from the top."""
        last, folder = self._folder or ("", -1)
        if folder >= 0 and path.startswith(f"{last}/"):
            path, folder = path[len(last) :], os.dup(folder)
        else:
            folder = os.open(self._top, _FOLDER)
        for name in path.split("/")[1:]:
            try:
                opened = os.open(name, _FOLDER, dir_fd=folder)
            finally:
                os.close(folder)
            folder = opened
        return folder
