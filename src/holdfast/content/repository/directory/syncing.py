"""Makes many files durable with few calls."""

import ctypes
import os
from collections.abc import Collection

from holdfast.limits import CONTENT_SYNCS_MAX

_libc = ctypes.CDLL(None, use_errno=True)


def sync_all(paths: Collection[str], folder: int) -> None:
    """Syncs files and folders; many of them by syncing all of the disk that `folder` is on."""
    if len(paths) > CONTENT_SYNCS_MAX:
        _sync_disk(folder)
        return
    for path in paths:
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
