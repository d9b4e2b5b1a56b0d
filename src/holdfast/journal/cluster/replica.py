"""The rules of one replica: one partition on one disk. The owner's own disk obeys them too.

What a rule allows is stored and synced by the caller, who then calls `stored` or `promised`, and
answers after that. Between the two only the caller's write is under way: a later append may be
allowed meanwhile, but nothing is reported that is not durable, and a promise that is being written
already binds.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class Keep(NamedTuple):
    """The entries behind the first `skip` of them are to be written and synced."""

    skip: int


class Again(NamedTuple):
    """All of them are here or being written; so many of the topic in the range are durable."""

    durable: int


class Missing(NamedTuple):
    """There would be a gap: only so many of the topic in the range are here."""

    has: int


class Bound(NamedTuple):
    """The disk is bound by a promise to a newer epoch."""

    promise: int


class Promise(NamedTuple):
    """The promise is to be written and synced; if it is not new, it was before."""

    opens: int
    is_new: bool


class OwnerAlive(NamedTuple):
    """The fence is refused: this member still hears the owner."""


class Unregistered(NamedTuple):
    """The fence is refused: the taker is not a member, or was removed."""


_KEEP_ALL = Keep(0)
Decision: TypeAlias = Keep | Again | Missing | Bound
Counts: TypeAlias = Mapping[str, int]


class ReplicaRules:
    """What a disk may take, promise and report of a partition."""

    __slots__ = ("_durable", "_promise", "_raised", "_taken")

    def __init__(self, promise: int = 0, counts: Mapping[int, Counts] | None = None) -> None:
        """As it was found on the disk. Entries of an epoch are a promise to it as well."""
        found = {epoch: dict(topics) for epoch, topics in (counts or {}).items()}
        self._promise = max([promise, *(epoch for epoch, topics in found.items() if topics)])
        self._raised = self._promise  # with those that are being written
        self._durable = found  # by epoch and topic, how many entries
        self._taken = {epoch: dict(topics) for epoch, topics in found.items()}  # and being written

    @property
    def promise(self) -> int:
        """The newest epoch that this disk is bound to, with one that is being written."""
        return self._raised

    @property
    def durable_promise(self) -> int:
        return self._promise

    @property
    def newest(self) -> int:
        """The newest epoch of which there are entries; 0: there are none."""
        return max((epoch for epoch, topics in self._durable.items() if topics), default=0)

    def counts(self, epoch: int) -> dict[str, int]:
        """By topic, how many entries of a range are durable: the answer to a fence."""
        return dict(self._durable.get(epoch, ()))

    def epochs(self) -> list[int]:
        return sorted(self._durable)

    def taken(self, epoch: int, topic: str) -> int:
        """How many entries are here, with those that are being written."""
        topics = self._taken.get(epoch)
        return topics.get(topic, 0) if topics else 0

    # --- the owner's appends ---

    def append(self, epoch: int, topic: str, number: int, count: int) -> Decision:
        """Entries of the owner of an epoch, from a number on."""
        if self.is_bound(epoch):
            return Bound(self._raised)
        topics = self._taken.get(epoch)
        if topics is not None and topics.get(topic) == number and count and self._raised == epoch:
            topics[topic] = number + count  # what follows the last one, as nearly always
            return _KEEP_ALL
        decided = self._extend(epoch, topic, number, count)
        if type(decided) is Keep:
            self._raised = max(self._raised, epoch)
        return decided

    def is_bound(self, epoch: int) -> bool:
        """Whether a promise forbids to take or to report anything of an epoch."""
        return self._raised > epoch

    def may_report(self, epoch: int) -> bool:
        """After a promise to a newer epoch nothing is reported, to the owner or to anybody."""
        return not self.is_bound(epoch)

    def stored(self, epoch: int, topic: str, count: int) -> int | None:
        """A topic of a range is durable up to a count; what may be reported of it, if anything."""
        assert count <= self.taken(epoch, topic), "only what was taken becomes durable"
        topics = self._durable.get(epoch)
        if topics is None:
            topics = self._durable[epoch] = {}
        durable = topics.get(topic, 0)
        if count > durable:
            topics[topic] = durable = count
        if epoch > self._promise:  # the entries stand for it
            self._promise = epoch
            self._raised = max(self._raised, epoch)
        return durable if self.may_report(epoch) else None

    def lost(self, epoch: int, topic: str) -> None:
        """What was being written of a topic did not get to the disk; nothing of it is under way."""
        durable = self._durable.get(epoch, {}).get(topic, 0)
        self._taken.setdefault(epoch, {})[topic] = durable

    # --- take-overs ---

    def fence(
        self,
        epoch: int,
        opens: int,
        *,
        hears_owner: bool = False,
        is_drain: bool = False,
        is_registered: bool = True,
    ) -> Promise | Bound | OwnerAlive | Unregistered:
        """A taker asks to take nothing of an epoch any more, for the sake of the one it opens.

        A promise that was given before is given again, without looking at who is heard.
        """
        assert opens > epoch, "a range is opened behind the one that is fenced"
        if not is_registered:
            return Unregistered()
        if self.is_bound(opens):
            return Bound(self._raised)
        if self._raised < opens and hears_owner and not is_drain:
            return OwnerAlive()
        return self._promises(opens)

    def copy(self, epoch: int, opens: int, topic: str, number: int, count: int) -> Decision:
        """A taker brings entries of the range that it fenced. They are stored, never reported.

        It binds like the fence: the promise is written before the copy is answered.
        """
        if self.is_bound(opens):
            return Bound(self._raised)
        self._promises(opens)
        return self._extend(epoch, topic, number, count)

    def promised(self, opens: int) -> None:
        """A promise is durable."""
        assert opens <= self._raised, "only what was raised becomes durable"
        self._promise = max(self._promise, opens)

    # --- closed ranges ---

    def fill(self, epoch: int, topic: str, number: int, count: int, end: int) -> Decision:
        """Entries of a range that was closed at a count, from another replica of it.

        The chain vouches for them, so no promise is asked; they are never reported.
        """
        return self._extend(epoch, topic, number, min(count, max(end - number, 0)))

    def jump(self, epoch: int, topic: str, number: int) -> None:
        """A snapshot stands for all that is below a number, which was acknowledged."""
        for counts in (self._taken, self._durable):
            topics = counts.setdefault(epoch, {})
            topics[topic] = max(topics.get(topic, 0), number)

    def leave(self, epoch: int) -> Promise | None:
        """This disk is to be a replica of no range up to an epoch, the last one of the chain.

        It promises the next epoch: should the chain ever be older than that, the disk shows it.
        None if the disk has seen more than this chain.
        """
        if self._raised > epoch + 1 or self._has_beyond(epoch):
            return None
        return self._promises(epoch + 1)

    def left(self, epoch: int) -> bool:
        """Forgets the entries of all ranges up to an epoch; False if there are newer ones."""
        if self._has_beyond(epoch):
            return False
        self._taken.clear()
        self._durable.clear()
        return True

    def _has_beyond(self, epoch: int) -> bool:
        return any(each > epoch and any(topics.values()) for each, topics in self._taken.items())

    def _promises(self, opens: int) -> Promise:
        self._raised = max(self._raised, opens)
        return Promise(opens, is_new=self._promise < opens)

    def _extend(self, epoch: int, topic: str, number: int, count: int) -> Keep | Again | Missing:
        has = self.taken(epoch, topic)
        if number > has:
            return Missing(has)
        if number + count <= has:
            return Again(self._durable.get(epoch, {}).get(topic, 0))
        self._taken.setdefault(epoch, {})[topic] = number + count
        return Keep(has - number)
