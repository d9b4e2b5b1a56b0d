"""Records of a partition's log, found by a bounded amount of reading.

A log has no index of what its records are about. A scan reads from an offset on, one way or the
other, until it has found enough or read enough; it says where it stopped, and another goes on.
Nothing else is done meanwhile, so a scan is to be short.
"""

from collections.abc import Callable

import msgspec

from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.reader import Reader
from holdfast.errors import NotFound
from holdfast.journal import Entry, Journal
from holdfast.limits import (
    SCAN_ANSWER_BYTES,
    SCAN_READ_BYTES,
    SCAN_SPAN_MAX,
    SCAN_SPAN_MIN,
    TRACE_CAUSES_MAX,
)


class WantedRecords(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which records are looked for; what is left empty is met by all."""

    kinds: tuple[int, ...] = ()
    subjects: tuple[tuple[int, int], ...] | None = None  # value types with intents
    key: int = 0  # the record is about it, or its value names it
    source_position: int | None = None  # of the command that led to it
    since_ms: int | None = None
    until_ms: int | None = None


class LoggedRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record as it stands in the log."""

    offset: int
    timestamp_ms: int  # when it was written
    payload: bytes


class ScannedLog(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a scan found, in the order in which it read."""

    records: list[LoggedRecord]
    begin: int  # where it began
    offset: int  # where to go on: all between was looked at
    is_end: bool  # there is nothing beyond
    time_ms: int  # when the last record was written that it looked at; 0: it looked at none
    read: int = 0  # how many records
    read_bytes: int = 0


class ScanLog(Query[ScannedLog], frozen=True):
    """Records from an offset on that meet a condition; backwards: those before it."""

    is_settled = is_fresh = False
    wanted: WantedRecords
    limit: int
    records_max: int  # to look at
    bytes_max: int
    offset: int | None = None  # None: from the beginning; backwards: from the end
    is_backwards: bool = False


class FindRecord(Query[LoggedRecord | None], frozen=True):
    """The record at a position."""

    is_settled = is_fresh = False
    position: int


class TracedLog(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record with those that led to it, and those that came of the first of them."""

    causes: list[
        LoggedRecord
    ]  # from the first cause on, the record itself last; empty: it is not there
    effects: list[LoggedRecord]  # behind the first cause, in the order of the log
    offset: int  # up to which effects were looked for
    is_whole: bool  # the log ends there


class TraceRecord(Query[TracedLog], frozen=True):
    """What led to the record at a position, and what came of it."""

    is_settled = is_fresh = False
    position: int
    limit: int  # of effects
    records_max: int  # to look at for them
    bytes_max: int


class _Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of a record before its value, which is passed over."""

    position: int
    kind: int
    value_type: int
    intent: int
    key: int
    source_position: int


_head = msgspec.msgpack.Decoder(_Head).decode
_packed = msgspec.msgpack.Encoder().encode


def matcher(wanted: WantedRecords) -> Callable[[bytes], bool]:
    """Whether the bytes of a record are wanted."""
    kinds, source = frozenset(wanted.kinds), wanted.source_position
    subjects = None if wanted.subjects is None else frozenset(wanted.subjects)
    # A key takes nine bytes wherever it stands in a record: nothing else looks like it.
    needle = _packed(wanted.key) if wanted.key else b""
    is_simple = not kinds and subjects is None and source is None

    def matches(payload: bytes) -> bool:
        if needle not in payload:
            return False
        if is_simple:
            return True
        head = _head(payload)
        return (
            (not kinds or head.kind in kinds)
            and (subjects is None or (head.value_type, head.intent) in subjects)
            and (source is None or head.source_position == source)
        )

    return matches


class _Scan:
    """One scan while it reads."""

    def __init__(self, query: ScanLog) -> None:
        self._query = query
        self._matches = matcher(query.wanted)
        self.found: list[LoggedRecord] = []
        self.found_bytes = 0
        self.read = 0
        self.read_bytes = 0
        self.time_ms = 0

    def take(self, entry: Entry) -> None:
        self.read += 1
        self.read_bytes += len(entry.payload)
        self.time_ms = entry.timestamp_ms
        if self._matches(entry.payload):
            self.found.append(LoggedRecord(*entry))
            self.found_bytes += len(entry.payload)

    @property
    def has_enough(self) -> bool:
        query = self._query
        return (
            len(self.found) >= query.limit
            or self.found_bytes >= SCAN_ANSWER_BYTES
            or self.read >= query.records_max
            or self.read_bytes >= query.bytes_max
        )

    def answer(self, begin: int, offset: int, is_end: bool) -> ScannedLog:
        return ScannedLog(
            self.found, begin, offset, is_end, self.time_ms, self.read, self.read_bytes
        )


async def scan_log(reader: Reader, query: ScanLog) -> ScannedLog:
    """Looks at records one way or the other."""
    journal, partition, wanted = reader.journal, reader.partition, query.wanted
    low, high = journal.bounds(TOPIC, partition)
    if wanted.since_ms is not None:
        low = max(low, journal.offset_at(TOPIC, partition, wanted.since_ms))
    if wanted.until_ms is not None:
        high = min(high, journal.offset_at(TOPIC, partition, wanted.until_ms + 1))
    if query.is_backwards:
        end = high if query.offset is None else min(high, query.offset)
        return await _backwards(journal, partition, low, max(end, low), _Scan(query))
    begin = low if query.offset is None else max(low, query.offset)
    return await _forwards(journal, partition, begin, high, _Scan(query))


async def _forwards(
    journal: Journal, partition: int, begin: int, high: int, scan: _Scan
) -> ScannedLog:
    offset = begin
    while offset < high and not scan.has_enough:
        entries = await journal.read(TOPIC, partition, offset, SCAN_READ_BYTES)
        for entry in entries:
            if scan.has_enough:
                break
            if entry.offset >= high:
                offset = high
                break
            scan.take(entry)
            offset = entry.offset + 1
        if not entries:  # the log ends in a gap
            offset = high
    return scan.answer(begin, offset, offset >= high)


async def _backwards(
    journal: Journal, partition: int, low: int, begin: int, scan: _Scan
) -> ScannedLog:
    offset, span = begin, SCAN_SPAN_MIN
    while offset > low and not scan.has_enough:
        least = max(low, offset - span)
        try:
            entries = await _window(journal, partition, least, offset)
        except NotFound:  # it was discarded meanwhile
            return scan.answer(begin, low, True)
        if entries is None:
            span = max(span // 4, 1)
            continue
        for entry in reversed(entries):
            if scan.has_enough:
                break
            scan.take(entry)
            offset = entry.offset
        if not scan.has_enough:
            offset, span = least, min(span * 2, SCAN_SPAN_MAX)
    return scan.answer(begin, offset, offset <= low)


async def _window(journal: Journal, partition: int, begin: int, end: int) -> list[Entry] | None:
    """The entries from one offset to another; None if they are too much for one go."""
    found: list[Entry] = []
    size_bytes = 0
    while begin < end:
        entries = await journal.read(TOPIC, partition, begin, SCAN_READ_BYTES)
        for entry in entries:
            if entry.offset >= end:
                return found
            found.append(entry)
            size_bytes += len(entry.payload)
        if not entries:
            break
        begin = entries[-1].offset + 1
        if size_bytes > 4 * SCAN_READ_BYTES and len(found) > 1 and begin < end:
            return None
    return found


async def find_record(reader: Reader, query: FindRecord) -> LoggedRecord | None:
    return await _at(reader, query.position)


async def _at(reader: Reader, position: int) -> LoggedRecord | None:
    """The record at a position. Offsets may have gaps that positions do not have."""
    low, high = reader.journal.bounds(TOPIC, reader.partition)
    offset = max(low, position)
    while offset < high:
        entries = await reader.journal.read(TOPIC, reader.partition, offset, 1)
        if not entries:
            return None
        found = _head(entries[0].payload).position
        if found >= position:
            return LoggedRecord(*entries[0]) if found == position else None
        offset = entries[0].offset + position - found
    return None


async def trace_record(reader: Reader, query: TraceRecord) -> TracedLog:
    """Goes up from source to source, and down in one pass from the first of them."""
    record = await _at(reader, query.position)
    if record is None:
        return TracedLog([], [], 0, True)
    causes = [record]
    while len(causes) < TRACE_CAUSES_MAX:
        source = _head(causes[-1].payload).source_position
        if source < 0 or (record := await _at(reader, source)) is None:
            break
        causes.append(record)
    causes.reverse()
    tree = {_head(causes[0].payload).position}
    effects: list[LoggedRecord] = []
    offset, read, read_bytes = causes[0].offset + 1, 0, 0
    high = reader.journal.bounds(TOPIC, reader.partition).next
    while offset < high and read < query.records_max and read_bytes < query.bytes_max:
        entries = await reader.journal.read(TOPIC, reader.partition, offset, SCAN_READ_BYTES)
        if not entries:
            offset = high
        for entry in entries:
            read += 1
            read_bytes += len(entry.payload)
            offset = entry.offset + 1
            head = _head(entry.payload)
            if head.source_position in tree:
                tree.add(head.position)
                effects.append(LoggedRecord(*entry))
                if len(effects) >= query.limit:
                    return TracedLog(causes, effects, offset, False)
    return TracedLog(causes, effects, offset, offset >= high)


QUERIES = questions(scan_log, find_record, trace_record)
