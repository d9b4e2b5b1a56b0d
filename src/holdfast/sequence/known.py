"""What a member has read of the store before, so that it notices when the store is rolled back.

Revision, epochs and cuts only go up. An answer with less comes from an older copy of the store,
unless it was simply overtaken: calls that run at the same time may be answered in any order. So an
answer is held against what was known when its call began, and against facts that are not newer
than its own revision.
"""

from collections.abc import Callable

from holdfast.logs import log
from holdfast.sequence.api import Chain, RolledBack
from holdfast.sequence.stored_values import Head


class KnownStore:
    """The newest that was read. After it was contradicted, nothing is read or written any more."""

    def __init__(self) -> None:
        self.revision = 0
        self.head: Head | None = None  # the last cut
        self.contradiction = ""
        self.on_rolled_back: list[Callable[[str], None]] = []
        self._head_revision = 0
        self._epochs: dict[int, tuple[int, int]] = {}  # with the revision at which it was read

    @property
    def number(self) -> int:
        """Of the last cut; 0 if there is none."""
        return 0 if self.head is None else self.head.number

    def partitions(self) -> set[int]:
        """Those whose chain was read."""
        return set(self._epochs)

    def check(self) -> None:
        """Raises RolledBack if the store was."""
        if self.contradiction:
            raise RolledBack(
                f"The store of the cluster was rolled back: {self.contradiction}. Before any "
                "member is restarted: holdfast cluster repair; see docs/how-to/etcd.md, 'When etcd "
                "was restored from a backup'"
            )

    def answered(self, before: int, revision: int) -> None:
        """An answer of a call that began when `before` was the newest revision."""
        if revision < before:
            self._contradict(f"it was at revision {before} and is now at {revision}")
        self.revision = max(self.revision, revision)

    def saw_chain(self, chain: Chain, revision: int) -> None:
        """A chain as it was at a revision of the store."""
        epoch, at = self._epochs.get(chain.partition, (0, 0))
        if revision < at:
            return
        if chain.epoch < epoch:
            self._contradict(
                f"partition {chain.partition} was in epoch {epoch} and is now in {chain.epoch}"
            )
        self._epochs[chain.partition] = (chain.epoch, revision)

    def saw_head(self, head: Head | None, revision: int) -> None:
        """The last cut as it was at a revision of the store."""
        if revision < self._head_revision:
            return
        number = 0 if head is None else head.number
        if number < self.number or (number == self.number and head != self.head):
            self._contradict(f"its last cut was {self.head} and is now {head}")
        self.head, self._head_revision = head, revision

    def _contradict(self, seen: str) -> None:
        if not self.contradiction:
            self.contradiction = seen
            log.error("the store of the cluster was rolled back", seen=seen)
            for tell in self.on_rolled_back:
                tell(seen)
        self.check()
