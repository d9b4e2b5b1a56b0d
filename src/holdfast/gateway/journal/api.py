"""What can be asked of a node about its log."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.journal.shapes import (
    JournalBounds,
    JournalQuery,
    JournalSince,
    RecordPage,
    RecordQuery,
    RecordTrace,
    RecordView,
)
from holdfast.gateway.operation import BYTES, Namespace, operation

_READ = one(ResourceType.JOURNAL, Permission.READ)
_ONE = "/v2/journal/partitions/{partition}/records/{position}"


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
        """Show which positions of the log can be read, from a time on."""
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

    @operation("list_records", "POST", "/v2/journal/records/listing", _READ)
    async def records(self, query: RecordQuery) -> RecordPage:
        """List records of the log, decoded, the newest first.

        One request looks at a bounded part of the log. A page may be short while there is more:
        its cursors go on from there, in both directions.
        """
        ...

    @operation("get_record", "GET", _ONE, _READ)
    async def record(self, partition: str, position: str) -> RecordView:
        """Show one record of the log, decoded."""
        ...

    @operation("trace_record", "GET", f"{_ONE}/trace", _READ)
    async def trace(self, partition: str, position: str) -> RecordTrace:
        """Show the causes and effects of a record on its partition."""
        ...
