"""What a member over a broker counts of itself, and what is wrong with it."""

from typing import Protocol

from holdfast.brokered.keeping import Keeping
from holdfast.brokered.roster import CardRoster
from holdfast.errors import raised_line
from holdfast.groups.running import Group
from holdfast.groups.state import PartitionStatus
from holdfast.metrics.cluster import MemberNumbers
from holdfast.node import LocalNode


class CountedBrokered(Protocol):
    """The parts of a member that numbers are made of."""

    name: str
    node: LocalNode
    group: Group
    roster: CardRoster
    keeping: Keeping
    alarms: list[str]

    def without_owner(self) -> list[int]: ...

    def waiting_commands(self) -> int: ...


def numbers_of(member: CountedBrokered) -> MemberNumbers:
    """All of them, as they are now."""
    roster, done, runner = member.roster, member.keeping.done, member.node.runner
    return MemberNumbers(
        len(roster.cards), len(roster.said) + 1, done.take_overs, done.take_over_seconds,
        done.moves, len(runner.epochs), 0, len(member.without_owner()), {},
        sum(runner.standbys.lags().values()), member.waiting_commands(),
    )  # fmt: skip


def problems_of(member: CountedBrokered) -> list[str]:
    """What only this member knows."""
    runner = member.node.runner
    stopped = {**runner.stopped, **runner.standbys.stopped}
    found = [f"Partition {each}: {why}" for each, why in stopped.items()]
    found += _parked(member.group)
    if member.name not in member.roster.cards:
        found.append("This member is not in the group yet; its log says why, if it stays so")
    found += member.alarms + member.group.alarms + member.roster.problems
    return list(dict.fromkeys(found))


def _parked(group: Group) -> list[str]:
    """The partitions of this member that could not be opened, or were held by hand."""
    if group.core is None:
        return []
    state = group.core.state
    own = [state.partitions[token] for token in sorted(state.owned.get(group.member, ()))]
    return [
        f"Partition {int(each.token)} is parked: {raised_line(each.error or 'by hand')}"
        for each in own
        if each.status is PartitionStatus.PARKED
    ]
