"""What one change of an accepted message does to the state of a group.

A change of a partition that is not the sender's does nothing. Where the sender claims to run or to
have run it, there were two owners in an epoch: the function returns what people are told.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from holdfast.groups.api import MemberId, NewPartition
from holdfast.groups.messages import (
    Ask,
    AskKind,
    Change,
    Committed,
    Declared,
    Finished,
    Parked,
    Picked,
    Proposed,
    Released,
    RunStarted,
)
from holdfast.groups.removal import make_ready, remove_redundant
from holdfast.groups.sharing import is_wanted_move, least_loaded
from holdfast.groups.state import GroupPartition, GroupState, PartitionStatus
from holdfast.limits import GROUP_PARTITIONS_MAX

CREATED, READY, SCHEDULED = (
    PartitionStatus.CREATED,
    PartitionStatus.READY,
    PartitionStatus.SCHEDULED,
)
RUNNING, PARKED, FINISHED = (
    PartitionStatus.RUNNING,
    PartitionStatus.PARKED,
    PartitionStatus.FINISHED,
)

# The states of a partition: what is not here leaves the status as it is.
NEXT_STATUS: dict[tuple[PartitionStatus, type], PartitionStatus] = {
    (READY, Picked): SCHEDULED,
    (READY, RunStarted): RUNNING,
    (SCHEDULED, RunStarted): RUNNING,
    (PARKED, RunStarted): RUNNING,
    (CREATED, Parked): PARKED,
    (READY, Parked): PARKED,
    (SCHEDULED, Parked): PARKED,
    (RUNNING, Parked): PARKED,
    (SCHEDULED, Released): READY,
    (RUNNING, Released): READY,
    (READY, Finished): FINISHED,
    (SCHEDULED, Finished): FINISHED,
    (RUNNING, Finished): FINISHED,
    (PARKED, Finished): FINISHED,
}

# The same by the kind of change, with the status as an index: a lookup without a hash of enums.
_NEXT: dict[type, list[PartitionStatus]] = {
    kind: [NEXT_STATUS.get((each, kind), each) for each in (CREATED, *PartitionStatus)]
    for kind in (Picked, RunStarted, Committed, Parked, Released, Finished)
}


def apply(state: GroupState, sender: MemberId, change: Change) -> str | None:
    """Does one change; what there is to be alarmed about, if anything."""
    return _APPLIERS[type(change)](state, sender, change)


def apply_ask(state: GroupState, ask: Ask) -> None:
    """Notes what people want of a partition; its owner does it."""
    partition = state.partitions.get(ask.token)
    if partition is None or not partition.is_live:
        return
    if ask.kind is AskKind.MOVE:
        state.put(replace(partition, pin=ask.member))
    elif ask.kind is AskKind.PARK:
        state.put(replace(partition, is_held=True))
    else:
        status = partition.status
        if status is PARKED:
            status = READY if all(map(state.is_finished, partition.parents)) else CREATED
        state.put(replace(partition, is_held=False, status=status, error="", attempts=0))


def create(state: GroupState, new: NewPartition, owner: MemberId) -> None:
    """Adds a partition; it is shared with the least loaded unless a rebalance is under way."""
    if new.token in state.partitions or new.token in state.gone:
        return
    partition = new_partition(state, new, owner)
    if state.rebalance is None:
        target = least_loaded(state.loads, state.members, preferred=owner)
        if target != owner:
            partition = replace(partition, target=target, is_released=True)
    state.put(partition)


def new_partition(state: GroupState, new: NewPartition, owner: MemberId) -> GroupPartition:
    """A partition as it begins: its watermark is that of its parents."""
    is_ready = all(map(state.is_finished, new.parents))
    parents = [state.partitions[each] for each in new.parents if each in state.partitions]
    marks = [each.watermark for each in parents]
    known = [each for each in marks if each is not None]
    return GroupPartition(
        new.token,
        READY if is_ready else CREATED,
        owner,
        parents=new.parents,
        start=new.start,
        end=new.end,
        watermark=min(known) if known and len(known) == len(marks) else None,
    )


def _own(
    state: GroupState, sender: MemberId, change: Any
) -> tuple[GroupPartition | None, str | None]:
    """The sender's live partition, or why the sender must not have done this."""
    partition = state.partitions.get(change.token)
    if partition is None or partition.status is FINISHED:
        return None, None  # its end was read before: said once more
    if partition.owner == sender and not partition.is_released:
        return partition, None
    return None, (
        f"{sender} sent {type(change).__name__} for partition {change.token!r} in epoch"
        f" {state.epoch}, but {partition.owner} owns it"
        + (f" and has released it to {partition.target}" if partition.is_released else "")
    )


