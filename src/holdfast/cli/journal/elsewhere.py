"""The log of a node or of a cluster, read over HTTP and printed."""

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.client.patience import patient
from holdfast.client.remote import RemoteApi
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import NotFound
from holdfast.journal import Entry
from holdfast.limits import ORDER_SPANS_MAX, READ_BYTES_MAX

if TYPE_CHECKING:
    from holdfast.cli.journal.files import TakeRecord
    from holdfast.gateway.api import Api
    from holdfast.gateway.cluster.shapes import OrderedSpan

_PATIENCE_S = 30.0  # while a partition moves, or the node has no room
_LOOK_SECONDS = 0.2  # from one look for news to the next
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class _Ahead:
    """Reads one partition from a position on, in pieces."""

    def __init__(self, api: "Api", partition: int, position: int) -> None:
        self.partition = partition
        self.position = position
        self._api = api
        self._entries: deque[Entry] = deque()

    def skip(self, position: int) -> None:
        """Goes on at a position, if it is not beyond it."""
        if position > self.position:
            self.position = position
            self._entries.clear()

    async def next(self, end: int) -> Entry | None:
        """The next entry before an end; None if there is none, as where owners make notes."""
        if not self._entries and self.position < end:
            found = await self._api.journal.read(self.partition, self.position, READ_BYTES_MAX)
            self._entries.extend(_decode(found))
        if self._entries and self._entries[0].offset < end:
            entry = self._entries.popleft()
            self.position = entry.offset + 1
            return entry
        self.position = max(self.position, end)
        return None


async def print_records(
    url: str, partition: int | None, start: int, show: "TakeRecord", follow: bool
) -> None:
    """Prints what is there in the order of times, partition by partition what comes later."""
    remote = RemoteApi(url)
    try:
        api = patient(remote, _PATIENCE_S)
        ends, readers = await _ends(api, partition), dict[int, _Ahead]()
        while True:
            for each, (earliest, _) in ends.items():
                readers.setdefault(each, _Ahead(api, each, max(start, earliest)))
            async for number, entry in _merged(readers, ends):
                if not show(number, DISPATCH.codec.decode(entry.payload)):
                    return
            if not follow:
                return
            await asyncio.sleep(_LOOK_SECONDS)
            ends = await _ends(api, partition)
    finally:
        await remote.close()


async def _ends(api: "Api", partition: int | None) -> dict[int, tuple[int, int]]:
    """From where to where partitions can be read."""
    found = (await api.journal.bounds()).partitions
    if partition is not None and not any(each.partition_id == partition for each in found):
        raise NotFound(f"Expected a partition from 1 to {len(found)}, but found {partition}")
    return {
        each.partition_id: (each.earliest, each.next)
        for each in found
        if partition in (None, each.partition_id)
    }


async def _merged(
    readers: dict[int, _Ahead], ends: dict[int, tuple[int, int]]
) -> AsyncIterator[tuple[int, Entry]]:
    """Entries of all partitions in the order of their times."""
    heads: list[tuple[int, int, int, Entry]] = []

    async def put(number: int) -> None:
        entry = await readers[number].next(ends[number][1])
        if entry is not None:
            heapq.heappush(heads, (entry.timestamp_ms, number, entry.offset, entry))

    for number in ends:
        await put(number)
    while heads:
        _, number, _, entry = heapq.heappop(heads)
        yield number, entry
        await put(number)


async def print_ordered(
    url: str, partition: int | None, start: int, show: "TakeRecord", follow: bool
) -> None:
    """Prints records in the order of cuts, each with its sequence id, from a cut on."""
    remote = RemoteApi(url)
    try:
        api, cut = patient(remote, _PATIENCE_S), start
        ends = await _ends(api, partition)
        readers = {each: _Ahead(api, each, earliest) for each, (earliest, _) in ends.items()}
        while True:
            page = await api.cluster.order(cut, ORDER_SPANS_MAX)
            for span in page.items:
                reader = readers.get(span.partition_id) if span.topic == TOPIC else None
                if reader is not None and not await _print_span(reader, span, show):
                    return
            cut = page.next_cut
            if cut > page.last_cut:
                if not follow:
                    return
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        await remote.close()


async def _print_span(reader: _Ahead, span: "OrderedSpan", show: "TakeRecord") -> bool:
    """Prints what is still in the log; the older part of it is only in the tables."""
    reader.skip(span.offset)
    while entry := await reader.next(span.offset + span.entries):
        sequence_id = span.sequence_id + entry.offset - span.offset
        if not show(span.partition_id, DISPATCH.codec.decode(entry.payload), sequence_id):
            return False
    return True
