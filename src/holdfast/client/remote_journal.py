"""What a remote node is asked about its log."""

from holdfast.client.wire import Wire
from holdfast.gateway.journal.shapes import JournalBounds, JournalQuery, JournalSince


class RemoteJournal:
    """The part of the remote Api that is about the log."""

    async def journal_bounds(self: Wire) -> JournalBounds:
        return await self._get("/v2/journal/bounds", JournalBounds)

    async def journal_bounds_since(self: Wire, since_ms: int) -> JournalBounds:
        return await self._post("/v2/journal/bounds-since", JournalSince(since_ms), JournalBounds)

    async def read_journal(self: Wire, partition: int, position: int, bytes_max: int) -> bytes:
        query = JournalQuery(partition, position, bytes_max)
        return await self._send("POST", "/v2/journal/read", query)
