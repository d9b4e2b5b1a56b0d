"""The owner's side: sends appends to the replicas, and answers when a quorum has reported them.

Replicas get an append before the own disk does, so that they write at the same time. A replica that
does not take what is sent is left out: it finds the gap when it hears of more, and fetches.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Unknown
from holdfast.journal.api import Append, Appended, Outcome, Refused
from holdfast.journal.cluster.messages import Appending, Marks, Reached, Stretch
from holdfast.journal.cluster.opened import OPENED_TOPIC
from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.ports import Peers
from holdfast.journal.cluster.positions import Positions
from holdfast.limits import CLUSTER_MARKS_MS, CLUSTER_SEND_BYTES
from holdfast.sequence.api import Range, Replica

Durable = asyncio.Future[Appended | Refused]


class _Pending(NamedTuple):
    """An append that waits for its quorum."""

    end: int  # the number behind its last entry
    answer: Durable
    appended: Appended


class OwnedRange:
    """A range that this start of this member appends to."""

    def __init__(self, opened: Range, partition: int, member: str, last_ms: int) -> None:
        self.rules = OwnerRange(opened)
        self.opened = opened
        self.partition = partition
        self.epoch = opened.epoch
        self.others = tuple(each.member for each in opened.replicas if each.member != member)
        self.pending: dict[str, deque[_Pending]] = {}
        self.last_ms = last_ms  # time never goes back in a partition
        self.fenced_by = 0  # the promise of a disk that ended it

    def next(self, topic: str) -> int:
        """The offset at which the next append of a topic begins."""
        return self.opened.starts.get(topic, 0) + self.rules.next(topic)


class OwnerSending:
    """All ranges that this member owns."""

    def __init__(self, replica: Replica, peers: Peers, positions: Positions, clock: Clock) -> None:
        self.on_fenced: list[Callable[[int], None]] = []
        self.store_own: Callable[[Sequence[Stretch]], None] = lambda stretches: None
        self.owned: dict[int, OwnedRange] = {}
        self._replica = replica
        self._peers = peers
        self._positions = positions
        self._clock = clock
        self._moved: dict[tuple[int, int, str], int] = {}  # (partition, epoch, topic) -> to be told
        self._behind: set[str] = set()  # members that did not take what was sent
        self._unmarked: set[str] = set()  # ... or the marks
        self._timer: asyncio.TimerHandle | None = None

    # --- ranges -------------------------------------------------------------------------------

    def begin(self, partition: int, opened: Range, last_ms: int) -> OwnedRange:
        """A range was opened for this start of this member."""
        self.end(partition)
        owned = self.owned[partition] = OwnedRange(opened, partition, self._replica.member, last_ms)
        self._moved[partition, opened.epoch, OPENED_TOPIC] = 0  # who hears it reads the chain
        self._tick_soon()
        return owned

    def end(self, partition: int) -> None:
        """Appends no more, and forgets the range; what waits is unknown."""
        owned = self.owned.pop(partition, None)
        if owned is not None:
            owned.rules.stop()
            self._give_up(owned)

    def fenced(self, partition: int, promise: int) -> None:
        """A disk of the set has promised an epoch."""
        owned = self.owned.get(partition)
        if owned is not None and owned.rules.fenced(promise):
            owned.fenced_by = promise
            self._give_up(owned)
            for tell in self.on_fenced:
                tell(partition)

    def is_owning(self, partition: int, epoch: int) -> bool:
        """Whether appends in an epoch are taken here."""
        owned = self.owned.get(partition)
        return owned is not None and owned.epoch == epoch and not owned.rules.is_fenced

    def is_ended(self, partition: int) -> bool:
        """Whether a range that is owned here was fenced, by whomever."""
        owned = self.owned.get(partition)
        return owned is not None and owned.rules.is_ended

    def waiting(self) -> list[Durable]:
        """The answers that wait for a quorum."""
        return [
            each.answer
            for owned in self.owned.values()
            for pending in owned.pending.values()
            for each in pending
        ]

    def _give_up(self, owned: OwnedRange) -> None:
        for topic, pending in owned.pending.items():
            for each in pending:
                if not each.answer.done():
                    each.answer.set_exception(
                        Unknown(
                            f"expected a quorum to keep an append to partition {owned.partition} of"
                            f" topic {topic!r}, but epoch {owned.epoch} was fenced before it did",
                            partition=owned.partition,
                        )
                    )
                    each.answer.exception()  # if nobody listens any more, asyncio does not warn
            pending.clear()

    # --- appends ------------------------------------------------------------------------------

    def append(self, appends: Sequence[Append]) -> list[Outcome]:
        """Sends appends that were checked; what becomes of each."""
        outcomes: list[Outcome] = []
        groups: dict[tuple[str, ...], list[Stretch]] = {}
        stretches: list[Stretch] = []
        loop, now_ms = asyncio.get_running_loop(), self._clock.now_ms()
        for topic, partition, entries, epoch, offset in appends:
            owned = self.owned.get(partition)
            if owned is None:
                outcomes.append(self._not_owned(partition, topic))
                continue
            rules, count = owned.rules, len(entries)
            following = owned.opened.starts.get(topic, 0) + rules.next(topic)
            if (
                rules.is_fenced
                or (offset is not None and offset != following)
                or (epoch is not None and epoch != owned.epoch)
            ):
                outcomes.append(_refusal(owned, following, epoch, offset))
                continue
            number = rules.append(topic, count)
            assert number is not None
            owned.last_ms = now_ms = max(now_ms, owned.last_ms)
            stretch = Stretch(
                partition, owned.epoch, topic, number, now_ms, list(entries),
                rules.acknowledged(topic),
            )  # fmt: skip
            stretches.append(stretch)
            groups.setdefault(owned.others, []).append(stretch)
            answer: Durable = loop.create_future()
            pending = owned.pending.get(topic)
            if pending is None:
                pending = owned.pending[topic] = deque()
            appended = Appended(following, following + count)
            pending.append(_Pending(number + count, answer, appended))
            outcomes.append(answer)
        for members, several in groups.items():
            self._send(members, several)
        if stretches:
            self.store_own(stretches)
        return outcomes

    def _send(self, members: Sequence[str], stretches: list[Stretch]) -> None:
        """Sends in messages that are not too large; one append is never split."""
        first, size_bytes = 0, 0
        for at, each in enumerate(stretches):
            size_bytes += sum(map(len, each.entries))
            if size_bytes >= CLUSTER_SEND_BYTES or at + 1 == len(stretches):
                message = Appending(stretches[first : at + 1])
                left_out = self._peers.tell(members, message) if members else []
                if left_out:
                    self._behind.update(left_out)
                    self._tick_soon()
                first, size_bytes = at + 1, 0

    def _not_owned(self, partition: int, topic: str) -> Refused:
        chain = self._positions.chain(partition)
        last = chain.last
        following = self._positions.mark(topic, partition)
        owner = f"{last.owner} has the partition" if last is not None else "it has no owner"
        return Refused(partition, chain.epoch, following, f"{owner}, in epoch {chain.epoch}")

    # --- reports ------------------------------------------------------------------------------

    def reported(self, replica: Replica, reports: Sequence[Reached]) -> None:
        """A disk has entries of ranges, after its sync."""
        for report in reports:
            partition, epoch, topic = report.partition, report.epoch, report.topic
            owned = self.owned.get(partition)
            if owned is None or owned.epoch != epoch:
                continue
            rules = owned.rules
            acknowledged = rules.reported(replica, topic, report.count)
            if acknowledged is None:
                if rules.is_ended:  # somebody else appends in this epoch
                    self._give_up(owned)
                continue
            self._positions.reached(partition, epoch, topic, acknowledged)
            self._moved[partition, epoch, topic] = acknowledged
            pending = owned.pending.get(topic)
            while pending and pending[0].end <= acknowledged:
                _, answer, appended = pending.popleft()
                if not answer.done():
                    answer.set_result(appended)
        if self._moved and self._timer is None:
            self._tick_soon()

    # --- what is told from time to time -------------------------------------------------------

    def probe(self, member: str) -> None:
        """Asks a replica for a report of all it has; where it lacks something, it finds out."""
        stretches = [
            Stretch(
                owned.partition, owned.epoch, topic, count, owned.last_ms, [],
                owned.rules.acknowledged(topic),
            )
            for owned in self.owned.values()
            if member in owned.others and not owned.rules.is_fenced
            for topic, count in owned.rules.sent().items()
        ]  # fmt: skip
        if stretches and self._peers.tell([member], Appending(stretches)):
            self._behind.add(member)
            self._tick_soon()

    def tell_marks(self, members: Sequence[str]) -> None:
        """Tells members all marks of ranges that are owned here."""
        marks = [
            Reached(owned.partition, owned.epoch, topic, owned.rules.acknowledged(topic))
            for owned in self.owned.values()
            for topic in owned.rules.sent()
        ]
        if marks:
            self._tell_marks(members, marks)

    def _tell_marks(self, members: Sequence[str], marks: list[Reached]) -> None:
        left_out = self._peers.tell(members, Marks(marks))
        if left_out:
            self._unmarked.update(left_out)
            self._tick_soon()

    def close(self) -> None:
        """Tells nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick_soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(CLUSTER_MARKS_MS / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        heard = sorted(self._peers.heard())
        moved, self._moved = self._moved, {}
        marks = [Reached(*log, count) for log, count in moved.items()]
        unmarked, self._unmarked = self._unmarked.intersection(heard), set()
        if marks and heard:
            self._tell_marks(heard, marks)
        if unmarked:
            self.tell_marks(sorted(unmarked))
        behind, self._behind = self._behind, set()
        for member in sorted(behind):
            if member in heard:
                self.probe(member)


def _refusal(owned: OwnedRange, following: int, epoch: int | None, offset: int | None) -> Refused:
    if epoch is not None and epoch != owned.epoch:
        reason = f"epoch {owned.epoch} has the partition, and this append is of epoch {epoch}"
    elif owned.rules.is_fenced:
        reason = f"epoch {owned.epoch} was fenced: another member is about to take the partition"
    else:
        reason = f"the log ends at {following}, and this append expects {offset}"
    return Refused(owned.partition, owned.epoch, following, reason)
