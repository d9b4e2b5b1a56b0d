"""Reads the end of a partition's log for what ended recently: a bounded part, a piece at a time."""

from holdfast.engine.ended.state import RecentlyEnded
from holdfast.engine.ended.values import KeptEnded
from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.reader import Reader
from holdfast.errors import NotFound
from holdfast.limits import ENDED_KEPT_MAX, ENDED_LOOK_BYTES_MAX, ENDED_READ_BYTES, ENDED_RECORDS
from holdfast.records import Record


async def look(reader: Reader, kept: KeptEnded) -> RecentlyEnded:
    """What ended recently, up to the end that the log has now."""
    ended, things_max = reader.state.ended, min(kept.things_max, ENDED_KEPT_MAX)
    async with ended.looking:
        ended.fit(things_max)
        if things_max > 0:
            await _read_on(reader, ended, ENDED_RECORDS * things_max)
            ended.forget_before(reader.now_ms - kept.span_ms)
    return ended


async def _read_on(reader: Reader, ended: RecentlyEnded, records_max: int) -> None:
    """Reads what is new, at most so many records; what lies before them is left out."""
    journal, partition = reader.journal, reader.partition
    end = journal.bounds(TOPIC, partition).next
    records = size_bytes = 0
    while ended.next_offset < end:
        start = max(journal.bounds(TOPIC, partition).earliest, end - records_max)
        if ended.next_offset < start:
            ended.begin(start)
        try:
            entries = await journal.read(TOPIC, partition, ended.next_offset, ENDED_READ_BYTES)
        except NotFound:
            continue  # that part of the log was given up meanwhile
        if not entries:
            return
        payloads = [entry.payload for entry in entries]
        ended.read(reader.domains.codec.decode_many(payloads), [each.offset for each in entries])
        records, size_bytes = records + len(entries), size_bytes + sum(map(len, payloads))
        if size_bytes > ENDED_LOOK_BYTES_MAX:  # they are large: fewer of them must do
            records_max = min(records_max, records * ENDED_LOOK_BYTES_MAX // size_bytes)
        await others()  # live commands pass between two pieces


async def record_at(reader: Reader, offset: int) -> Record | None:
    """A record of the log; None if that part of the log was given up."""
    try:
        entries = await reader.journal.read(TOPIC, reader.partition, offset, 1)
    except NotFound:
        return None
    if not entries or entries[0].offset != offset:
        return None
    return reader.domains.codec.decode_many([entries[0].payload])[0]
