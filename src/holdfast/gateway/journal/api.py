"""What can be asked of a node about its log."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.journal.shapes import JournalBounds, JournalQuery, JournalSince
from holdfast.gateway.operation import BYTES, Namespace, operation

_READ = one(ResourceType.JOURNAL, Permission.READ)


class JournalApi(Namespace, Protocol):
    """The log itself."""

    @operation("get_journal_bounds", "GET", "/v2/journal/bounds", _READ)
    async def bounds(self) -> JournalBounds:
        """Show which positions of the log can be read."""
        ...

    @operation(
        "get_journal_bounds_since", "POST", "/v2/journal/bounds-since", _READ, body=JournalSince
    )
    async def bounds_since(self, since_ms: int) -> JournalBounds:
        """Show which positions of the log can be read that were written at or after a time."""
        ...

    @operation(
        "read_journal", "POST", "/v2/journal/read", _READ, body=JournalQuery, media_type=BYTES
    )
    async def read(self, partition: int, position: int, bytes_max: int) -> bytes:
        """Read the log of a partition, as MessagePack: [[position, timestampMs, payload]].

        Durable entries from a position on: about `bytes_max` of them, but one at least; none at the
        end. A position that cannot be read is NotFound with the bounds.
        """
        ...
