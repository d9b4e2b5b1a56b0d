"""The endpoints about the log itself."""

from holdfast.gateway.api import Api
from holdfast.gateway.http.endpoint import Endpoint, endpoint
from holdfast.gateway.journal.shapes import JournalBounds, JournalQuery, JournalSince

BYTES = "application/octet-stream"


@endpoint("GET", "/v2/journal/bounds")
async def get_journal_bounds(api: Api) -> JournalBounds:
    """Show which positions of the log can be read."""
    return await api.journal_bounds()


@endpoint("POST", "/v2/journal/bounds-since")
async def get_journal_bounds_since(api: Api, body: JournalSince) -> JournalBounds:
    """Show which positions of the log can be read that were written at or after a time."""
    return await api.journal_bounds_since(body.since_ms)


@endpoint("POST", "/v2/journal/read", media_type=BYTES)
async def read_journal(api: Api, body: JournalQuery) -> bytes:
    """Read the log of a partition, as MessagePack: [[position, timestampMs, payload]]."""
    return await api.read_journal(body.partition, body.position, body.bytes_max)


JOURNAL_ENDPOINTS: tuple[Endpoint, ...] = (
    get_journal_bounds, get_journal_bounds_since, read_journal,
)  # fmt: skip
