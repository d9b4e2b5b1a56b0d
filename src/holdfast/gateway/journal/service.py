"""The log itself, for readers on other machines."""

import msgspec

from holdfast.engine.progress import FindBounds, ReadLog
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.journal.api import JournalApi
from holdfast.gateway.journal.shapes import JournalBounds, PartitionBounds
from holdfast.limits import READ_BYTES_MAX, TIMESTAMP_MS_MAX, WHOLE_MAX

_encode = msgspec.msgpack.Encoder().encode


class JournalService(JournalApi):
    """What can be asked about the log."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def bounds(self) -> JournalBounds:
        return await self._bounds(FindBounds())

    async def bounds_since(self, since_ms: int) -> JournalBounds:
        checks.within(since_ms, 0, TIMESTAMP_MS_MAX, "sinceMs")
        return await self._bounds(FindBounds(since_ms))

    async def _bounds(self, query: FindBounds) -> JournalBounds:
        found = await self._asked.ask_all(query)
        return JournalBounds(
            [PartitionBounds(partition, *each) for partition, each in enumerate(found, 1)]
        )

    async def read(self, partition: int, position: int, bytes_max: int) -> bytes:
        checks.within(partition, 1, self._asked.count, "partition")
        checks.within(position, -WHOLE_MAX - 1, WHOLE_MAX, "position")
        checks.within(bytes_max, 1, READ_BYTES_MAX, "bytesMax")
        return _encode(await self._asked.ask(partition, ReadLog(position, bytes_max)))