def _advanced(partition: GroupPartition, change: Any, **fields: Any) -> GroupPartition:
    """A partition with the offset, the watermark and the status that follow from a change."""
    status = _NEXT[type(change)][partition.status]
    mark = partition.watermark
    if change.watermark is not None:
        mark = change.watermark if mark is None else max(mark, change.watermark)
    offset = partition.offset if change.offset is None else change.offset
    return replace(partition, status=status, offset=offset, watermark=mark, **fields)


def _picked(state: GroupState, sender: MemberId, change: Picked) -> str | None:
    partition = state.partitions.get(change.token)
    if partition is None or partition.owner == sender:
        return None
    if partition.target != sender or not partition.is_released:
        return f"{sender} picks partition {change.token!r}, which is not shared with it"
    status = _NEXT[Picked][partition.status]
    state.put(replace(partition, owner=sender, target="", is_released=False, status=status))
    return None


def _run_started(state: GroupState, sender: MemberId, change: RunStarted) -> str | None:
    partition, alarm = _own(state, sender, change)
    if partition is not None:
        status = _NEXT[RunStarted][partition.status]
        state.put(replace(partition, status=status, error=""))
    return alarm


def _committed(state: GroupState, sender: MemberId, change: Committed) -> str | None:
    partition, alarm = _own(state, sender, change)
    if partition is not None and partition.status is RUNNING:
        state.put(_advanced(partition, change, attempts=0))
    elif partition is not None:
        state.put(_advanced(partition, change))
    return alarm


def _parked(state: GroupState, sender: MemberId, change: Parked) -> str | None:
    partition, alarm = _own(state, sender, change)
    if partition is not None:
        state.put(_advanced(partition, change, error=change.error, attempts=change.attempts))
    return alarm


def _finished(state: GroupState, sender: MemberId, change: Finished) -> str | None:
    partition, alarm = _own(state, sender, change)
    if partition is None or partition.status is CREATED:
        return alarm
    state.put(_advanced(partition, change, target="", is_released=False, error=""))
    for child in change.children:
        parents = tuple(sorted({*child.parents, change.token}))
        if child.token not in state.partitions:
            state.announced.setdefault(child.token, replace(child, parents=parents))
    _create_announced(state, sender, change.token)
    make_ready(state, change.token)
    remove_redundant(state, change.token)
    return None


def _create_announced(state: GroupState, sender: MemberId, finished: str) -> None:
    """Only the owner of the smallest parent creates a child, when that one is finished."""
    for child in sorted(state.announced.values(), key=lambda each: each.token):
        if finished in child.parents and creates(state, finished, child):
            del state.announced[child.token]
            create(state, child, sender)


def creates(state: GroupState, finished: str, child: NewPartition) -> bool:
    """Whether the end of this parent makes the child: none that is smaller is still to end."""
    return all(state.is_finished(each) for each in child.parents if each < finished)


def _proposed(state: GroupState, sender: MemberId, change: Proposed) -> str | None:
    partition, _ = _own(state, sender, change)
    if partition is not None and is_wanted_move(state, partition, change.target):
        state.put(replace(partition, target=change.target, is_released=False))
    return None


def _released(state: GroupState, sender: MemberId, change: Released) -> str | None:
    partition, _ = _own(state, sender, change)
    if partition is not None and partition.target:
        state.put(_advanced(partition, change, is_released=True))
    return None


def _declared(state: GroupState, sender: MemberId, change: Declared) -> str | None:
    for new in change.partitions:
        if len(state.partitions) + len(state.gone) < GROUP_PARTITIONS_MAX:
            create(state, replace(new, parents=()), sender)
    return None


_APPLIERS: dict[type, Callable[[GroupState, MemberId, Any], str | None]] = {
    Picked: _picked,
    RunStarted: _run_started,
    Committed: _committed,
    Finished: _finished,
    Parked: _parked,
    Proposed: _proposed,
    Released: _released,
    Declared: _declared,
}
