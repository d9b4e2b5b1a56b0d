"""The sync log of a group over a journal: a topic of its own with one partition."""

from collections.abc import AsyncIterator

from holdfast.journal import Bounds, Entry, Journal, Retention
from holdfast.limits import READ_BYTES_MAX

PARTITION = 1  # the only one
_TOPIC_PREFIX = "group-"


def topic_of(group: str) -> str:
    """The topic of a group of a user's programs."""
    return f"{_TOPIC_PREFIX}{group}"


def group_of(topic: str) -> str | None:
    """The group whose topic this is; None for another topic."""
    return topic.removeprefix(_TOPIC_PREFIX) if topic.startswith(_TOPIC_PREFIX) else None


class JournalSyncLog:
    """Keeps the port `SyncLog`: every member appends, and reads all of it."""

    def __init__(self, journal: Journal, topic: str, retention: Retention | None = None) -> None:
        self._journal = journal
        self.topic = topic
        journal.create_topic(topic, PARTITION, retention)

    async def append(self, body: bytes) -> None:
        """Appends a message; it is durable then. May raise Unknown."""
        await self._journal.append(self.topic, PARTITION, [body])

    def bounds(self) -> Bounds:
        """What can be read now."""
        return self._journal.bounds(self.topic, PARTITION)

    async def read(self, offset: int) -> list[Entry]:
        """Messages from an offset on; NotFound for one that is gone."""
        return await self._journal.read(self.topic, PARTITION, offset, READ_BYTES_MAX)

    def stream(self, offset: int) -> AsyncIterator[list[Entry]]:
        """Batches of messages from an offset on, for ever."""
        return self._journal.stream(self.topic, PARTITION, offset)

    def discard(self, before: int) -> None:
        """Gives up what stands before an offset."""
        earliest, end = self.bounds()
        if earliest < before <= end:
            self._journal.discard(self.topic, PARTITION, before)
