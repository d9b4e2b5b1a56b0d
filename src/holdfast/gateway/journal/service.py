"""The log itself, for readers on other machines."""

import msgspec

from holdfast.engine.progress import FindBounds, ReadLog
from holdfast.engine.scanning import FindRecord, TraceRecord
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.journal.api import JournalApi
from holdfast.gateway.journal.records import RecordLister
from holdfast.gateway.journal.shapes import (
    JournalBounds,
    PartitionBounds,
    RecordPage,
    RecordQuery,
    RecordTrace,
    RecordView,
)
from holdfast.gateway.journal.views import record_view
from holdfast.limits import (
    READ_BYTES_MAX,
    SCAN_SLICE_BYTES,
    TIMESTAMP_MS_MAX,
    TRACE_EFFECTS_MAX,
    TRACE_RECORDS_MAX,
    WHOLE_MAX,
)

_encode = msgspec.msgpack.Encoder().encode


class JournalService(JournalApi):
    """What can be asked about the log."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._lister = RecordLister(asked)

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

    # --- records ------------------------------------------------------------------------------

    async def records(self, query: RecordQuery) -> RecordPage:
        """Records, the newest first."""
        return await self._lister.page(query)

    async def record(self, partition: str, position: str) -> RecordView:
        number, at = self._place(partition, position)
        found = await self._asked.ask(number, FindRecord(at))
        if found is None:
            raise await self._missing(number, at)
        return record_view(number, found.payload)

    async def trace(self, partition: str, position: str) -> RecordTrace:
        number, at = self._place(partition, position)
        query = TraceRecord(at, TRACE_EFFECTS_MAX, TRACE_RECORDS_MAX, SCAN_SLICE_BYTES)
        found = await self._asked.ask(number, query)
        if not found.causes:
            raise await self._missing(number, at)
        return RecordTrace(
            [record_view(number, each.payload) for each in found.causes],
            [record_view(number, each.payload) for each in found.effects],
            found.is_whole,
            found.offset,
        )

    def _place(self, partition: str, position: str) -> tuple[int, int]:
        for text, what in ((partition, "partition"), (position, "position")):
            if not text.isascii() or not text.isdigit() or len(text) > 18:
                raise InvalidArgument(f"Expected a number for {what}, but found {text!r}")
        return checks.within(int(partition), 1, self._asked.count, "partition"), int(position)

    async def _missing(self, partition: int, position: int) -> NotFound:
        earliest, end = await self._asked.ask(partition, FindBounds())
        where = "it was discarded" if position < earliest else "it is not written yet"
        return NotFound(
            f"There is no record {position} in the log of partition {partition}: {where}; the log"
            f" goes from {earliest} to {end - 1}",
            partition=partition, position=position,
        )  # fmt: skip
