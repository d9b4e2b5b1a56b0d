"""What operators ask of a group: checked against what its log says, then a message like others."""

from holdfast.errors import InvalidState, NotFound
from holdfast.groups.api import name_of
from holdfast.groups.messages import Ask, AskKind, asking, encode
from holdfast.groups.state import GroupState

_OPERATOR = "operator/0"  # whose asks these are


def operators_message(group: str, state: GroupState, ask: Ask) -> bytes:
    """The message that asks the owner of a partition for something.

    Raises NotFound for a partition or a member that is not there, InvalidState in a rebalance.
    """
    if ask.kind is AskKind.MOVE:
        ask = Ask(ask.kind, ask.token, _member(group, state, ask.member))
    partition = state.partitions.get(ask.token)
    if partition is None or not partition.is_live:
        raise NotFound(
            f"Expected a partition of group {group!r} that is not finished, but found"
            f" {ask.token!r}; see holdfast groups show {group}",
            group=group,
            token=ask.token,
        )
    if state.rebalance is not None:
        raise InvalidState(
            f"Group {group!r} is rebalancing: members come or go; try again in a moment",
            group=group,
        )
    return encode(asking(_OPERATOR, (ask,)))


def _member(group: str, state: GroupState, member: str) -> str:
    """The name of a member that is there, given by its name or with its incarnation."""
    name = name_of(member) if "/" in member else member
    names = sorted({name_of(each) for each in state.members})
    if name not in names:
        raise NotFound(
            f"Expected a member of group {group!r}, but found {member!r};"
            f" there are {', '.join(names) or 'none'}",
            group=group,
        )
    return name
