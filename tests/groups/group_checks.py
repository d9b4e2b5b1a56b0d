"""What must hold of a group at any time, checked from outside: one function an invariant."""

from collections import defaultdict
from dataclasses import dataclass, field

from holdfast.groups.api import MemberId, Offset
from holdfast.groups.merge import Merged, Verdict, merge
from holdfast.groups.messages import (
    NewEpoch,
    Regular,
    SyncMessage,
    encode,
)
from holdfast.groups.snapshot import snapshot_of
from holdfast.groups.state import GroupPartition, GroupState


def fingerprint(state: GroupState) -> bytes:
    """Equal for equal states."""
    snapshot = snapshot_of(state)
    return encode(NewEpoch(state.epoch, "", 0, state.generation, snapshot))


def check_indexes(state: GroupState) -> None:
    """What follows from the partitions is the same however they came into the state."""
    one_by_one, at_once = GroupState(), GroupState()
    for partition in state.partitions.values():
        one_by_one.put(partition)
    at_once.put_all(dict(state.partitions))
    expected = _indexes(one_by_one)
    assert _indexes(at_once) == expected, "partitions that are put at once are counted differently"
    assert _indexes(state) == expected, "the indexes are not those of the partitions"


def _indexes(state: GroupState) -> tuple[object, ...]:
    """The indexes without what is empty, and the lowest watermark."""
    found = (state.loads, state.owned, state.shared, state.children)
    lowest = state._watermarks.lowest()  # pyright: ignore[reportPrivateUsage]
    return *({key: each for key, each in index.items() if each} for index in found), lowest


