"""Who gets a partition: the least loaded, and moves only where they narrow the difference.

All of it is pure, over counts of partitions by member; ties are broken by name.
"""

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple, TypeVar

from holdfast.groups.api import MemberId, name_of
from holdfast.groups.state import GroupPartition, GroupState, PartitionStatus

P = TypeVar("P", int, str)


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
    own = [state.partitions[token] for token in state.owned.get(owner, ())]
    least = min(map(state.load, state.members))
    if state.load(owner) - least < 2 and not any(each.pin for each in own):
        return []
    own.sort(key=attrgetter("token"))
    room = moves_max - sum(1 for each in own if each.target and not each.is_released)
    free = [each for each in own if each.is_live and not each.target]
    planned = _by_hand(state, free)[: max(0, room)]
    loads = {each: state.load(each) for each in state.members}
    for each in planned:
        loads[owner] -= 1
        loads[each.target] += 1
    if loads[owner] - min(loads.values()) < 2:
        return planned
    chosen = {each.token for each in planned}
    # what does not run costs nothing to move
    free.sort(key=lambda each: (each.status is PartitionStatus.RUNNING, each.token))
    for partition in free:
        target = least_loaded(loads, state.members)
        if len(planned) >= room or loads[owner] - loads[target] < 2:
            break
        if partition.token not in chosen and not is_pinned(partition):
            planned.append(PlannedMove(partition.token, target))
            loads[owner] -= 1
            loads[target] += 1
    return planned


def _by_hand(state: GroupState, free: Iterable[GroupPartition]) -> list[PlannedMove]:
    """The partitions that people want elsewhere, where that member is there."""
    planned: list[PlannedMove] = []
    for partition in free:
        if not partition.pin or is_pinned(partition):
            continue
        there = [each for each in state.members if name_of(each) == partition.pin]
        if there:
            planned.append(PlannedMove(partition.token, least_loaded(state.loads, there)))
    return planned


def placed(
    owners: Mapping[P, MemberId],
    able: Mapping[P, Collection[MemberId]],
    ready: Mapping[P, Collection[MemberId]],
) -> dict[P, MemberId]:
    """Who is to own each partition, where another log than a group's says who does now.

    Owners that are still able keep theirs. What has no such owner goes to the least loaded of those
    that are ready, or of those that are able. Then one kept partition after the other moves to a
    member that is able, as long as that narrows the difference between the two. A partition that
    nobody is able to own is left out.
    """
    kept = {each: owner for each, owner in owners.items() if owner in able[each]}
    orphans: dict[P, MemberId] = {}
    loads: dict[MemberId, int] = {}
    for owner in kept.values():
        loads[owner] = loads.get(owner, 0) + 1
    for partition in sorted(owners.keys() - kept.keys()):
        if candidates := ready[partition] or able[partition]:
            target = orphans[partition] = least_loaded(loads, candidates)
            loads[target] = loads.get(target, 0) + 1
    while _even_out(kept, loads, able):
        pass
    return kept | orphans


def _even_out(
    owners: dict[P, MemberId], loads: dict[MemberId, int], able: Mapping[P, Collection[MemberId]]
) -> bool:
    """Moves what narrows a difference, each partition once at the most; whether one was moved."""
    is_moved = False
    for partition in sorted(owners, key=lambda each: (-loads[owners[each]], each)):
        owner, target = owners[partition], least_loaded(loads, able[partition])
        if loads[owner] - loads.get(target, 0) >= 2:
            owners[partition] = target
            loads[owner] -= 1
            loads[target] = loads.get(target, 0) + 1
            is_moved = True
    return is_moved
