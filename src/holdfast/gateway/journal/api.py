"""What can be asked of a node about its log."""

from typing import Protocol

from holdfast.gateway.journal.shapes import JournalBounds


class JournalApi(Protocol):
    """The part of the Api that is about the log."""

    async def journal_bounds(self) -> JournalBounds: ...

    async def journal_bounds_since(self, since_ms: int) -> JournalBounds:
        """The bounds without what was written before a time."""
        ...

    async def read_journal(self, partition: int, position: int, bytes_max: int) -> bytes:
        """Durable entries from a position on, as MessagePack: [[position, timestampMs, payload]].

        About `bytes_max` of them, but one at least; none at the end. A position that cannot be read
        is NotFound with the bounds.
        """
        ...
