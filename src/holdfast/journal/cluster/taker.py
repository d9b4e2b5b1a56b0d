"""The rules of a take-over: fence, choose the tail, copy it, close and open, find out who won.

    FENCING   ask the replicas of the last range, its own set, for their promise
    COPYING   a quorum has answered: the longest answers are the tail; bring it to a quorum
    CLOSING   a quorum holds all of it: write the chain with the range closed and the next one open
    WON       the chain has the next range, and its nonce is ours
    BEATEN    it has another's, or a disk has promised more: read the chain, and decide anew

A taker that starts anew with the same chain is just another taker: it asks for the same promise.
"""

from enum import Enum

from holdfast.journal.cluster.chain import (
    Opening,
    extended,
    is_opened_by,
    is_rolled_back,
)  # fmt: skip
from holdfast.journal.cluster.owner import Lack, OwnerRange
from holdfast.journal.cluster.replica import Counts
from holdfast.sequence.api import Chain, Replica
from holdfast.sequence.quorum import quorum_of


class TakePhase(Enum):
    """How far a take-over is."""

    FENCING = "fencing"
    COPYING = "copying"
    CLOSING = "closing"
    WON = "won"
    BEATEN = "beaten"


class TakeOver:
    """One attempt to open the range behind the last one of a chain that was just read."""

    def __init__(self, chain: Chain, opening: Opening) -> None:
        self.chain = chain
        self.opening = opening
        self.opens = chain.epoch + 1
        # The range's own set is fenced, whatever the next one will be.
        self.replicas = chain.last.replicas if chain.last else ()
        self.quorum = quorum_of(len(self.replicas)) if self.replicas else 0
        self.tail: dict[str, int] = {}
        self.evidence = (0, 0)  # the largest promise, and epoch with entries, that a disk told of
        self._holding: dict[Replica, dict[str, int]] = {}
        # A partition that was never written has nothing to fence and nothing to copy.
        self.phase = TakePhase.FENCING if self.replicas else TakePhase.CLOSING

    @classmethod
    def by_owner(cls, chain: Chain, ours: OwnerRange, opening: Opening) -> "TakeOver":
        """A planned move by the owner, which appends no more: nobody is fenced.

        With itself as the next owner it changes the replica set.
        """
        assert chain.epoch == ours.epoch, "only the open range is handed over"
        assert ours.is_fenced, "an owner that hands over takes nothing any more"
        assert ours.is_drained, "a range is closed when a quorum holds all of it"
        planned = cls(chain, opening)
        planned.tail, planned.phase = ours.sent(), TakePhase.CLOSING
        return planned

    # --- fencing ---

    def promised(self, replica: Replica, counts: Counts, newest: int = 0) -> None:
        """A disk has promised, and told what it has of the range; it may tell so again."""
        if replica not in self.replicas or self.phase not in (TakePhase.FENCING, TakePhase.COPYING):
            return
        self._holds(replica, counts)
        self.saw(0, newest)

    def saw(self, promise: int, newest: int) -> None:
        """A disk has a promise, and entries of epochs up to the newest one.

        Either may be beyond what the chain allows: somebody was faster, or the chain is old.
        """
        is_ended = self.phase is TakePhase.WON
        if not is_ended and (promise > self.opens or newest >= self.opens):
            self.evidence = max(self.evidence[0], promise), max(self.evidence[1], newest)
            self.phase = TakePhase.BEATEN

    @property
    def can_choose(self) -> bool:
        return self.phase is TakePhase.FENCING and len(self._holding) >= self.quorum

    def choose(self) -> dict[str, int]:
        """The tail: by topic the longest answer, of which all others are prefixes."""
        assert self.can_choose, "the tail is chosen from the answers of a quorum"
        for counts in self._holding.values():
            for topic, count in counts.items():
                self.tail[topic] = max(self.tail.get(topic, 0), count)
        self.phase = TakePhase.COPYING
        return self.tail

    # --- copying ---

    def copied(self, replica: Replica, counts: Counts) -> None:
        """A disk has stored entries that were copied to it; what it has now."""
        if self.phase is TakePhase.COPYING and replica in self.replicas:
            self._holds(replica, counts)

    def lacks(self, replica: Replica) -> list[Lack]:
        """What a disk that has answered needs to hold the whole tail."""
        counts = self._holding.get(replica)
        if counts is None:
            return []
        return [
            Lack(topic, counts.get(topic, 0), end)
            for topic, end in self.tail.items()
            if counts.get(topic, 0) < end
        ]

    def holders(self, topic: str) -> list[Replica]:
        """The disks that have the tail of a topic, from which the other disks get it."""
        end = self.tail.get(topic, 0)
        return [each for each, counts in self._holding.items() if counts.get(topic, 0) >= end]

    def answered(self) -> list[Replica]:
        return list(self._holding)

    @property
    def can_close(self) -> bool:
        """Whether all of the tail is on a quorum of the range's own set."""
        if self.phase is TakePhase.CLOSING:
            return True
        if self.phase is not TakePhase.COPYING:
            return False
        whole = [each for each in self._holding if not self.lacks(each)]
        return len(whole) >= self.quorum

    # --- closing ---

    def close(self) -> Chain:
        """The chain to write, in the place of the one that was read; the same if asked again."""
        assert self.can_close, "a range is closed when a quorum holds all of it"
        self.phase = TakePhase.CLOSING
        return extended(self.chain, self.tail, self.opening)

    def read_back(self, chain: Chain) -> TakePhase:
        """What became of the write, by a chain that was read after it: CLOSING means try again.

        As long as the outcome is unknown, the same write is tried again, and no other.
        """
        assert self.phase is TakePhase.CLOSING, "only a write is read back"
        if chain.epoch >= self.opens:
            mine = chain.epoch == self.opens and is_opened_by(chain, self.opens, self.opening)
            self.phase = TakePhase.WON if mine else TakePhase.BEATEN
        elif chain.revision != self.chain.revision:
            self.phase = TakePhase.BEATEN  # other sets of closed ranges: the guard will never hold
        return self.phase

    def is_rolled_back(self, chain: Chain) -> bool:
        """Whether a disk told of more than a chain has that was read after it."""
        return is_rolled_back(chain, *self.evidence)

    def _holds(self, replica: Replica, counts: Counts) -> None:
        """Answers may be late and doubled: what a disk has told of stays told."""
        told = self._holding.setdefault(replica, {})
        for topic, count in counts.items():
            told[topic] = max(told.get(topic, 0), count)
