"""The log of a node on another machine, read over HTTP."""

import msgspec

from holdfast.client.portal import Portal
from holdfast.client.remote import RemoteApi
from holdfast.errors import Internal
from holdfast.gateway.journal.shapes import JournalBounds
from holdfast.journal import Bounds, Entry
from holdfast.limits import READ_BYTES_MAX

_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class RemoteLog:
    """The log of the node at a URL, over one connection; `Unavailable` while the node is away."""

    def __init__(self, url: str) -> None:
        self._api = RemoteApi(url)
        self._portal = Portal("holdfast-log")

    def bounds(self) -> dict[int, Bounds]:
        return _by_partition(self._portal.call(self._api.journal.bounds()))

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        return _by_partition(self._portal.call(self._api.journal.bounds_since(since_ms)))

    def stream_bounds(self) -> dict[int, Bounds]:
        return {}

    def read(self, partition: int, position: int) -> list[Entry]:
        content = self._portal.call(self._api.journal.read(partition, position, READ_BYTES_MAX))
        try:
            return _decode(content)
        except msgspec.DecodeError as error:
            raise Internal(
                f"Expected entries of the log from {self._api.url}, but found {content[:50]!r}"
            ) from error

    def close(self) -> None:
        self._portal.call(self._api.close())
        self._portal.close()


def _by_partition(found: JournalBounds) -> dict[int, Bounds]:
    return {each.partition_id: Bounds(each.earliest, each.next) for each in found.partitions}
