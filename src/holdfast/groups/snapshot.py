"""All of a group's state as a message carries it, and back."""

from collections.abc import Iterable

from holdfast.groups.api import MemberId
from holdfast.groups.messages import GroupSnapshot, MemberRow, PartitionRow, RebalanceRow
from holdfast.groups.state import (
    GroupPartition,
    GroupState,
    MemberState,
    MemberStatus,
    PartitionStatus,
    Rebalance,
)

_RELEASED, _HELD = 1, 2
_STATUSES = {each.value: each for each in PartitionStatus}


def snapshot_of(state: GroupState) -> GroupSnapshot:
    """The state after its last message; equal states give equal bytes."""
    names, rows = partition_rows(state.partitions.values())
    going = state.rebalance
    return GroupSnapshot(
        as_of=state.offset,
        epoch=state.epoch,
        generation=state.generation,
        leader=state.leader,
        members=tuple(
            MemberRow(each, member.status, member.counter, member.has_gap)
            for each, member in sorted(state.members.items())
        ),
        names=names,
        partitions=rows,
        gone=tuple(sorted(state.gone)),
        announced=tuple(new for _, new in sorted(state.announced.items())),
        watermark=state.watermark,
        rebalance=going and rebalance_row(going),
    )


def rebalance_row(going: Rebalance) -> RebalanceRow:
    """A rebalance as a message carries it."""
    return RebalanceRow(
        going.generation, going.leader, going.members, tuple(sorted(going.answered))
    )


def partition_rows(
    partitions: Iterable[GroupPartition],
) -> tuple[tuple[MemberId, ...], tuple[PartitionRow, ...]]:
    """A table of members, and the partitions with positions in it instead of names."""
    ordered = sorted(partitions, key=lambda each: each.token)
    named = {each.owner for each in ordered} | {each.target for each in ordered if each.target}
    names = tuple(sorted(named))
    position = {name: number for number, name in enumerate(names)}
    rows = tuple(
        PartitionRow(
            each.token,
            each.status,
            position[each.owner],
            position[each.target] if each.target else -1,
            _RELEASED * each.is_released | _HELD * each.is_held,
            each.parents,
            each.start,
            each.end,
            each.offset,
            each.watermark,
            each.error,
            each.attempts,
            each.pin,
        )
        for each in ordered
    )
    return names, rows


def load(state: GroupState, snapshot: GroupSnapshot) -> None:
    """Makes a state what a snapshot says."""
    state.offset = snapshot.as_of
    state.epoch = snapshot.epoch
    state.generation = snapshot.generation
    state.leader = snapshot.leader
    state.members = {
        row.member: MemberState(MemberStatus(row.status), row.counter, row.has_gap)
        for row in snapshot.members
    }
    going = snapshot.rebalance
    state.rebalance = going and Rebalance(
        going.generation, going.leader, going.members, set(going.answered)
    )
    state.gone = set(snapshot.gone)
    state.announced = {new.token: new for new in snapshot.announced}
    state.watermark = snapshot.watermark
    names = snapshot.names
    state.put_all({row.token: _partition(row, names) for row in snapshot.partitions})
    state.raise_watermark()


def load_epoch(state: GroupState, snapshot: GroupSnapshot) -> None:
    """Makes a state what a new epoch says: the rebalance that it names is over."""
    load(state, snapshot)
    state.rebalance = None


def _partition(row: PartitionRow, names: tuple[MemberId, ...]) -> GroupPartition:
    return GroupPartition(
        row.token,
        _STATUSES[row.status],
        names[row.owner],
        names[row.target] if row.target >= 0 else "",
        bool(row.flags & _RELEASED),
        bool(row.flags & _HELD),
        row.parents,
        row.start,
        row.end,
        row.offset,
        row.watermark,
        row.error,
        row.attempts,
        row.pin,
    )
