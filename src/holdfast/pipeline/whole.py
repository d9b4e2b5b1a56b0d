"""Where tables as of a cut end, so that they have all of a transaction or nothing of it."""

from collections.abc import Iterator, Mapping

from holdfast.engine.transactions.visibility import TransactionSpan, spans_in, whole
from holdfast.pipeline.changes.fold import Unreadable, decoded
from holdfast.pipeline.log import Log, entries_between
from holdfast.pipeline.streams import STREAMS
from holdfast.records import Record


def whole_ends(log: Log, ends: Mapping[int, int], starts: Mapping[int, int]) -> dict[int, int]:
    """The latest ends, none later than these; tables that begin at `starts` read up to them."""
    bounds = log.bounds()
    spans: list[TransactionSpan] = []
    for partition, end in ends.items():
        if partition in STREAMS:
            continue
        start = max(starts.get(partition, 0), bounds[partition].earliest)
        spans += spans_in(partition, _records(log, partition, start, end))
    return whole(ends, spans)


def _records(log: Log, partition: int, start: int, end: int) -> Iterator[tuple[int, Record]]:
    for entries in entries_between(log, partition, start, end):
        for entry, record in zip(entries, decoded(entries), strict=True):
            if not isinstance(record, Unreadable):
                yield entry.offset, record
