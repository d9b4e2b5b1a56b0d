"""Where the pipeline reads the log: files of a node here, a node elsewhere, or a broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import InvalidArgument, InvalidState, NotFound
from holdfast.journal import Bounds, Entry
from holdfast.journal.local import SpreadReader
from holdfast.layout import check_not_member, layout_of
from holdfast.pipeline.streams import ONLY_PARTITION, STREAMS, log_of

_HTTP, _KAFKA = ("http://", "https://"), "kafka://"


class CutEnds(NamedTuple):
    """A moment of a whole cluster."""

    cut: int
    ends: dict[
        int, int
    ]  # by partition and by the numbers of `STREAMS`, the position after the last


class Log(Protocol):
    """The log of a node, to be read."""

    def bounds(self) -> dict[int, Bounds]:
        """What can be read now, of every partition."""
        ...

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        """The same without what was written before a time."""
        ...

    def stream_bounds(self) -> dict[int, Bounds]:
        """What can be read now of the topics in `STREAMS`, by their numbers; of those there are."""
        ...

    def read(self, partition: int, position: int) -> list[Entry]:
        """Entries from a position of a partition on, or of a topic in `STREAMS`."""
        ...

    def as_of(self, cut: int | None) -> CutEnds:
        """Where all logs ended as of a cut of a cluster, by default the last one."""
        ...

    def close(self) -> None: ...


class FileLog:
    """The log in a node's folder, read without disturbing the node that writes it."""

    def __init__(self, folder: Path) -> None:
        check_not_member(folder)
        self._reader = SpreadReader(layout_of(folder).journals())
        count = self._reader.topics().get(TOPIC)
        if count is None:
            raise NotFound(
                f"Expected the folder of a node, but {folder} has no log", path=str(folder)
            )
        self._partitions = range(1, count + 1)

    def bounds(self) -> dict[int, Bounds]:
        return {each: self._reader.bounds(TOPIC, each) for each in self._partitions}

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        return {
            partition: Bounds(self._reader.offset_at(TOPIC, partition, since_ms), bounds.next)
            for partition, bounds in self.bounds().items()
        }

    def stream_bounds(self) -> dict[int, Bounds]:
        topics = self._reader.topics()
        return {
            number: self._reader.bounds(stream.topic, ONLY_PARTITION)
            for number, stream in STREAMS.items()
            if stream.topic in topics
        }

    def read(self, partition: int, position: int) -> list[Entry]:
        return self._reader.read_now(*log_of(partition, TOPIC), position)

    def as_of(self, cut: int | None) -> CutEnds:
        raise InvalidState(
            "A single node has no cuts: its partitions have no common order. Only a cluster has"
            " one; name the URL of a member"
        )

    def close(self) -> None:
        self._reader.let_go()


def open_log(address: str) -> Log:
    """The log at an address: the folder of a node, its URL, or that of a log in Kafka."""
    if address.startswith(_KAFKA):
        from holdfast.pipeline.kafka_log import KafkaLog  # the extra may be missing

        return KafkaLog(address)
    if is_node_url(address):
        from holdfast.pipeline.remote_log import RemoteLog  # a folder needs no HTTP client

        return RemoteLog(address)
    if "://" in address:
        raise InvalidArgument(
            f"Expected the folder of a node or a URL such as http://127.0.0.1:8080 or"
            f" kafka://127.0.0.1:9092/NAME, but found {address!r}"
        )
    return FileLog(Path(address))


def is_url(address: str) -> bool:
    return address.startswith((*_HTTP, _KAFKA))


def is_node_url(address: str) -> bool:
    """Whether a node is at an address, which takes requests too."""
    return address.startswith(_HTTP)


def entries_between(log: Log, partition: int, start: int, end: int) -> Iterator[list[Entry]]:
    """The entries of a range, in pieces that fit into memory."""
    position = start
    while position < end:
        entries = log.read(partition, position)
        if not entries and partition in STREAMS:
            return  # the rest is of publishers that the reader may not see
        if not entries and log.bounds()[partition].next >= end:
            return  # the rest is what owners write down for one another
        if not entries:
            raise NotFound(
                f"Expected the log of partition {partition} to reach to {end}, but it ends at"
                f" {position}"
            )
        position = entries[-1].offset + 1
        if position > end:
            entries = [entry for entry in entries if entry.offset < end]
        if entries:
            yield entries
