"""What the leader makes of a rebalance: the state that the new epoch begins with.

Survivors keep what they own. What nobody owns is shared with the least loaded, by the leader; the
finished partitions of members that are gone are the leader's.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from holdfast.groups.api import MemberId, NewPartition, name_of
from holdfast.groups.changes import new_partition
from holdfast.groups.messages import GroupSnapshot, MemberRow
from holdfast.groups.sharing import least_loaded
from holdfast.groups.snapshot import partition_rows, rebalance_row
from holdfast.groups.state import GroupPartition, GroupState, MemberStatus, PartitionStatus
from holdfast.limits import GROUP_PARTITIONS_MAX


def survivors(state: GroupState) -> tuple[MemberId, ...]:
    """Those who answered: the members of the epoch that follows."""
    assert state.rebalance is not None, "nobody is asked without a rebalance"
    return tuple(sorted(state.rebalance.answered))


def new_epoch(
    state: GroupState, leader: MemberId, declared: Sequence[NewPartition]
) -> GroupSnapshot:
    """The state of the epoch that follows, with `declared` as the partitions that are to exist."""
    assert state.rebalance is not None, "an epoch follows from a rebalance"
    members = survivors(state)
    kept: list[GroupPartition] = []
    orphans: list[GroupPartition] = []
    for token in sorted(state.partitions):
        partition = _kept(state.partitions[token], members, leader)
        (orphans if partition.owner not in members else kept).append(partition)
    orphans += _missing(state, declared)
    names, rows = partition_rows([*kept, *_share(orphans, kept, members, leader)])
    return GroupSnapshot(
        as_of=state.offset,
        epoch=state.epoch + 1,
        generation=state.rebalance.generation,
        leader=leader,
        members=tuple(MemberRow(each, MemberStatus.ANSWERED) for each in members),
        names=names,
        partitions=rows,
        gone=tuple(sorted(state.gone)),
        announced=tuple(new for _, new in sorted(state.announced.items())),
        watermark=state.watermark,
        rebalance=rebalance_row(state.rebalance),
    )


def _kept(
    partition: GroupPartition, members: Sequence[MemberId], leader: MemberId
) -> GroupPartition:
    """A partition with everybody who is gone taken out of it; without an owner it is an orphan."""
    is_owned = partition.owner in members
    if not partition.is_live:
        return partition if is_owned else replace(partition, owner=leader)
    if not partition.target:
        return partition if is_owned else replace(partition, owner="")
    if partition.target in members:  # the share stands, or the leader makes it in place of the dead
        return partition if is_owned else _shared(partition, leader, partition.target)
    is_picked = is_owned and not partition.is_released
    owner = partition.owner if is_picked else ""  # who still drains it runs it again
    return replace(partition, owner=owner, target="", is_released=False)


def _missing(state: GroupState, declared: Iterable[NewPartition]) -> list[GroupPartition]:
    """The declared partitions that never were."""
    room = GROUP_PARTITIONS_MAX - len(state.partitions) - len(state.gone)
    new = {each.token: each for each in declared}
    tokens = sorted(new.keys() - state.partitions.keys() - state.gone)[: max(0, room)]
    return [new_partition(state, replace(new[each], parents=()), "") for each in tokens]


def _share(
    orphans: Iterable[GroupPartition],
    kept: Iterable[GroupPartition],
    members: Sequence[MemberId],
    leader: MemberId,
) -> list[GroupPartition]:
    loads = dict.fromkeys(members, 0)
    for partition in kept:
        if partition.is_live:
            loads[partition.destination] += 1
    shared: list[GroupPartition] = []
    for partition in orphans:
        target = _wanted(partition, loads) or least_loaded(loads, members)
        loads[target] += 1
        shared.append(_shared(partition, leader, target))
    return shared


def _wanted(partition: GroupPartition, loads: Mapping[MemberId, int]) -> MemberId:
    there = [each for each in loads if partition.pin and name_of(each) == partition.pin]
    return least_loaded(loads, there) if there else ""


def _shared(partition: GroupPartition, leader: MemberId, target: MemberId) -> GroupPartition:
    """In the leader's share section; what the leader keeps for itself needs no pick."""
    status = partition.status
    if status in (PartitionStatus.SCHEDULED, PartitionStatus.RUNNING):
        status = PartitionStatus.READY
    is_away = target != leader
    return replace(
        partition,
        status=status,
        owner=leader,
        target=target if is_away else "",
        is_released=is_away,
    )
