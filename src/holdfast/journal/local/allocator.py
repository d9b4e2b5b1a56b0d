"""Segments made ahead of their use, so that a roll does not wait for the disk."""

import errno
import os
from concurrent.futures import Executor, Future

from holdfast.journal.local.disk import Disk, File, fill
from holdfast.journal.local.names import segment_capacity_bytes, segment_name, spare_names


class Allocator:
    """Keeps at most one segment ready for a topic."""

    def __init__(self, disk: Disk, folder: str, segment_bytes: int, background: Executor) -> None:
        self._disk = disk
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._background = background
        self._ready: Future[File] | None = None

    def adopt(self, sequence: int) -> None:
        """Takes up a segment that was made ready before a restart."""
        self._ready = Future()
        self._ready.set_result(self._disk.open(self._path(sequence), writable=True))

    def prepare(self, sequence: int) -> None:
        """Begins to make a segment ready, if that has not begun."""
        if self._ready is None:
            self._ready = self._background.submit(self._create, sequence)

    def take(self, sequence: int, size_bytes: int) -> File:
        """A segment with room for `size_bytes` at least; OSError if the disk has none."""
        ready, self._ready = self._ready, None
        try:
            # An earlier attempt may have found the disk full; by now there may be room.
            file = ready.result() if ready is not None else self._create(sequence)
        except OSError:
            file = self._create(sequence)
        try:
            self.extend(file, size_bytes)
        except OSError:
            file.close()
            raise
        return file

    def extend(self, file: File, size_bytes: int) -> None:
        """Makes a segment as large as an append that is larger than segments are."""
        capacity_bytes = file.size_bytes()
        if capacity_bytes < size_bytes:
            self._check_room(size_bytes - capacity_bytes)
            fill(file, capacity_bytes, size_bytes)

    def close(self) -> None:
        """Lets go of the file that is ready; it stays for the next start."""
        if self._ready is not None and self._ready.exception() is None:
            self._ready.result().close()
        self._ready = None

    def _create(self, sequence: int) -> File:
        capacity_bytes = segment_capacity_bytes(sequence, self._segment_bytes)
        file = self._reuse(sequence, capacity_bytes)
        if file is None:
            self._check_room(capacity_bytes)
            file = self._disk.create(self._path(sequence), capacity_bytes)
        self._disk.sync_folder(self._folder)
        return file

    def _reuse(self, sequence: int, capacity_bytes: int) -> File | None:
        """A discarded segment under a new name, if there is one of about the right size.

        It is not cleared: its frames carry another sequence number and cannot pass for new ones.
        """
        for name in spare_names(self._disk.list(self._folder)):
            spare = f"{self._folder}/{name}"
            file = self._disk.open(spare, writable=True)
            size_bytes = file.size_bytes()
            if capacity_bytes // 2 <= size_bytes <= 2 * capacity_bytes:
                self._disk.rename(spare, self._path(sequence))
                self.extend(file, capacity_bytes)
                return file
            file.close()
            self._disk.remove(spare)
        return None

    def _check_room(self, size_bytes: int) -> None:
        # Asked first, so that appends on a full disk fail at once and do not fill it to the brim.
        if self._disk.free_bytes(self._folder) < size_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._folder)

    def _path(self, sequence: int) -> str:
        return f"{self._folder}/{segment_name(sequence)}"
