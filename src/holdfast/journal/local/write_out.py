"""Begins the write-out of what was just written to a file, without waiting for it.

A sync that follows does the same, but then the thread sleeps until the device is done. With the
write-out begun before, some 20 us of other work cost nothing. The system call is one of Linux, and
not in Python's os module.
"""

import ctypes
from collections.abc import Callable

_WRITE = 2  # SYNC_FILE_RANGE_WRITE

BeginWriteOut = Callable[[int, int, int, int], int]


def _found() -> BeginWriteOut | None:
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, TypeError, AttributeError):  # not Linux
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function


_sync_file_range = _found()
can_begin_write_out = _sync_file_range is not None


def begin_write_out(descriptor: int, position: int, size_bytes: int) -> bool:
    """The device gets to work on a range of a file; False if the system cannot do that here.

    What goes wrong with the device is told at the sync.
    """
    if _sync_file_range is None:
        return False
    return _sync_file_range(descriptor, position, size_bytes, _WRITE) == 0
