"""A group as seen from outside: the fold of its log, and views of that."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.groups.api import Entry, Generation, MemberId, Offset, name_of
from holdfast.groups.merge import Verdict, merge
from holdfast.groups.messages import NewEpoch, SyncMessage, UpdateEpoch, decode
from holdfast.groups.read_back import read_back
from holdfast.groups.state import GroupPartition, GroupState, PartitionStatus
from holdfast.logs import log


class MemberSummary(NamedTuple):
    """A member, and what it has."""

    member: MemberId
    owned: int
    running: int
    parked: int
    shared: int


class GroupSummary(NamedTuple):
    """A group in numbers."""

    epoch: int
    generation: int
    leader: MemberId
    is_rebalancing: bool
    answers: int
    members: list[MemberSummary]
    partitions: int
    running: int
    shared: int
    parked: int
    finished: int
    watermark: int | None
    watermark_lag: int


class PartitionSummary(NamedTuple):
    """A partition of a group."""

    token: str
    state: str
    member: MemberId
    offset: Offset
    watermark: int | None
    target: MemberId | None
    parents: tuple[str, ...]
    error: str | None
    attempts: int
    pin: str | None  # the name of the member that people want it at
    is_held: bool  # parked by hand


class GroupObserver:
    """Folds a group's log from what it keeps, and tells what it says."""

    def __init__(self) -> None:
        self.state = GroupState()
        self.rebalances = 0
        self.alarms: list[str] = []
        self.discardable: int | None = None  # what is before it, no start needs
        self._base: int | None = None  # the last message that carries all stands for what is before

    def restore(self, entries: Sequence[Entry], is_complete: bool) -> None:
        """Reads back all that the log keeps."""
        read = [(each.offset, message) for each in entries if (message := _message(each))]
        self.state = read_back(read, is_complete)

    def read(self, entry: Entry) -> None:
        """The next entry of the log."""
        message = _message(entry)
        if message is None:
            return
        merged = merge(self.state, entry.offset, message)
        self.state.touched.clear()
        for text in merged.alarms:
            self.alarms.append(text)
            log.error("group: alarm", what=text)
        if merged.verdict is not Verdict.ACCEPTED:
            return
        if isinstance(message, UpdateEpoch) and message.members:
            self.rebalances += 1
        snapshot = message.snapshot if isinstance(message, NewEpoch | UpdateEpoch) else None
        if snapshot is not None:
            # Up to the one before: a slow reader does not fall behind each time.
            self.discardable, self._base = self._base, snapshot.as_of

    @property
    def generation(self) -> Generation:
        """The last one that the log has; its members may still be there."""
        state, going = self.state, self.state.rebalance
        if going is not None:
            return Generation(going.generation, going.leader, going.members)
        return Generation(state.generation, state.leader, tuple(state.members))

    def summary(self) -> GroupSummary:
        """The group in numbers."""
        state = self.state
        members = [_member(state, each) for each in sorted(state.members)]
        statuses = Counter(each.status for each in state.partitions.values())
        marks = [
            each.watermark
            for each in state.partitions.values()
            if each.is_live and each.watermark is not None
        ]
        return GroupSummary(
            state.epoch, state.generation, state.leader, state.rebalance is not None,
            len(state.rebalance.answered) if state.rebalance is not None else 0,
            members, len(state.partitions), statuses[PartitionStatus.RUNNING],
            sum(map(len, state.shared.values())), statuses[PartitionStatus.PARKED],
            statuses[PartitionStatus.FINISHED], state.watermark,
            max(marks) - min(marks) if marks else 0,
        )  # fmt: skip

    def partitions(
        self,
        status: str | None = None,
        member: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[PartitionSummary]:
        """Partitions by token, behind one of them; those of a state, of a member or its name."""
        found: list[PartitionSummary] = []
        for token in sorted(self.state.partitions):
            if limit is not None and len(found) >= limit:
                break
            if after is not None and token <= after:
                continue
            each = self.state.partitions[token]
            if status is not None and each.status.name != status:
                continue
            if member is not None and member not in (each.owner, name_of(each.owner)):
                continue
            found.append(summary_of(each))
        return found


def summary_of(partition: GroupPartition) -> PartitionSummary:
    """A partition as people see it."""
    return PartitionSummary(
        partition.token, partition.status.name, partition.owner, partition.offset,
        partition.watermark, partition.target or None, partition.parents,
        partition.error or None, partition.attempts, partition.pin or None, partition.is_held,
    )  # fmt: skip


def _member(state: GroupState, member: MemberId) -> MemberSummary:
    owned = [state.partitions[token] for token in state.owned.get(member, ())]
    live = [each for each in owned if each.is_live and not each.is_released]
    statuses = Counter(each.status for each in live)
    return MemberSummary(
        member, len(live), statuses[PartitionStatus.RUNNING], statuses[PartitionStatus.PARKED],
        sum(each.is_released for each in owned),
    )  # fmt: skip


def _message(entry: Entry) -> SyncMessage | None:
    """None for what cannot be read: as everybody reads it so, everybody leaves it out."""
    try:
        return decode(entry.payload)
    except msgspec.DecodeError as error:
        log.error("group: a message is not readable", offset=entry.offset, why=str(error))
        return None
