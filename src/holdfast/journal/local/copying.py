"""A new journal that is filled from others: appends keep their offsets, times and epochs.

Nobody reads it before it is whole, so it is synced once, at its end.
"""

import os
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.files import sync_tree
from holdfast.journal.api import Append, Appended, Retention
from holdfast.journal.local.disk import Meanwhile, RealDisk, RealFile, fill
from holdfast.journal.local.journal import LocalJournal
from holdfast.journal.local.view import WrittenAppend


class JournalCopy:
    """Takes appends in the order of their times; durable when it is closed."""

    def __init__(self, root: Path, segment_bytes: int) -> None:
        self._root = root
        self._clock = _AppendClock()
        self._journal = LocalJournal.open(
            root, clock=self._clock, disk=_LaterDisk(), segment_bytes=segment_bytes
        )

    def create_topic(self, topic: str, partitions: int, retention: Retention) -> None:
        """As of any journal."""
        self._journal.create_topic(topic, partitions, retention)

    def begin_at(self, topic: str, partition: int, offset: int, epoch: int) -> None:
        """Where a partition's first append goes; the epoch is that of what was discarded."""
        self._journal.begin_at(topic, partition, offset, epoch)

    async def take(self, topic: str, partition: int, written: WrittenAppend) -> None:
        """Appends what another journal has, as it has it."""
        assert written.timestamp_ms >= self._clock.append_ms, "appends come in order of time"
        self._clock.append_ms = written.timestamp_ms
        append = Append(topic, partition, written.entries, written.epoch, written.offset)
        (outcome,) = await self._journal.append_many([append])
        assert isinstance(outcome, Appended), outcome

    async def close(self) -> None:
        """Everything is durable when this returns."""
        await self._journal.close()
        sync_tree(self._root)


class _AppendClock(SystemClock):
    """The time at which the next append was written where it comes from."""

    append_ms = 0

    def now_ms(self) -> int:
        return self.append_ms


class _LaterFile(RealFile):
    """A file that somebody else syncs."""

    def write_durably(
        self, position: int, data: bytes | memoryview, meanwhile: Meanwhile | None = None
    ) -> None:
        self.write(position, data)

    def sync(self) -> None:
        """Not yet."""


class _LaterDisk(RealDisk):
    """The file system of the machine, for files that are synced together."""

    def create(self, path: str, size_bytes: int) -> RealFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = _LaterFile(os.open(path, flags, 0o600))
        try:
            fill(file, 0, size_bytes)
        except OSError:
            file.close()
            raise
        return file

    def open(self, path: str, *, writable: bool = False) -> RealFile:
        return _LaterFile(os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC))

    def sync_folder(self, path: str) -> None:
        """Not yet."""

    def committing(self) -> None:
        """Nothing waits for the disk, so nothing is gained by a thread."""
