"""Who gets a partition: the least loaded, and moves only where they narrow the difference.

All of it is pure, over counts of partitions by member; ties are broken by name.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.groups.api import MemberId, name_of
from holdfast.groups.state import GroupPartition, GroupState, PartitionStatus


class PlannedMove(NamedTuple):
    """A partition that its owner is to hand over."""

    token: str
    target: MemberId


def least_loaded(
    loads: Mapping[MemberId, int], members: Iterable[MemberId], preferred: MemberId = ""
) -> MemberId:
    """The member with the fewest; on a tie the preferred one, else the first by name."""
    return min(members, key=lambda each: (loads.get(each, 0), each != preferred, each))


def is_narrowing(state: GroupState, owner: MemberId, target: MemberId) -> bool:
    """Whether one partition less here and one more there makes the two more alike."""
    return state.load(owner) - state.load(target) >= 2


def is_wanted_move(state: GroupState, partition: GroupPartition, target: MemberId) -> bool:
    """Whether an owner may hand a partition over to a member, by hand or to even out the load."""
    if partition.target or not partition.is_live or target not in state.members:
        return False
    if target == partition.owner:
        return False
    if partition.pin == name_of(target):
        return True
    return not is_pinned(partition) and is_narrowing(state, partition.owner, target)


def is_pinned(partition: GroupPartition) -> bool:
    """Whether a partition is where people want it."""
    return bool(partition.pin) and partition.pin == name_of(partition.owner)


def moves(state: GroupState, owner: MemberId, moves_max: int) -> list[PlannedMove]:
    """What a member should hand over now, with what is on its way counted as there."""
    own = [state.partitions[token] for token in sorted(state.owned.get(owner, ()))]
    room = moves_max - sum(1 for each in own if each.target and not each.is_released)
    free = [each for each in own if each.is_live and not each.target and not is_pinned(each)]
    planned = _by_hand(state, free)[: max(0, room)]
    chosen = {each.token for each in planned}
    loads = {each: state.load(each) for each in state.members}
    for each in planned:
        loads[owner] -= 1
        loads[each.target] += 1
    # what does not run costs nothing to move
    free.sort(key=lambda each: (each.status is PartitionStatus.RUNNING, each.token))
    for partition in free:
        target = least_loaded(loads, state.members)
        if len(planned) >= room or loads[owner] - loads[target] < 2:
            break
        if partition.token not in chosen:
            planned.append(PlannedMove(partition.token, target))
            loads[owner] -= 1
            loads[target] += 1
    return planned


def _by_hand(state: GroupState, free: Iterable[GroupPartition]) -> list[PlannedMove]:
    """The partitions that people want elsewhere, where that member is there."""
    planned: list[PlannedMove] = []
    for partition in free:
        there = [each for each in state.members if name_of(each) == partition.pin]
        if partition.pin and there:
            planned.append(PlannedMove(partition.token, least_loaded(state.loads, there)))
    return planned
