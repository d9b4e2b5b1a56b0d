"""Makes many files durable with few calls."""

import ctypes
import os

from holdfast.limits import CONTENT_SYNCS_MAX

_libc = ctypes.CDLL(None, use_errno=True)


class ToSync:
    """Files and folders that are to be synced. Many of them are not remembered one by one."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def add(self, *paths: str) -> None:
        """One more file or folder."""
        if len(self._paths) <= CONTENT_SYNCS_MAX:
            self._paths.update(paths)

    def __or__(self, other: "ToSync") -> "ToSync":
        both = ToSync()
        both.add(*self._paths, *other._paths)
        return both

    def sync(self, folder: int) -> None:
        """Syncs them; if they are many, by syncing all of the disk that `folder` is on."""
        if len(self._paths) > CONTENT_SYNCS_MAX:
            _sync_disk(folder)
            return
        for path in filter(os.path.lexists, self._paths):  # a folder may have been removed since
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _sync_disk(folder: int) -> None:
    if not hasattr(_libc, "syncfs"):  # macOS
        os.sync()
    elif _libc.syncfs(folder) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
