"""Lists of records over one partition or all of them, page by page in both directions.

A cursor is a line through the logs: an offset of each partition, older records before it, newer
ones behind. A page lies between two such lines, so turning back gives the same records again.
"""

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from holdfast.engine.scanning import LoggedRecord, ScanLog, ScannedLog, WantedRecords
from holdfast.engine.telling import subjects_of
from holdfast.errors import InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.journal.shapes import RecordEnd, RecordFilter, RecordPage, RecordQuery
from holdfast.gateway.journal.views import record_view
from holdfast.limits import (
    PAGE_ITEMS_MAX,
    SCAN_ANSWER_BYTES,
    SCAN_BYTES_MAX,
    SCAN_PARTITIONS_MAX,
    SCAN_RECORDS_MAX,
    SCAN_SLICE_BYTES,
    SCAN_SLICE_RECORDS,
    TIMESTAMP_MS_MAX,
    WHOLE_MAX,
)
from holdfast.records import RecordKind

_RECORDS_MIN = 500  # of each partition, however many there are: one go of reading

Line = dict[int, int]
"""An offset for each partition."""

_replace = msgspec.structs.replace
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[int, int]).decode


@dataclass
class _Strand:
    """What a scan of one partition found, and how much of it the page has taken."""

    partition: int
    scanned: ScannedLog
    taken: int = 0

    @property
    def head(self) -> LoggedRecord | None:
        rest = self.scanned.records
        return rest[self.taken] if self.taken < len(rest) else None

    @property
    def place(self) -> tuple[int, int] | None:
        """Where its next record is in the order of all; None if there is none.

        Where the scan stopped, the next one is not known: it is nearer than none before it.
        """
        if self.head is not None:
            return self.head.timestamp_ms, self.partition
        return None if self.scanned.is_end else (self.scanned.time_ms, self.partition)

    def line(self, is_backwards: bool) -> int:
        """Where the page ends in this partition."""
        head = self.head
        if head is None:
            return self.scanned.offset
        return head.offset + 1 if is_backwards else head.offset


class _Merged(NamedTuple):
    """Records of several partitions in one order."""

    items: list[tuple[int, LoggedRecord]]
    time_ms: int  # up to which all were looked at, where that is why there are no more; else 0


