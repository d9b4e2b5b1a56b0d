"""The log of a node on another machine, read over HTTP."""

import time
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.client.content_log import TOPIC_WORDS
from holdfast.client.portal import Portal
from holdfast.client.remote import RemoteApi
from holdfast.content.ports import TopicEntries
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import Forbidden, Internal, Unauthorized
from holdfast.gateway.cluster.shapes import LogPosition
from holdfast.gateway.content.shapes import TopicQuery
from holdfast.gateway.journal.shapes import JournalBounds
from holdfast.journal import Bounds, Entry
from holdfast.limits import READ_BYTES_MAX
from holdfast.pipeline.log import CutEnds
from holdfast.pipeline.streams import STREAMS

_STREAMS_SECONDS = 2.0  # from one look at the topics of content to the next

_decode = msgspec.msgpack.Decoder(list[Entry]).decode
_decode_page = msgspec.msgpack.Decoder(TopicEntries).decode


class RemoteLog:
    """The log of the node at a URL, over one connection; `Unavailable` while the node is away."""

    def __init__(self, url: str) -> None:
        self._api = RemoteApi(url)
        self._portal = Portal("holdfast-log")
        self._streams: dict[int, Bounds] = {}
        self._look_at = 0.0  # when the streams are looked at again

    def bounds(self) -> dict[int, Bounds]:
        return _by_partition(self._portal.call(self._api.journal.bounds()))

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        return _by_partition(self._portal.call(self._api.journal.bounds_since(since_ms)))

    def stream_bounds(self) -> dict[int, Bounds]:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _STREAMS_SECONDS
            self._streams = self._find_streams()
        return self._streams

    def _find_streams(self) -> dict[int, Bounds]:
        """Nothing where no content is distributed, or where the caller may not read any."""
        try:
            if not self._portal.call(self._api.content.publishers()):
                return {}
        except (Forbidden, Unauthorized):
            return {}
        found: dict[int, Bounds] = {}
        for number in STREAMS:
            page = self._page(number, 0, bytes_max=1)
            found[number] = Bounds(page.earliest, page.end)
        return found

    def _page(self, number: int, offset: int, bytes_max: int = READ_BYTES_MAX) -> TopicEntries:
        query = TopicQuery(TOPIC_WORDS[STREAMS[number]], offset, bytes_max=bytes_max)
        return _decode_page(self._portal.call(self._api.content.read(query)))

    def _read_stream(self, number: int, position: int) -> list[Entry]:
        """Packages of publishers that the caller may not read are passed over."""
        page = self._page(number, position)
        while not page.entries and page.next < page.end:
            page = self._page(number, page.next)
        return [Entry._make(each) for each in page.entries]

    def read(self, partition: int, position: int) -> list[Entry]:
        if partition in STREAMS:
            return self._read_stream(partition, position)
        content = self._portal.call(self._api.journal.read(partition, position, READ_BYTES_MAX))
        try:
            return _decode(content)
        except msgspec.DecodeError as error:
            raise Internal(
                f"Expected entries of the log from {self._api.url}, but found {content[:50]!r}"
            ) from error

    def as_of(self, cut: int | None) -> CutEnds:
        found = self._portal.call(self._api.cluster.positions(cut))
        return CutEnds(found.number, dict(_numbered(found.logs)))

    def close(self) -> None:
        self._portal.call(self._api.close())
        self._portal.close()


def _numbered(logs: Iterable[LogPosition]) -> Iterator[tuple[int, int]]:
    """Ends of logs by the numbers under which the tables know them; others have no tables."""
    streams = {stream.topic: number for number, stream in STREAMS.items()}
    for each in logs:
        if each.topic == TOPIC:
            yield each.partition_id, each.offset
        elif each.topic in streams:
            yield streams[each.topic], each.offset


def _by_partition(found: JournalBounds) -> dict[int, Bounds]:
    return {each.partition_id: Bounds(each.earliest, each.next) for each in found.partitions}
