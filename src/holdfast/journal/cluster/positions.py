"""What a member knows of all logs: the chains of their ranges, and how far they are acknowledged.

A mark is what an owner told, or where a range was closed. It never goes back. What is told of an
epoch that is not known yet waits until its chain is.
"""

import asyncio
from collections.abc import Callable, Mapping

from holdfast.journal.cluster.chain import is_older, range_of
from holdfast.journal.cluster.messages import Reached
from holdfast.journal.cluster.runs import RangeSpan
from holdfast.sequence.api import Chain, LogKey, Range


class Positions:
    """Chains and marks, and who waits for them to move."""

    def __init__(self) -> None:
        self.on_chain: list[Callable[[Chain], None]] = []  # told of each newer chain
        self.on_unknown: list[Callable[[int], None]] = []  # told of partitions with a newer epoch
        self._chains: dict[int, Chain] = {}
        self._marks: dict[LogKey, int] = {}
        self._waiting: dict[LogKey, list[asyncio.Future[None]]] = {}
        self._early: dict[tuple[int, int, str], int] = {}  # (partition, epoch, topic) -> count

    # --- chains -------------------------------------------------------------------------------

    def chain(self, partition: int) -> Chain:
        """The chain as it is known; without ranges if nobody has told of any."""
        return self._chains.get(partition) or Chain(partition)

    def chains(self) -> Mapping[int, Chain]:
        return self._chains

    def learned(self, chain: Chain) -> bool:
        """A chain was read; whether it is newer than what was known."""
        known = self._chains.get(chain.partition)
        if known is not None and (is_older(chain, known) or chain.revision == known.revision):
            return False
        self._chains[chain.partition] = chain
        if chain.last is not None:
            for topic, start in chain.last.starts.items():
                self._raise(LogKey(topic, chain.partition), start)
        for (partition, epoch, topic), count in list(self._early.items()):
            if partition == chain.partition and epoch <= chain.epoch:
                del self._early[partition, epoch, topic]
                self.reached(partition, epoch, topic, count)
        for tell in self.on_chain:
            tell(chain)
        return True

    def spans(self, partition: int, topic: str, offset: int) -> tuple[Range, RangeSpan] | None:
        """The range that an offset is in, and what of it is acknowledged; None before the chain."""
        ranges = self.chain(partition).ranges
        end: int | None = None
        for each in reversed(ranges):
            start = each.starts.get(topic, 0)
            if start <= offset:
                if end is None:
                    end = self.mark(topic, partition)
                return each, RangeSpan(start, max(end - start, 0))
            end = start
        return None

    # --- marks --------------------------------------------------------------------------------

    def mark(self, topic: str, partition: int) -> int:
        """The offset behind the last entry that is known to be acknowledged."""
        return self._marks.get(LogKey(topic, partition), 0)

    def marks(self) -> dict[LogKey, int]:
        """All marks."""
        return dict(self._marks)

    def heard(self, reached: Reached) -> None:
        """An owner tells how far a log is acknowledged."""
        self.reached(reached.partition, reached.epoch, reached.topic, reached.count)

    def reached(self, partition: int, epoch: int, topic: str, count: int) -> None:
        """So many entries of a topic in a range are acknowledged."""
        chain = self._chains.get(partition)
        ranges = () if chain is None else chain.ranges
        if not ranges or epoch > ranges[-1].epoch:
            key = (partition, epoch, topic)
            self._early[key] = max(count, self._early.get(key, 0))
            for tell in self.on_unknown:
                tell(partition)
            return
        found = ranges[-1]
        if found.epoch != epoch:
            return  # it is closed, and the chain says where
        key, offset = LogKey(topic, partition), found.starts.get(topic, 0) + count
        if offset > self._marks.get(key, 0):
            self._raise(key, offset)

    def stands(self, topic: str, partition: int, offset: int) -> None:
        """A snapshot stands for all below an offset: that is acknowledged."""
        self._raise(LogKey(topic, partition), offset)

    def acknowledged(self, partition: int, epoch: int, topic: str) -> int:
        """How many entries of a range are known to be acknowledged."""
        found = range_of(self.chain(partition), epoch)
        if found is None:
            return self._early.get((partition, epoch, topic), 0)
        return max(self.mark(topic, partition) - found.starts.get(topic, 0), 0)

    def wait(self, topic: str, partition: int) -> asyncio.Future[None]:
        """Done when the mark of a log moves."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(LogKey(topic, partition), []).append(more)
        return more

    def wake_all(self) -> None:
        """Lets all who wait look again, as when the journal is closed."""
        for key in list(self._waiting):
            self._wake(key)

    def _raise(self, key: LogKey, offset: int) -> None:
        if offset > self._marks.get(key, 0):
            self._marks[key] = offset
            if key in self._waiting:
                self._wake(key)

    def _wake(self, key: LogKey) -> None:
        for more in self._waiting.pop(key, ()):
            if not more.done():
                more.set_result(None)
