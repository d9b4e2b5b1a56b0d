"""The fold: what a message does to the state of a group, the same for everybody who reads it.

A change has happened when it is read. Whether it counts depends on the log before it alone: on the
epoch, on a rebalance that is under way and on the sender's counter, never on a clock.
"""

from enum import Enum
from typing import NamedTuple

from holdfast.groups.changes import apply, apply_ask
from holdfast.groups.messages import (
    NewEpoch,
    RebalanceAnswer,
    Regular,
    SyncMessage,
    UpdateEpoch,
)
from holdfast.groups.snapshot import load_epoch
from holdfast.groups.state import GroupState, MemberState, MemberStatus, Rebalance


class Verdict(Enum):
    """What became of a message; anything but ACCEPTED changed no partition."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"  # its counter is not above the sender's last
    GAP = "gap"  # a message of the sender is missing: it has to send a whole one
    STALE = "stale"  # of another epoch
    REBALANCING = "rebalancing"  # nothing moves between a rebalance and its new epoch
    OLD_GENERATION = "old generation"  # of a rebalance that is not the one under way
    NOT_A_MEMBER = "not a member"
    OUTDATED = "outdated"  # an epoch without an answer that was read before it


class Merged(NamedTuple):
    """What became of a message, and what people should know of it."""

    verdict: Verdict
    alarms: tuple[str, ...] = ()


def merge(state: GroupState, offset: int, message: SyncMessage) -> Merged:
    """Folds the message at an offset into the state."""
    assert offset > state.offset, f"offset {offset} is read after {state.offset}"
    if isinstance(message, Regular):
        merged = _regular(state, message)
    elif isinstance(message, RebalanceAnswer):
        merged = _answer(state, message)
    elif isinstance(message, UpdateEpoch):
        merged = Merged(_update(state, message))
    else:
        merged = Merged(_new_epoch(state, message))
    state.offset = offset
    return merged


def _regular(state: GroupState, message: Regular) -> Merged:
    if state.rebalance is not None:
        return Merged(Verdict.REBALANCING)
    member = state.members.get(message.member)
    if member is None:
        return _asked(state, message)
    if message.epoch != state.epoch:
        return Merged(Verdict.STALE)
    verdict = _count(member, message.counter, message.whole)
    if verdict is not Verdict.ACCEPTED:
        return Merged(verdict)
    member.status = MemberStatus.EPOCH_STARTED
    alarms = _apply_changes(state, message)
    for ask in message.asks:
        apply_ask(state, ask)
    return Merged(verdict, alarms)


def _asked(state: GroupState, message: Regular) -> Merged:
    """Anybody may ask; only members may change."""
    if message.changes or not message.asks:
        return Merged(Verdict.NOT_A_MEMBER)
    for ask in message.asks:
        apply_ask(state, ask)
    return Merged(Verdict.ACCEPTED)


def _answer(state: GroupState, message: RebalanceAnswer) -> Merged:
    going = state.rebalance
    if message.epoch != state.epoch:
        return Merged(Verdict.STALE)
    if going is None or message.generation != going.generation:
        return Merged(Verdict.OLD_GENERATION)
    if message.member not in going.members:
        return Merged(Verdict.NOT_A_MEMBER)
    member = state.members[message.member]
    if message.member in going.answered:
        return Merged(Verdict.DUPLICATE)
    verdict = _count(member, message.counter, is_whole=True)
    if verdict is not Verdict.ACCEPTED:
        return Merged(verdict)
    member.status = MemberStatus.ANSWERED
    going.answered.add(message.member)
    return Merged(verdict, _apply_changes(state, message))


def _update(state: GroupState, message: UpdateEpoch) -> Verdict:
    if message.epoch != state.epoch:
        return Verdict.STALE
    if not message.members:
        return _checkpoint(state, message)
    if message.generation <= state.generation:
        return Verdict.OLD_GENERATION
    if message.member not in message.members:
        return Verdict.NOT_A_MEMBER
    leader = state.members.get(message.member)
    if leader is not None and leader.counter is not None and message.counter <= leader.counter:
        return Verdict.DUPLICATE  # it is late: the leader missed it, and asks anew if need be
    for each in message.members:
        if each not in state.members:
            state.members[each] = MemberState()
        state.members[each].status = MemberStatus.INITIAL_SYNC
    state.generation = message.generation
    state.rebalance = Rebalance(message.generation, message.member, message.members, set())
    _count(state.members[message.member], message.counter, is_whole=False)
    return Verdict.ACCEPTED


def _checkpoint(state: GroupState, message: UpdateEpoch) -> Verdict:
    """Says nothing that is not known; only who starts to read here needs it."""
    member = state.members.get(message.member)
    if member is None:
        return Verdict.NOT_A_MEMBER
    if _count(member, message.counter, is_whole=False) is Verdict.DUPLICATE:
        return Verdict.DUPLICATE
    return Verdict.ACCEPTED


def _new_epoch(state: GroupState, message: NewEpoch) -> Verdict:
    verdict = judge_epoch(state, message)
    if verdict is Verdict.ACCEPTED:
        load_epoch(state, message.snapshot)
    return verdict


def judge_epoch(state: GroupState, message: NewEpoch) -> Verdict:
    """Whether a new epoch counts after the messages before it."""
    going = state.rebalance
    if message.epoch != state.epoch + 1:
        return Verdict.STALE
    if going is None or (message.generation, message.member) != (going.generation, going.leader):
        return Verdict.OLD_GENERATION
    made_from = message.snapshot.rebalance
    if made_from is None or not going.answered.issubset(made_from.answered):
        return Verdict.OUTDATED
    return Verdict.ACCEPTED


def _count(member: MemberState, counter: int, is_whole: bool) -> Verdict:
    """Where a message stands in the order of its sender's messages of the epoch."""
    if member.counter is not None and counter <= member.counter:
        return Verdict.DUPLICATE
    is_next = member.counter is not None and counter == member.counter + 1
    member.has_gap = not is_whole and (member.has_gap or not is_next)
    member.counter = counter
    return Verdict.GAP if member.has_gap else Verdict.ACCEPTED


def _apply_changes(state: GroupState, message: Regular | RebalanceAnswer) -> tuple[str, ...]:
    alarms: tuple[str, ...] = ()
    for change in message.changes:
        alarm = apply(state, message.member, change)
        if alarm is not None:
            alarms += (alarm,)
    state.raise_watermark()
    return alarms