class RecordLister:
    """Lists records as the asker may see them."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def page(self, query: RecordQuery) -> RecordPage:
        """A page of records, the newest first."""
        asked, page = query.filter, query.page
        limit = checks.within(page.limit, 1, PAGE_ITEMS_MAX, "limit")
        partitions = self._partitions(asked)
        wanted = self._wanted(asked)
        if page.older_than is not None and page.newer_than is not None:
            raise InvalidArgument(
                "Expected one cursor, but found olderThan and newerThan", field="olderThan"
            )
        cursor = page.newer_than if page.older_than is None else page.older_than
        line = None if cursor is None else _read(cursor, partitions)
        is_backwards = page.newer_than is None and (
            page.older_than is not None or page.start is RecordEnd.NEWEST
        )
        strands = await self._scan(partitions, wanted, limit, line, is_backwards)
        merged = _merge(strands, limit, is_backwards)
        began = line or {each.partition: each.scanned.begin for each in strands}
        ended = {each.partition: each.line(is_backwards) for each in strands}
        has_more = any(each.place is not None for each in strands)
        has_other = line is not None  # the page before this one
        older, newer = (ended, began) if is_backwards else (began, ended)
        items = merged.items if is_backwards else merged.items[::-1]
        return RecordPage(
            [record_view(partition, record.payload) for partition, record in items],
            _text(newer), _text(older),
            has_newer=has_other if is_backwards else has_more,
            has_older=has_more if is_backwards else has_other,
            looked_at=sum(each.scanned.read for each in strands),
            looked_to=checks.moment(merged.time_ms),
        )  # fmt: skip

    def _partitions(self, asked: RecordFilter) -> list[int]:
        if asked.partition is not None:
            return [checks.within(asked.partition, 1, self._asked.count, "partition")]
        if asked.source_position is not None:
            raise InvalidArgument(
                "Expected a partition with the source position, as each has positions of its own,"
                " but found none",
                field="partition",
            )
        if self._asked.count > SCAN_PARTITIONS_MAX:
            raise InvalidArgument(
                f"Expected a partition, as there are {self._asked.count} and at most"
                f" {SCAN_PARTITIONS_MAX} are read together, but found none",
                field="partition",
            )
        return list(range(1, self._asked.count + 1))

    def _wanted(self, asked: RecordFilter) -> WantedRecords:
        for time_ms, name in ((asked.since_ms, "sinceMs"), (asked.until_ms, "untilMs")):
            if time_ms is not None:
                checks.within(time_ms, 0, TIMESTAMP_MS_MAX, name)
        if asked.source_position is not None:
            checks.within(asked.source_position, 0, WHOLE_MAX, "sourcePosition")
        return WantedRecords(
            () if asked.type is None else (int(RecordKind[asked.type]),),
            subjects_of(asked.value_type, asked.intent),
            0 if asked.key is None else checks.key_from(asked.key, self._asked.count, "record"),
            asked.source_position, asked.since_ms, asked.until_ms,
        )  # fmt: skip

    async def _scan(
        self,
        partitions: list[int],
        wanted: WantedRecords,
        limit: int,
        line: Line | None,
        is_backwards: bool,
    ) -> list[_Strand]:
        scans = [
            self._scan_one(
                each, len(partitions),
                ScanLog(
                    wanted, limit, SCAN_SLICE_RECORDS, SCAN_SLICE_BYTES,
                    None if line is None else line[each], is_backwards,
                ),
            )
            for each in partitions
        ]  # fmt: skip
        found = await asyncio.gather(*scans)
        return [_Strand(*each) for each in zip(partitions, found, strict=True)]

    async def _scan_one(self, partition: int, partitions: int, query: ScanLog) -> ScannedLog:
        """Looks at a share of what one request may, in slices between which others have a turn."""
        records_max = max(SCAN_RECORDS_MAX // partitions, _RECORDS_MIN)
        bytes_max = SCAN_BYTES_MAX // partitions
        whole: ScannedLog | None = None
        size_bytes = 0
        while True:
            left = records_max - (0 if whole is None else whole.read)
            query = _replace(query, records_max=min(left, SCAN_SLICE_RECORDS))
            slice_ = await self._asked.ask(partition, query)
            size_bytes += slice_.read_bytes
            whole = slice_ if whole is None else _joined(whole, slice_)
            limit = query.limit - len(slice_.records)
            is_enough = limit <= 0 or whole.read >= records_max or size_bytes >= bytes_max
            found_bytes = sum(len(each.payload) for each in whole.records)
            if slice_.is_end or is_enough or found_bytes >= SCAN_ANSWER_BYTES:
                return whole
            query = _replace(query, offset=slice_.offset, limit=limit)
            await asyncio.sleep(0)


def _joined(first: ScannedLog, second: ScannedLog) -> ScannedLog:
    return _replace(
        second,
        records=[*first.records, *second.records],
        begin=first.begin,
        time_ms=second.time_ms or first.time_ms,
        read=first.read + second.read,
    )


def _merge(strands: list[_Strand], limit: int, is_backwards: bool) -> _Merged:
    """Takes records in the order of their times, until enough or as far as all strands go."""
    items: list[tuple[int, LoggedRecord]] = []
    first = max if is_backwards else min
    while len(items) < limit:
        going = [(each.place, each) for each in strands if each.place is not None]
        if not going:
            break
        _, strand = first(going, key=lambda pair: pair[0])
        record = strand.head
        if record is None:
            return _Merged(items, strand.scanned.time_ms)
        items.append((strand.partition, record))
        strand.taken += 1
    return _Merged(items, 0)


def _text(line: Line) -> str:
    return base64.urlsafe_b64encode(_encode(line)).decode()


def _read(text: str, partitions: list[int]) -> Line:
    try:
        line = _decode(base64.b64decode(text, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        line = {}
    if set(line) != set(partitions):
        raise InvalidArgument(
            f"Expected the cursor of a page of the same partitions, but found {text[:80]!r}",
            field="cursor",
        )
    return line
