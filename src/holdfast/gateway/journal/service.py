"""The log itself, for readers on other machines."""

import msgspec

from holdfast.engine.kernel.runner import TOPIC
from holdfast.gateway import checks
from holdfast.gateway.journal.shapes import JournalBounds, PartitionBounds
from holdfast.journal import Journal
from holdfast.limits import READ_BYTES_MAX, TIMESTAMP_MS_MAX, WHOLE_MAX

_encode = msgspec.msgpack.Encoder().encode


class JournalReads:
    """What can be asked about the log."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._partitions = journal.topics()[TOPIC]

    def bounds(self) -> JournalBounds:
        return JournalBounds(
            [
                PartitionBounds(partition, *self._journal.bounds(TOPIC, partition))
                for partition in range(1, self._partitions + 1)
            ]
        )

    def bounds_since(self, since_ms: int) -> JournalBounds:
        checks.within(since_ms, 0, TIMESTAMP_MS_MAX, "sinceMs")
        return JournalBounds(
            [
                PartitionBounds(
                    each.partition_id,
                    self._journal.offset_at(TOPIC, each.partition_id, since_ms),
                    each.next,
                )
                for each in self.bounds().partitions
            ]
        )

    async def read(self, partition: int, position: int, bytes_max: int) -> bytes:
        checks.within(partition, 1, self._partitions, "partition")
        checks.within(position, -WHOLE_MAX - 1, WHOLE_MAX, "position")
        checks.within(bytes_max, 1, READ_BYTES_MAX, "bytesMax")
        return _encode(await self._journal.read(TOPIC, partition, position, bytes_max))
