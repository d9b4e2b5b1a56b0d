"""A single node that answers as a member of a cluster does: a test makes the cuts."""

from collections.abc import Sequence
from typing import Any

from holdfast.cluster.cut_log import JournalCutLog
from holdfast.cluster.desk import ClusterDesk
from holdfast.journal.memory import MemoryJournal
from holdfast.node import Node
from holdfast.sequence.api import Cut, LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.keeping import CutKeeper


class _Nobody:
    """There are no other members."""

    async def cuts(self, first: int, last: int) -> Sequence[Cut]:
        return ()


class _Parts:
    """As much of a member as the order needs."""

    def __init__(self, keeper: CutKeeper) -> None:
        self.cuts = keeper
        self.messenger = _Nobody()


class OrderedNode:
    """Each `cut` says how far the node's logs are at that moment."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.at = START

    async def begin(self) -> None:
        self._keeper = await CutKeeper.open(JournalCutLog(MemoryJournal()))
        self._keeper.begin(START)
        parts: Any = _Parts(self._keeper)
        self._node.gateway.join_cluster(ClusterDesk(parts))

    async def cut(self) -> int:
        """Publishes a cut of everything that is in the log now."""
        journal = self._node.journal
        marks = {
            LogKey(topic, partition): journal.bounds(topic, partition).next
            for topic, count in journal.topics().items()
            for partition in range(1, count + 1)
        }
        cut = make_cut(self.at, marks, "a", f"n{self.at.number}", self.at.number * 1_000)
        self.at = follow(self.at, cut)
        self._keeper.follow(cut, self.at)
        return cut.number
