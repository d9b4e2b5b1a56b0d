"""The five topics of content distribution in the journal."""

from enum import Enum
from zlib import crc32

from holdfast.journal import Retention

PARTITION = 1  # the only one of each topic
_DAY_MS = 86_400_000


class ContentTopic(Enum):
    """A topic, with how many partitions it has and how long what is in it is kept."""

    PACKAGES = ("content-packages", 1, 7 * _DAY_MS)
    STATUSES = ("content-statuses", 1, 8 * _DAY_MS)
    DISCOVERIES = ("content-discoveries", 1, 3_600_000)
    COMMANDS = ("content-commands", 1, 8 * _DAY_MS)
    EVENTS = ("content-events", 1, 8 * _DAY_MS)

    def __init__(self, topic: str, partitions: int, age_ms: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.retention = Retention(age_ms=age_ms)

    def partition_of(self, subscriber: str) -> int:
        """The partition that has what is said by or to a subscriber."""
        return 1 + crc32(subscriber.encode()) % self.partitions
