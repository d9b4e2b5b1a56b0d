"""What the end of a partition means for others: children that become ready, and what is removed."""

from msgspec.structs import replace

from holdfast.groups.state import GroupState, PartitionStatus


def make_ready(state: GroupState, finished: str) -> None:
    """Children run when all of their parents are finished, or unknown."""
    for token in sorted(state.children.get(finished, ())):
        child = state.partitions[token]
        if child.status is PartitionStatus.CREATED and all(map(state.is_finished, child.parents)):
            state.put(replace(child, status=PartitionStatus.READY))


def remove_redundant(state: GroupState, finished: str) -> None:
    """A finished partition goes when everything that refers to it is finished."""
    parents = state.partitions[finished].parents
    for token in (finished, *parents):
        if token in state.partitions and _is_redundant(state, token):
            state.drop(token)


def _is_redundant(state: GroupState, token: str) -> bool:
    if state.partitions[token].is_live:
        return False
    if any(token in child.parents for child in state.announced.values()):
        return False
    return all(map(state.is_finished, state.children.get(token, ())))
