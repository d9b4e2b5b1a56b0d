"""Reading a sync log back: the state of a group from what the log keeps.

A message that carries all of the state makes everything before it unnecessary. A checkpoint is the
state after the message that it names. A NEW_EPOCH counts if nothing between the message that its
leader had read last and itself made everybody refuse it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import msgspec

from holdfast.errors import DataLoss
from holdfast.groups.api import Entry
from holdfast.groups.merge import Verdict, judge_epoch, merge
from holdfast.groups.messages import NewEpoch, SyncMessage, UpdateEpoch, decode
from holdfast.groups.snapshot import load, load_epoch
from holdfast.groups.state import GroupState, MemberState, Rebalance

Read: TypeAlias = tuple[int, SyncMessage]  # an offset, and what stands there


class UnreadableMessage(NamedTuple):
    """An entry that is no message of ours, or a newer version's: everybody skips it."""

    text: str


def decoded_entry(entry: Entry) -> SyncMessage | UnreadableMessage:
    """The message of an entry."""
    try:
        return decode(entry.payload)
    except msgspec.DecodeError as error:
        return UnreadableMessage(f"the entry at offset {entry.offset} cannot be read: {error}")


def read_back(messages: Sequence[Read], is_complete: bool = True) -> GroupState:
    """The state after the last message; `is_complete`: nothing was discarded before the first.

    DataLoss where something was, and no message that is left carries all of the state.
    """
    state = GroupState()
    first = _last_base(messages, state, is_complete)
    if first is None:
        if not is_complete:
            raise DataLoss(
                "The sync log of the group begins in the middle: no message in it carries all of"
                " the state. It was discarded or expired too early; set its retention aside,"
                " and delete the log to begin anew"
            )
        first = 0
    for offset, message in messages[first:]:
        if offset > state.offset:
            merge(state, offset, message)
    state.touched.clear()
    return state


def _last_base(messages: Sequence[Read], state: GroupState, is_complete: bool) -> int | None:
    """Loads the last message that carries all; the position from which on the rest is folded."""
    for position in range(len(messages) - 1, -1, -1):
        offset, message = messages[position]
        snapshot = message.snapshot if isinstance(message, NewEpoch | UpdateEpoch) else None
        if snapshot is None or not (is_complete or messages[0][0] <= snapshot.as_of):
            continue  # none, or what follows its moment was discarded
        first = bisect_right(messages, snapshot.as_of, key=itemgetter(0))
        if isinstance(message, UpdateEpoch):
            load(state, snapshot)
            return first
        if isinstance(message, NewEpoch) and _is_accepted(messages[first:position], message):
            load_epoch(state, snapshot)
            state.offset = offset
            return position + 1
    return None


def _is_accepted(since: Sequence[Read], message: NewEpoch) -> bool:
    """Whether everybody accepted it: what came between its moment and itself is tried."""
    going = message.snapshot.rebalance
    assert going is not None, "an epoch names the rebalance that it ends"
    trial = GroupState()
    trial.epoch, trial.generation = message.epoch - 1, going.generation
    trial.members = {each: MemberState() for each in going.members}
    trial.rebalance = Rebalance(going.generation, going.leader, going.members, {*going.answered})
    for at, between in since:
        merge(trial, at, between)
    return judge_epoch(trial, message) is Verdict.ACCEPTED
