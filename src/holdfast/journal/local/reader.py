"""A local journal that another process writes, opened for reading only."""

import asyncio
from collections.abc import Sequence
from types import MappingProxyType

from holdfast.errors import DataLoss, InvalidState
from holdfast.journal.api import Append, Entry, Needed, Outcome, Refused, Retention, Taken
from holdfast.journal.checks import check_offset, unknown_topic
from holdfast.journal.local.disk import Disk, RealDisk
from holdfast.journal.local.follower import TopicFollower
from holdfast.journal.local.names import load_settings
from holdfast.journal.local.reading import ReadableJournal
from holdfast.journal.local.view import TopicView
from holdfast.limits import READ_BYTES_MAX, STREAM_POLL_MS_MAX, STREAM_POLL_MS_MIN


class JournalReader(ReadableJournal):
    """Reads what is durable, follows rolls and removals, takes no lock and writes nothing."""

    def __init__(self, root: str, disk: Disk) -> None:
        super().__init__(root)
        self._disk = disk
        self._followers: dict[str, TopicFollower] = {}

    @classmethod
    def open(cls, root: str, *, disk: Disk | None = None) -> "JournalReader":
        """Opens a journal's folder; topics may come to be later."""
        return cls(str(root), disk or RealDisk())

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        self._check_open()
        found: dict[str, int] = {}
        for name in self._disk.list(self._root):
            settings = load_settings(self._disk, f"{self._root}/{name}")
            if settings is not None:
                found[name] = settings.partitions
        return found

    def read_now(
        self, topic: str, partition: int, offset: int, bytes_max: int = READ_BYTES_MAX
    ) -> list[Entry]:
        """As of any journal; what the writer gives up meanwhile is NotFound."""
        try:
            return super().read_now(topic, partition, offset, bytes_max)
        except (DataLoss, FileNotFoundError):
            # The file may have been discarded and used again while it was read: if it was, the
            # bounds now say so.
            check_offset(topic, partition, offset, self.bounds(topic, partition))
            raise

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """As of any journal."""
        earliest = self.bounds(topic, partition).earliest
        try:
            return super().offset_at(topic, partition, timestamp_ms)
        except (DataLoss, FileNotFoundError):
            if self.bounds(topic, partition).earliest == earliest:
                raise
            return super().offset_at(topic, partition, timestamp_ms)

    async def close(self) -> None:
        """As of any journal; a reader has nothing to wait for."""
        self.let_go()

    def let_go(self) -> None:
        """Lets go of the files; streams end with Unavailable."""
        self._closed = True
        for follower in self._followers.values():
            follower.close()
        self._followers.clear()

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        raise self._read_only()

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        raise self._read_only()

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        raise self._read_only()

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        raise self._read_only()

    def discard(self, topic: str, partition: int, before: int) -> None:
        raise self._read_only()

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        raise self._read_only()

    def _view(self, topic: str) -> TopicView:
        self._check_open()
        follower = self._followers.get(topic)
        if follower is None:
            folder = f"{self._root}/{topic}"
            settings = load_settings(self._disk, folder)
            if settings is None:
                raise unknown_topic(topic)
            follower = self._followers[topic] = TopicFollower(self._disk, folder, topic, settings)
        follower.refresh()
        return follower.view

    async def _wait_for_more(self, topic: str, partition: int, misses: int) -> None:
        wait_ms = min(STREAM_POLL_MS_MIN << min(misses, 16), STREAM_POLL_MS_MAX)
        await asyncio.sleep(wait_ms / 1000)

    def _read_only(self) -> InvalidState:
        return InvalidState(
            f"expected a journal open for writing, but {self._root} is open for reading only",
            path=self._root,
        )