@dataclass
class GroupChecks:
    """Folds the log by itself, watches who runs what, and compares."""

    state: GroupState = field(default_factory=GroupState)
    # who runs a partition, in which epoch
    runners: dict[str, dict[MemberId, int]] = field(default_factory=lambda: defaultdict(dict))
    members_of: dict[int, frozenset[MemberId]] = field(default_factory=dict)  # by epoch
    finished: set[str] = field(default_factory=set)
    durable: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)  # partitions that are to be live at the end
    last: dict[MemberId, tuple[int, int]] = field(default_factory=dict)
    prints: dict[int, bytes] = field(default_factory=dict)  # by offset
    kept: int = 0
    owned: int = 0
    epochs: int = 0
    verdicts: dict[Verdict, int] = field(default_factory=lambda: defaultdict(int))

    # --- the log ------------------------------------------------------------------------------

    def appended(self, offset: int, message: SyncMessage) -> None:
        """A message is in the log; it is folded at once."""
        state = self.state
        before = dict(state.partitions)
        epoch, watermark, was_rebalancing = state.epoch, state.watermark, state.rebalance
        members = set(state.members)
        merged = merge(state, offset, message)
        self.verdicts[merged.verdict] += 1
        assert merged.alarms == (), merged.alarms
        if merged.verdict is Verdict.ACCEPTED:
            self._check_order(message, epoch)
            if isinstance(message, NewEpoch):
                self._check_survivors(before, members)
                self.members_of[state.epoch] = frozenset(state.members)
                self.epochs += 1
                state.touched.clear()
        if not (merged.verdict is Verdict.ACCEPTED and isinstance(message, NewEpoch)):
            self._check_partitions(before, merged, message, was_rebalancing is not None)
        assert watermark is None or state.watermark is not None, "the watermark is gone"
        assert watermark is None or state.watermark >= watermark, "the watermark went back"

    def _check_order(self, message: SyncMessage, epoch: int) -> None:
        """By epoch and counter: nothing stale, nothing twice, nothing after a gap."""
        if isinstance(message, NewEpoch):
            assert message.epoch == epoch + 1, f"epoch {message.epoch} follows {epoch}"
            return
        if isinstance(message, Regular) and message.member not in self.state.members:
            assert message.asks and not message.changes, "a stranger changes something"
            return
        assert message.epoch == epoch, f"a message of epoch {message.epoch} counts in {epoch}"
        former = self.last.get(message.member, (-1, 0))
        at = (message.epoch, message.counter)
        assert at > former, f"{message.member} counts twice: {at} after {former}"
        self.last[message.member] = at
        if isinstance(message, Regular) and not message.whole:
            assert at == (former[0], former[1] + 1), f"{at} of {message.member} follows {former}"

    def _check_survivors(self, before: dict[str, GroupPartition], members: set[MemberId]) -> None:
        stay = members & self.state.members.keys()
        for token, partition in before.items():
            if partition.owner in stay and partition.is_live and not partition.target:
                self.owned += 1
                self.kept += self.state.partitions[token].owner == partition.owner

    def _check_partitions(
        self,
        before: dict[str, GroupPartition],
        merged: Merged,
        message: SyncMessage,
        was_rebalancing: bool,
    ) -> None:
        after = self.state.partitions
        for token in self.state.touched:
            old, new = before.get(token), after.get(token)
            assert merged.verdict is Verdict.ACCEPTED, f"refused, but {token} has changed"
            if new is None:
                self._check_removed(token)
                continue
            assert new.owner in self.state.members, f"{token} is of {new.owner}, who is gone"
            if new.target and (old is None or old.target != new.target):
                assert not was_rebalancing, f"{token} is shared during a rebalance"
            if old is not None and old.is_live and not new.is_live:
                self.finished.add(token)
            if old is None and len(new.parents) > 1:
                self._check_creator(new, before, message)
            if old is not None and old.owner != new.owner:
                assert new.owner == message.member == old.target, f"{token} was not shared"
        self.state.touched.clear()

    def _check_removed(self, token: str) -> None:
        self.finished.add(token)
        referring = [each for each in self.state.partitions.values() if token in each.parents]
        live = [each.token for each in referring if each.is_live]
        assert not live, f"{token} is removed, but {live} refer to it"

    def _check_creator(
        self, child: GroupPartition, before: dict[str, GroupPartition], message: SyncMessage
    ) -> None:
        """A merge is made by the owner of its smallest parent that was not finished."""
        alive = [each for each in child.parents if each in before and before[each].is_live]
        assert alive, f"{child.token} has no parent that was alive"
        owner = before[min(alive)].owner
        assert owner == message.member, f"{message.member} creates {child.token}, not {owner}"

    def compare(self, offset: int, state: GroupState) -> None:
        """All folds are equal at the same offset."""
        found = fingerprint(state)
        assert self.prints.setdefault(offset, found) == found, f"folds differ at offset {offset}"

    # --- the work -----------------------------------------------------------------------------

    def runs(self, member: MemberId, state: GroupState, token: str, offset: Offset) -> None:
        """A member starts to run a partition."""
        partition = state.partitions[token]
        assert partition.owner == member, f"{member} runs {token}, which is {partition.owner}'s"
        assert member in state.members, f"{member} runs {token} and is no member"
        at = int(offset or 0)
        is_late = state.epoch < self.state.epoch  # it is about to read that it is left out
        assert is_late or at >= self.durable.get(token, 0), f"{token} goes back to {at}"
        for parent in partition.parents:
            known = parent in self.state.partitions or parent in self.finished
            assert not known or parent in self.finished, f"{token} runs before {parent} ended"
            others = [each for each in self.runners[parent].values() if each >= state.epoch]
            assert not others, f"{token} runs while {parent} does"
        self.runners[token][member] = state.epoch
        self._check_runners(token)

    def renewed(self, member: MemberId, tokens: list[str], epoch: int) -> None:
        """A member goes on in a new epoch with what it keeps."""
        for token in tokens:
            if member in self.runners[token]:
                self.runners[token][member] = epoch
                self._check_runners(token)

    def ended(self, member: MemberId, token: str) -> None:
        """Nothing runs for a partition there any more."""
        self.runners[token].pop(member, None)

    def _check_runners(self, token: str) -> None:
        """One owner an epoch; one who runs in an older epoch is not a member any more."""
        runners = self.runners[token]
        if len(runners) < 2:
            return
        newest = max(runners.values())
        there = [
            member
            for member, epoch in runners.items()
            if epoch == newest or member in self.members_of[newest]
        ]
        assert len(there) <= 1, f"{there} run {token} in epoch {newest}"

    # --- at rest ------------------------------------------------------------------------------

    def at_rest(self, members: dict[MemberId, set[str]]) -> None:
        """Nothing is under way: each partition runs at its one owner, and the load is even."""
        state = self.state
        assert state.rebalance is None, "a rebalance has no end"
        live = {token for token, each in state.partitions.items() if each.is_live}
        assert live == self.expected, f"not there: {self.expected - live}, {live - self.expected}"
        for token in live:
            partition = state.partitions[token]
            assert partition.owner in members, f"{token} is ownerless"
            assert not partition.target, f"{token} is not picked by {partition.target}"
            assert token in members[partition.owner], f"{token} does not run: {partition}"
            assert [*self.runners[token]] == [partition.owner], f"{token}: {self.runners[token]}"
        loads = [state.load(each) for each in members]
        assert max(loads) - min(loads) <= 1, f"the load is uneven: {loads}"
        assert self.kept >= 0.95 * self.owned, f"survivors keep {self.kept} of {self.owned}"
